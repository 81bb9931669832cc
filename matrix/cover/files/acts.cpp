#include <algorithm>
#include <cctype>
#include <unordered_set>

#include "matrix/cover/files/model_file.h"
#include "matrix/cover/files/predicate.h"
#include "matrix/cover/files/trimmed.h"

namespace graphproof::cover {
namespace {

std::string_view unquoted(std::string_view text) {
  return text.size() >= 2 && (text.front() == '"' || text.front() == '\'') &&
                 text.back() == text.front()
             ? text.substr(1, text.size() - 2)
             : text;
}

std::vector<std::string_view> pieces(std::string_view text) {
  std::vector<std::string_view> parts;
  while (true) {
    const std::size_t comma = text.find(',');
    parts.push_back(trimmed(text.substr(0, comma)));
    if (comma == std::string_view::npos) return parts;
    text.remove_prefix(comma + 1);
  }
}

class ActsReader {
 public:
  ActsReader(std::string_view text, std::string source)
      : source_(std::move(source)), text_{source_, text} {}

  ModelFile read() {
    std::string section;
    // Constraints may come before the parameters that they name, so they are read last.
    std::vector<std::pair<std::size_t, int>> constraints;
    int line_number = 1;
    for (std::size_t at = 0; at < text_.all.size(); ++line_number) {
      const std::size_t end = std::min(text_.all.find('\n', at), text_.all.size());
      const std::string_view line = trimmed(text_.all.substr(at, end - at));
      at = end + 1;
      if (line.empty() || line.starts_with("--") || line.starts_with("//") || line.front() == '#')
        continue;
      if (line.front() == '[' && line.back() == ']') {
        section = line.substr(1, line.size() - 2);
        for (char& byte : section)
          byte = static_cast<char>(std::tolower(static_cast<unsigned char>(byte)));
        continue;
      }
      if (section == "parameter" || section == "parameters") parameter(line);
      if (section == "relation" || section == "relations") relations_.push_back(line);
      if (section == "constraint" || section == "constraints")
        constraints.emplace_back(offset_of(line), line_number);
      if (section.empty())
        text_.fail(offset_of(line), "a line precedes the first section",
                   std::string(line.substr(0, 40)), "[System] or [Parameter]",
                   "begin with a section");
    }
    if (file_.model.parameters.empty())
      text_.fail(0, "the model has no parameter", "",
                 "a section [Parameter] with lines `name (type) : values`", "add it");
    for (const std::string_view line : relations_) relation(line);
    for (const auto& [offset, line] : constraints) {
      std::size_t end = offset;
      add_constraint(file_.model, "line " + std::to_string(line),
                     read_predicate(text_, end, Dialect::acts, file_.model, file_.warnings));
    }
    return std::move(file_);
  }

 private:
  std::size_t offset_of(std::string_view part) const {
    return static_cast<std::size_t>(part.data() - text_.all.data());
  }

  void parameter(std::string_view line) {
    const std::size_t colon = line.find(':');
    if (colon == std::string_view::npos)
      text_.fail(offset_of(line), "a parameter can't be read", std::string(line.substr(0, 40)),
                 "name (type) : value, value", "add `:` and its values");
    std::string_view name = trimmed(line.substr(0, colon)), type;
    if (!name.empty() && name.back() == ')')
      if (const std::size_t open = name.rfind('('); open != std::string_view::npos) {
        type = trimmed(name.substr(open + 1, name.size() - open - 2));
        name = trimmed(name.substr(0, open));
      }
    static constexpr std::string_view kTypes[] = {"",       "int",    "enum",  "boolean",
                                                  "bool",   "double", "float", "real",
                                                  "number", "range",  "string"};
    if (std::none_of(std::begin(kTypes), std::end(kTypes),
                     [&](std::string_view known) { return equal_without_case(known, type); }))
      text_.fail(offset_of(type), "no type `" + std::string(type) + "`", std::string(type),
                 "int, enum, boolean, double", "use one of these");
    Parameter made{.name = std::string(name)};
    if (name.empty())
      text_.fail(offset_of(line), "a parameter has no name", std::string(line.substr(0, 40)),
                 "name (type) : value, value", "name it");
    if (!names_.insert(made.name).second)
      text_.fail(offset_of(line), "parameter `" + made.name + "` appears twice", made.name,
                 "each name once", "rename one");
    std::string_view rest = trimmed(line.substr(colon + 1));
    if (rest.size() >= 2 && ((rest.front() == '{' && rest.back() == '}') ||
                             (rest.front() == '[' && rest.back() == ']')))
      rest = rest.substr(1, rest.size() - 2);
    std::unordered_set<std::string> seen;
    for (const std::string_view piece : pieces(rest)) {
      const std::string_view value = unquoted(piece);
      if (value.empty())
        text_.fail(offset_of(piece), "a value is empty", "", "a value between two commas",
                   "remove the comma, or name the value");
      if (!seen.insert(std::string(value)).second)
        text_.fail(offset_of(piece), "a value of `" + made.name + "` appears twice",
                   std::string(value), "each value once", "remove one");
      made.values.push_back(Value{.names = {std::string(value)}});
    }
    file_.model.parameters.push_back(std::move(made));
  }

  /// `R1 : (a, b, c, 2)`: names of parameters and a strength; a name of the relation is ignored.
  void relation(std::string_view line) {
    const std::size_t open = line.find('('), close = line.rfind(')');
    if (open == std::string_view::npos || close == std::string_view::npos || close < open)
      text_.fail(offset_of(line), "a relation can't be read", std::string(line.substr(0, 40)),
                 "(parameter, parameter, strength)", "write names and a strength in parentheses");
    Group group;
    const std::vector<std::string_view> parts = pieces(line.substr(open + 1, close - open - 1));
    for (std::size_t at = 0; at + 1 < parts.size(); ++at) {
      int found = -1;
      std::vector<std::string> names;
      for (std::size_t parameter = 0; parameter < file_.model.parameters.size(); ++parameter) {
        names.push_back(file_.model.parameters[parameter].name);
        if (names.back() == parts[at]) found = static_cast<int>(parameter);
      }
      if (found < 0)
        text_.fail(offset_of(parts[at]), "no parameter `" + std::string(parts[at]) + "`",
                   std::string(parts[at]), "one of " + matrix::listed(names),
                   matrix::suggestion(parts[at], names, "name a parameter"));
      if (std::find(group.parameters.begin(), group.parameters.end(), found) !=
          group.parameters.end())
        text_.fail(offset_of(parts[at]),
                   "`" + std::string(parts[at]) + "` is in this relation twice",
                   std::string(parts[at]), "each parameter once", "remove one");
      group.parameters.push_back(found);
    }
    double number = 0;
    if (!as_number(parts.back(), number) || number < 1 || number > kMaxStrength ||
        number > static_cast<double>(group.parameters.size()) || number != static_cast<int>(number))
      text_.fail(offset_of(parts.back()), "a relation's strength is out of range",
                 std::string(parts.back()),
                 "1 to " + std::to_string(kMaxStrength) + ", and at most its number of parameters",
                 "end the relation with a strength");
    group.strength = static_cast<int>(number);
    file_.model.groups.push_back(std::move(group));
  }

  std::string source_;
  Text text_;
  ModelFile file_;
  std::unordered_set<std::string> names_;
  std::vector<std::string_view> relations_;
};

}  // namespace

ModelFile read_acts(std::string_view text, std::string source) {
  return ActsReader(text, std::move(source)).read();
}

}  // namespace graphproof::cover
