#include <algorithm>
#include <cctype>
#include <unordered_map>
#include <unordered_set>

#include "matrix/cover/files/model_file.h"
#include "matrix/cover/files/predicate.h"
#include "matrix/cover/files/trimmed.h"

namespace graphproof::cover {
namespace {

std::string folded(std::string_view name) {
  std::string made(name);
  for (char& byte : made)
    if (byte >= 'A' && byte <= 'Z') byte = static_cast<char>(byte + 32);
  return made;
}

class PictReader {
 public:
  PictReader(std::string_view text, std::string source)
      : source_(std::move(source)), text_{source_, text} {}

  ModelFile read() {
    std::size_t at = 0;
    for (; at < text_.all.size(); at = end_of_line(at) + 1) {
      const std::string_view line = trimmed(text_.all.substr(at, end_of_line(at) - at));
      if (line.empty() || line.front() == '#') continue;
      if (begins_constraint(line)) break;
      if (line.front() == '{')
        submodel(line);
      else
        parameter(line);
    }
    int last_line = 0;
    std::size_t counted = 0, line_number = 1;
    while (skip_to_constraint(at)) {
      for (; counted < at; ++counted) line_number += text_.all[counted] == '\n' ? 1 : 0;
      const auto line = static_cast<int>(line_number);
      const Condition condition =
          read_predicate(text_, at, Dialect::pict, file_.model, file_.warnings);
      parts_on_line_ = line == last_line ? parts_on_line_ + 1 : 1;
      last_line = line;
      add_constraint(file_.model,
                     "line " + std::to_string(line) +
                         (parts_on_line_ > 1 ? " (" + std::to_string(parts_on_line_) + ")" : ""),
                     condition);
    }
    if (file_.model.parameters.empty())
      text_.fail(0, "the model has no parameter", "", "name: value, value",
                 "write one parameter a line");
    return std::move(file_);
  }

 private:
  std::size_t end_of_line(std::size_t at) const {
    return std::min(text_.all.find('\n', at), text_.all.size());
  }
  std::size_t offset_of(std::string_view part) const {
    return static_cast<std::size_t>(part.data() - text_.all.data());
  }

  /// A constraint begins with IF, NOT, a bracket or a parenthesis. A parameter may have such a name
  /// too, but then a colon follows.
  static bool begins_constraint(std::string_view line) {
    if (line.front() == '[' || line.front() == '(') return true;
    for (const std::string_view word : {"IF", "NOT", "IsNegative", "IsPositive"}) {
      if (!equal_without_case(line.substr(0, word.size()), word)) continue;
      const std::string_view rest = trimmed(line.substr(word.size()));
      if (rest.empty() || rest.front() == '[' || rest.front() == '(') return true;
      if (rest.size() < line.size() - word.size() && rest.find(':') == std::string_view::npos)
        return true;
    }
    return false;
  }

  bool skip_to_constraint(std::size_t& at) const {
    while (at < text_.all.size()) {
      if (text_.all[at] == '#')
        at = end_of_line(at);
      else if (std::isspace(static_cast<unsigned char>(text_.all[at])))
        ++at;
      else
        return true;
    }
    return false;
  }

  int find(std::string_view name) const {
    const auto found = names_.find(folded(name));
    return found == names_.end() ? -1 : found->second;
  }

  void parameter(std::string_view line) {
    const std::size_t colon = line.find(':');
    if (colon == std::string_view::npos)
      text_.fail(offset_of(line), "this is neither a parameter nor a constraint",
                 std::string(line.substr(0, 40)), "name: value, value",
                 "write `name: values`, or a constraint that begins with IF, NOT, [ or (");
    Parameter made{.name = std::string(trimmed(line.substr(0, colon)))};
    if (made.name.empty())
      text_.fail(offset_of(line), "a parameter has no name", std::string(line.substr(0, 40)),
                 "name: value, value", "name it");
    if (find(made.name) >= 0)
      text_.fail(offset_of(line), "parameter `" + made.name + "` appears twice", made.name,
                 "each name once", "rename one; names are compared without regard to case");
    std::unordered_set<std::string> seen;
    std::string_view rest = line.substr(colon + 1);
    while (true) {
      const std::size_t comma = rest.find(',');
      const std::string_view piece = rest.substr(0, comma);
      const std::size_t where = offset_of(trimmed(piece).empty() ? piece : trimmed(piece));
      for (Value& value : values(trimmed(piece), where)) {
        for (const std::string& name : value.names)
          if (!seen.insert(name).second)
            text_.fail(where, "a value of `" + made.name + "` appears twice", name,
                       "each value once", "remove one");
        made.values.push_back(std::move(value));
      }
      if (comma == std::string_view::npos) break;
      rest.remove_prefix(comma + 1);
    }
    names_[folded(made.name)] = static_cast<int>(file_.model.parameters.size());
    file_.model.parameters.push_back(std::move(made));
  }

  std::vector<Value> values(std::string_view piece, std::size_t where) const {
    if (piece.empty())
      text_.fail(where, "a value is empty", "", "a value between two commas",
                 "remove the comma, or name the value");
    if (piece.front() == '<' && piece.back() == '>') {
      const std::string_view name = trimmed(piece.substr(1, piece.size() - 2));
      const int other = find(name);
      if (other >= 0) return file_.model.parameters[static_cast<std::size_t>(other)].values;
      std::vector<std::string> names;
      for (const Parameter& each : file_.model.parameters) names.push_back(each.name);
      text_.fail(where, "no parameter `" + std::string(name) + "` before this line",
                 std::string(name), "a parameter above",
                 matrix::suggestion(name, names, "move that parameter up"));
    }
    Value value;
    if (piece.back() == ')')
      if (const std::size_t open = piece.rfind('('); open != std::string_view::npos) {
        const std::string_view weight = trimmed(piece.substr(open + 1, piece.size() - open - 2));
        double number = 0;
        if (as_number(weight, number)) {
          if (number < 1 || number > 1e6 || number != static_cast<int>(number))
            text_.fail(where, "a weight is out of range", std::string(weight),
                       "a whole number from 1 to 1000000", "change it");
          value.weight = static_cast<int>(number);
          piece = trimmed(piece.substr(0, open));
        }
      }
    if (!piece.empty() && piece.front() == '~') {
      value.negative = true;
      piece = trimmed(piece.substr(1));
    }
    for (std::size_t bar = 0; bar != std::string_view::npos;) {
      bar = piece.find('|');
      const std::string_view name = trimmed(piece.substr(0, bar));
      if (name.empty()) text_.fail(where, "a value is empty", "", "a name", "name the value");
      value.names.emplace_back(name);
      if (bar != std::string_view::npos) piece.remove_prefix(bar + 1);
    }
    return {std::move(value)};
  }

  void submodel(std::string_view line) {
    const std::size_t close = line.find('}');
    if (close == std::string_view::npos)
      text_.fail(offset_of(line), "a sub-model is not closed", "", "{ a, b } @ 2",
                 "close it on the same line");
    Group group;
    std::string_view rest = line.substr(1, close - 1);
    for (bool more = true; more;) {
      const std::size_t comma = rest.find(',');
      const std::string_view name = trimmed(rest.substr(0, comma));
      const int found = find(name);
      if (found < 0) {
        std::vector<std::string> names;
        for (const Parameter& each : file_.model.parameters) names.push_back(each.name);
        text_.fail(offset_of(rest), "no parameter `" + std::string(name) + "`", std::string(name),
                   "one of " + matrix::listed(names),
                   matrix::suggestion(name, names, "name a parameter above"));
      }
      if (std::find(group.parameters.begin(), group.parameters.end(), found) !=
          group.parameters.end())
        text_.fail(offset_of(rest), "`" + std::string(name) + "` is in this sub-model twice",
                   std::string(name), "each parameter once", "remove one");
      group.parameters.push_back(found);
      more = comma != std::string_view::npos;
      if (more) rest.remove_prefix(comma + 1);
    }
    const std::string_view order = trimmed(line.substr(close + 1));
    group.strength = std::min(2, static_cast<int>(group.parameters.size()));
    if (!order.empty()) {
      double number = 0;
      if (order.front() != '@' || !as_number(trimmed(order.substr(1)), number) || number < 1 ||
          number != static_cast<int>(number))
        text_.fail(offset_of(order), "a sub-model's strength can't be read", std::string(order),
                   "@ and a whole number", "write { a, b } @ 2");
      if (number > kMaxStrength || number > static_cast<double>(group.parameters.size()))
        text_.fail(
            offset_of(order), "a sub-model's strength is out of range", std::string(order),
            "at most " + std::to_string(kMaxStrength) + ", and at most its number of parameters",
            "lower it");
      group.strength = static_cast<int>(number);
    }
    file_.model.groups.push_back(std::move(group));
  }

  std::string source_;
  Text text_;
  ModelFile file_;
  std::unordered_map<std::string, int> names_;
  int parts_on_line_ = 0;
};

}  // namespace

ModelFile read_pict(std::string_view text, std::string source) {
  return PictReader(text, std::move(source)).read();
}

}  // namespace graphproof::cover
