#include "matrix/cover/files/predicate.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <set>

namespace graphproof::cover {
namespace {

char lower(char byte) { return byte >= 'A' && byte <= 'Z' ? static_cast<char>(byte + 32) : byte; }

int compare_without_case(std::string_view left, std::string_view right) {
  for (std::size_t at = 0; at < std::min(left.size(), right.size()); ++at)
    if (lower(left[at]) != lower(right[at]))
      return static_cast<unsigned char>(lower(left[at])) <
                     static_cast<unsigned char>(lower(right[at]))
                 ? -1
                 : 1;
  return left.size() == right.size() ? 0 : left.size() < right.size() ? -1 : 1;
}

/// Whether the text matches the pattern, in which * is any text and ? any character.
bool like(std::string_view text, std::string_view pattern) {
  std::size_t at = 0, in = 0, star = std::string_view::npos, mark = 0;
  while (at < text.size()) {
    if (in < pattern.size() && pattern[in] == '*') {
      star = in++;
      mark = at;
    } else if (in < pattern.size() &&
               (pattern[in] == '?' || lower(pattern[in]) == lower(text[at]))) {
      ++in;
      ++at;
    } else if (star != std::string_view::npos) {
      in = star + 1;
      at = ++mark;
    } else {
      return false;
    }
  }
  while (in < pattern.size() && pattern[in] == '*') ++in;
  return in == pattern.size();
}

struct Scalar {
  std::string text;
  double number = 0;
  bool is_number = false;
  bool undefined =
      false;  // of a division by zero or arithmetic with text; no comparison with it holds
};

Scalar scalar(std::string_view text) {
  Scalar made{std::string(text)};
  made.is_number = as_number(text, made.number);
  return made;
}

enum class Operator {
  none,
  equal,
  unequal,
  less,
  less_equal,
  greater,
  greater_equal,
  plus,
  minus,
  times,
  divide,
  modulo,
  and_,
  or_,
  implies
};

struct Symbol {
  std::string_view spelling;
  Operator means;
  int binds;  // the tighter, the higher
};

// Longer spellings come first, so that <= is not read as <.
constexpr Symbol kSymbols[] = {
    {"&&", Operator::and_, 3},          {"||", Operator::or_, 2},
    {"=>", Operator::implies, 1},       {"->", Operator::implies, 1},
    {"==", Operator::equal, 4},         {"!=", Operator::unequal, 4},
    {"<>", Operator::unequal, 4},       {"<=", Operator::less_equal, 4},
    {">=", Operator::greater_equal, 4}, {"=", Operator::equal, 4},
    {"<", Operator::less, 4},           {">", Operator::greater, 4},
    {"+", Operator::plus, 5},           {"-", Operator::minus, 5},
    {"*", Operator::times, 6},          {"/", Operator::divide, 6},
    {"%", Operator::modulo, 6},
};

/// A scalar expression: a constant, a parameter, or an operation on two scalar expressions.
struct Term {
  Operator operation = Operator::none;
  int parameter = -1;
  Scalar constant;
  std::vector<Term> sides;
};

/// What was parsed: a scalar or a condition.
struct Parsed {
  bool is_condition = false;
  Term term;
  Condition condition;
  std::size_t offset = 0;
};

constexpr int kDeepest = 200;  // of parentheses; deeper nesting would exhaust the stack

class Parser {
 public:
  Parser(const Text& text, std::size_t offset, Dialect dialect, const Model& model,
         std::vector<std::string>& warnings)
      : text_(text), at_(offset), dialect_(dialect), model_(model), warnings_(warnings) {}

  std::size_t offset() const { return at_; }

  Condition statement() {
    Condition condition;
    if (dialect_ == Dialect::pict && word("IF")) {
      Condition when = whole();
      if (!word("THEN"))
        fail("THEN is missing", "THEN after the condition of IF", "write IF ... THEN ...;");
      Condition then = whole();
      std::vector<Condition> parts;
      parts.push_back(Condition::any_of({Condition::no(when), std::move(then)}));
      if (word("ELSE")) parts.push_back(Condition::any_of({std::move(when), whole()}));
      condition = Condition::all_of(std::move(parts));
    } else {
      condition = whole();
    }
    skip_space();
    if (dialect_ == Dialect::pict) {
      if (!take(";"))
        fail("a constraint does not end here", "`;`, or AND, OR, THEN, ELSE",
             "end each constraint with `;`");
    } else if (at_ < text_.all.size() && text_.all[at_] != '\n') {
      fail("a constraint does not end here", "the end of the line, or an operator",
           "write one constraint a line");
    }
    return condition;
  }

 private:
  [[noreturn]] void fail(std::string what, std::string want, std::string next) {
    fail_at(at_, std::move(what), std::move(want), std::move(next));
  }
  [[noreturn]] void fail_at(std::size_t offset, std::string what, std::string want,
                            std::string next) {
    std::size_t end = offset;
    while (end < text_.all.size() && !std::isspace(static_cast<unsigned char>(text_.all[end])) &&
           end - offset < 40)
      ++end;
    std::string got(text_.all.substr(std::min(offset, text_.all.size()), end - offset));
    text_.fail(offset, std::move(what), got.empty() ? "the end" : got, std::move(want),
               std::move(next));
  }

  void skip_space() {
    for (; at_ < text_.all.size(); ++at_) {
      const char byte = text_.all[at_];
      if (byte == '\n' && dialect_ == Dialect::acts) return;
      if (byte == '#' && dialect_ == Dialect::pict) {
        while (at_ < text_.all.size() && text_.all[at_] != '\n') ++at_;
        if (at_ == text_.all.size()) return;
      } else if (!std::isspace(static_cast<unsigned char>(byte))) {
        return;
      }
    }
  }
  bool take(std::string_view spelling) {
    skip_space();
    if (text_.all.substr(at_, spelling.size()) != spelling) return false;
    at_ += spelling.size();
    return true;
  }
  static bool in_word(char byte) {
    return std::isalnum(static_cast<unsigned char>(byte)) || byte == '_' || byte == '.' ||
           (byte & 0x80);
  }
  bool word(std::string_view wanted) {
    skip_space();
    const std::string_view there = text_.all.substr(at_, wanted.size());
    if (!equal_without_case(there, wanted)) return false;
    if (at_ + wanted.size() < text_.all.size() && in_word(text_.all[at_ + wanted.size()]))
      return false;
    at_ += wanted.size();
    return true;
  }

  Condition whole() { return condition_of(expression(0)); }

  Symbol next_operator() {
    skip_space();
    for (const Symbol& symbol :
         {Symbol{"AND", Operator::and_, 3}, Symbol{"OR", Operator::or_, 2}}) {
      const std::size_t before = at_;
      const bool there = word(symbol.spelling);
      at_ = before;
      if (there) return symbol;
    }
    for (const Symbol& symbol : kSymbols) {
      if (text_.all.substr(at_, symbol.spelling.size()) != symbol.spelling) continue;
      const bool is_pict = symbol.binds == 4 && symbol.spelling != "==" && symbol.spelling != "!=";
      if (dialect_ == Dialect::pict && !is_pict) continue;
      return symbol;
    }
    return {"", Operator::none, 0};
  }

  Parsed expression(int loosest) {
    Parsed left = operand();
    while (true) {
      const Symbol symbol = next_operator();
      if (symbol.means == Operator::none || symbol.binds <= loosest) break;
      const std::size_t where = at_;
      at_ += symbol.spelling.size();
      // => associates to the right, all others to the left.
      Parsed right =
          expression(symbol.means == Operator::implies ? symbol.binds - 1 : symbol.binds);
      left = combine(std::move(left), symbol.means, std::move(right), where);
    }
    return left;
  }

  Parsed operand() {
    struct Level {
      int& depth;
      explicit Level(int& all) : depth(all) { ++depth; }
      ~Level() { --depth; }
    } level(depth_);
    skip_space();
    if (depth_ > kDeepest)
      fail("a condition is nested too deep", std::to_string(kDeepest) + " levels or fewer",
           "write several constraints");
    Parsed parsed;
    parsed.offset = at_;
    if (take("(")) {
      parsed = expression(0);
      if (!take(")"))
        fail("a parenthesis is not closed", "`)`",
             "close it, or write AND or OR between two terms");
      return parsed;
    }
    if (word("NOT") ||
        (dialect_ == Dialect::acts && text_.all.substr(at_, 2) != "!=" && take("!"))) {
      // In PICT, NOT binds tighter than AND and looser than a comparison. In ACTS, `!` applies to
      // the next operand.
      parsed.condition =
          Condition::no(condition_of(dialect_ == Dialect::pict ? expression(3) : operand()));
      parsed.is_condition = true;
      return parsed;
    }
    if (dialect_ == Dialect::pict) {
      for (const bool negative : {true, false})
        if (word(negative ? "IsNegative" : "IsPositive")) return sign_test(negative);
    }
    if (dialect_ == Dialect::acts && take("-")) {
      Parsed zero;
      zero.term.constant = scalar("0");
      return combine(std::move(zero), Operator::minus, operand(), parsed.offset);
    }
    parsed.term = atom();
    if (parsed.term.parameter >= 0) {
      const std::size_t before = at_;
      const bool no = word("NOT");
      if (word("IN")) return membership(std::move(parsed), no);
      if (word("LIKE")) return pattern(std::move(parsed), no);
      at_ = before;
    }
    return parsed;
  }

  Parsed sign_test(bool negative) {
    Parsed parsed;
    if (!take("("))
      fail("IsNegative and IsPositive take a parameter", "`(`", "write IsNegative([parameter])");
    const std::size_t where = at_;
    const Term term = atom();
    if (term.parameter < 0)
      fail_at(where, "IsNegative and IsPositive take a parameter", "a parameter in brackets",
              "write IsNegative([parameter])");
    if (!take(")")) fail("a parenthesis is not closed", "`)`", "close it");
    std::vector<char> table;
    for (const Value& value : values(term.parameter)) table.push_back(value.negative == negative);
    parsed.condition = Condition::leaf({term.parameter}, std::move(table));
    parsed.is_condition = true;
    return parsed;
  }

  Parsed membership(Parsed left, bool no) {
    if (!take("{")) fail("IN takes a list", "`{`", "write IN {\"a\", \"b\"}");
    std::vector<Term> items;
    do items.push_back(atom());
    while (take(","));
    if (!take("}")) fail("a list is not closed", "`,` or `}`", "close it");
    std::vector<Condition> any;
    for (Term& item : items) {
      Parsed right;
      right.term = std::move(item);
      any.push_back(combine(left, Operator::equal, std::move(right), left.offset).condition);
    }
    Condition condition = Condition::any_of(std::move(any));
    left.condition = no ? Condition::no(std::move(condition)) : std::move(condition);
    left.is_condition = true;
    return left;
  }

  Parsed pattern(Parsed left, bool no) {
    const std::size_t where = at_;
    const Term term = atom();
    if (term.parameter >= 0)
      fail_at(where, "LIKE takes a text", "a text in quotes, * for any characters, ? for one",
              "write LIKE \"a*\"");
    std::vector<char> table;
    for (const Value& value : values(left.term.parameter))
      table.push_back(like(value.names[0], term.constant.text) != no);
    left.condition = Condition::leaf({left.term.parameter}, std::move(table));
    left.is_condition = true;
    return left;
  }

  const std::vector<Value>& values(int parameter) const {
    return model_.parameters[static_cast<std::size_t>(parameter)].values;
  }

  Term atom() {
    skip_space();
    const std::size_t where = at_;
    Term term;
    if (dialect_ == Dialect::pict && take("[")) {
      std::string name;
      while (at_ < text_.all.size() && text_.all[at_] != ']' && text_.all[at_] != '\n') {
        if (text_.all[at_] == '\\' && at_ + 1 < text_.all.size()) ++at_;
        name += text_.all[at_++];
      }
      if (!take("]")) fail("a parameter's name is not closed", "`]`", "close it");
      term.parameter = parameter(name, where);
      return term;
    }
    if (at_ < text_.all.size() &&
        (text_.all[at_] == '"' || (dialect_ == Dialect::acts && text_.all[at_] == '\''))) {
      const char quote = text_.all[at_++];
      std::string content;
      while (at_ < text_.all.size() && text_.all[at_] != quote && text_.all[at_] != '\n') {
        if (text_.all[at_] == '\\' && at_ + 1 < text_.all.size()) ++at_;
        content += text_.all[at_++];
      }
      if (at_ == text_.all.size() || text_.all[at_] != quote)
        fail_at(where, "a text is not closed", "a quote at its end", "close it on the same line");
      ++at_;
      term.constant = scalar(content);
      return term;
    }
    std::size_t end = at_;
    if (end < text_.all.size() && dialect_ == Dialect::pict &&
        (text_.all[end] == '-' || text_.all[end] == '+'))
      ++end;
    while (end < text_.all.size() && in_word(text_.all[end])) ++end;
    const std::string_view name = text_.all.substr(at_, end - at_);
    if (name.empty())
      fail("a value is missing",
           dialect_ == Dialect::pict ? "[parameter], \"text\" or a number"
                                     : "a parameter, \"text\" or a number",
           "write it here");
    at_ = end;
    if (double number; as_number(name, number)) {
      term.constant = scalar(name);
    } else if (dialect_ == Dialect::acts && find(name) >= 0) {
      term.parameter = find(name);
    } else if (dialect_ == Dialect::acts &&
               (equal_without_case(name, "true") || equal_without_case(name, "false"))) {
      term.constant = scalar(name);
    } else {
      fail_unknown(name, where);
    }
    return term;
  }

  int find(std::string_view name) const {
    int found = -1;
    for (std::size_t at = 0; at < model_.parameters.size(); ++at) {
      if (model_.parameters[at].hidden) break;
      if (model_.parameters[at].name == name) return static_cast<int>(at);
      if (found < 0 && equal_without_case(model_.parameters[at].name, name))
        found = static_cast<int>(at);
    }
    return found;
  }
  int parameter(std::string_view name, std::size_t where) {
    const int found = find(name);
    if (found < 0) fail_unknown(name, where);
    return found;
  }
  [[noreturn]] void fail_unknown(std::string_view name, std::size_t where) {
    std::vector<std::string> names;
    for (const Parameter& each : model_.parameters)
      if (!each.hidden) names.push_back(each.name);
    const std::string quoted = dialect_ == Dialect::pict
                                   ? "put a text in quotes, a parameter in brackets"
                                   : "put a text in quotes";
    text_.fail(where, "no parameter `" + std::string(name) + "`", std::string(name),
               "one of " + matrix::listed(names), matrix::suggestion(name, names, quoted));
  }

  Condition condition_of(Parsed parsed) {
    if (parsed.is_condition) return std::move(parsed.condition);
    // A parameter whose values are true and false, or a constant, without a comparison.
    if (parsed.term.operation == Operator::none) {
      const auto truth = [&](const std::string& text) {
        if (equal_without_case(text, "true")) return 1;
        if (equal_without_case(text, "false")) return 0;
        return -1;
      };
      if (parsed.term.parameter < 0) {
        if (truth(parsed.term.constant.text) == 1) return Condition::all_of({});
        if (truth(parsed.term.constant.text) == 0) return Condition::any_of({});
      } else {
        std::vector<char> table;
        bool boolean = true;
        for (const Value& value : values(parsed.term.parameter)) {
          boolean = boolean && truth(value.names[0]) >= 0;
          table.push_back(truth(value.names[0]) == 1);
        }
        if (boolean) return Condition::leaf({parsed.term.parameter}, std::move(table));
      }
    }
    fail_at(parsed.offset, "this is a value, not a condition", "a comparison",
            "compare it with something");
  }

  static void parameters_of(const Term& term, std::set<int>& found) {
    if (term.parameter >= 0) found.insert(term.parameter);
    for (const Term& side : term.sides) parameters_of(side, found);
  }

  Scalar value_of(const Term& term, const std::vector<int>& chosen) const {
    if (term.operation == Operator::none)
      return term.parameter < 0
                 ? term.constant
                 : scalar(
                       values(term.parameter)[static_cast<std::size_t>(
                                                  chosen[static_cast<std::size_t>(term.parameter)])]
                           .names[0]);
    const Scalar left = value_of(term.sides[0], chosen), right = value_of(term.sides[1], chosen);
    Scalar result;
    result.is_number = left.is_number && right.is_number;
    switch (term.operation) {
      case Operator::plus:
        result.number = left.number + right.number;
        break;
      case Operator::minus:
        result.number = left.number - right.number;
        break;
      case Operator::times:
        result.number = left.number * right.number;
        break;
      case Operator::divide:
        result.number = left.number / right.number;
        // The quotient of integers is an integer, as in the languages that ACTS models come from.
        if (left.number == std::trunc(left.number) && right.number == std::trunc(right.number))
          result.number = std::trunc(result.number);
        break;
      default:
        result.number = std::fmod(left.number, right.number);
        break;
    }
    result.undefined = !result.is_number || !std::isfinite(result.number);
    return result;
  }

  bool holds(Operator operation, const Scalar& left, const Scalar& right) const {
    if (left.undefined || right.undefined) return false;
    int order = 0;
    if (left.is_number && right.is_number) {
      order = left.number < right.number ? -1 : left.number > right.number ? 1 : 0;
    } else {
      order = dialect_ == Dialect::pict ? compare_without_case(left.text, right.text)
                                        : left.text.compare(right.text);
    }
    switch (operation) {
      case Operator::equal:
        return order == 0;
      case Operator::unequal:
        return order != 0;
      case Operator::less:
        return order < 0;
      case Operator::less_equal:
        return order <= 0;
      case Operator::greater:
        return order > 0;
      default:
        return order >= 0;
    }
  }

  void warn_if_none_equals(const Term& left, const Term& right, std::size_t where) {
    if (left.operation != Operator::none || right.operation != Operator::none) return;
    const Term& parameter = left.parameter >= 0 ? left : right;
    const Term& constant = left.parameter >= 0 ? right : left;
    if (parameter.parameter < 0 || constant.parameter >= 0) return;
    std::vector<std::string> names;
    for (const Value& value : values(parameter.parameter)) {
      if (holds(Operator::equal, scalar(value.names[0]), constant.constant)) return;
      names.push_back(value.names[0]);
    }
    const matrix::Place place = matrix::place_in(text_.source, text_.all, where);
    warnings_.push_back(std::string(text_.source) + ":" + std::to_string(place.line) + ":" +
                        std::to_string(place.column) + ": `" +
                        model_.parameters[static_cast<std::size_t>(parameter.parameter)].name +
                        "` has no value `" + constant.constant.text + "`; it has " +
                        matrix::listed(names));
  }

  Parsed combine(Parsed left, Operator operation, Parsed right, std::size_t where) {
    Parsed made;
    made.offset = left.offset;
    if (operation == Operator::and_ || operation == Operator::or_ ||
        operation == Operator::implies) {
      Condition first = condition_of(std::move(left)), second = condition_of(std::move(right));
      made.is_condition = true;
      if (operation == Operator::and_)
        made.condition = Condition::all_of({std::move(first), std::move(second)});
      if (operation == Operator::or_)
        made.condition = Condition::any_of({std::move(first), std::move(second)});
      if (operation == Operator::implies)
        made.condition = Condition::any_of({Condition::no(std::move(first)), std::move(second)});
      return made;
    }
    const bool arithmetic = operation >= Operator::plus && operation <= Operator::modulo;
    if ((left.is_condition || right.is_condition) && !arithmetic &&
        (operation == Operator::equal || operation == Operator::unequal)) {
      // Both sides are truth values.
      Condition first = condition_of(std::move(left)), second = condition_of(std::move(right));
      Condition both =
          Condition::any_of({Condition::all_of({first, second}),
                             Condition::all_of({Condition::no(first), Condition::no(second)})});
      made.is_condition = true;
      made.condition =
          operation == Operator::equal ? std::move(both) : Condition::no(std::move(both));
      return made;
    }
    if (left.is_condition || right.is_condition)
      fail_at(where, "a condition can't be an operand of a comparison or of arithmetic",
              "two values", "write AND or OR between conditions");
    if (arithmetic) {
      made.term.operation = operation;
      made.term.sides = {std::move(left.term), std::move(right.term)};
      return made;
    }
    warn_if_none_equals(left.term, right.term, where);
    made.is_condition = true;
    made.condition = table_of(left.term, operation, right.term, where);
    return made;
  }

  Condition table_of(const Term& left, Operator operation, const Term& right, std::size_t where) {
    std::set<int> found;
    parameters_of(left, found);
    parameters_of(right, found);
    const std::vector<int> parameters(found.begin(), found.end());
    double entries = 1;
    for (const int parameter : parameters) entries *= static_cast<double>(values(parameter).size());
    if (entries > kMostTableEntries)
      fail_at(where, "a comparison has too many combinations of values",
              std::to_string(static_cast<long>(kMostTableEntries)) + " or fewer",
              "compare fewer parameters, or parameters with fewer values");
    std::vector<int> chosen(model_.parameters.size(), 0);
    std::vector<char> table(static_cast<std::size_t>(entries));
    for (char& entry : table) {
      entry = holds(operation, value_of(left, chosen), value_of(right, chosen));
      for (std::size_t at = parameters.size(); at-- > 0;) {
        int& value = chosen[static_cast<std::size_t>(parameters[at])];
        if (++value < static_cast<int>(values(parameters[at]).size())) break;
        value = 0;
      }
    }
    return Condition::leaf(parameters, std::move(table));
  }

  const Text& text_;
  std::size_t at_;
  Dialect dialect_;
  const Model& model_;
  std::vector<std::string>& warnings_;
  int depth_ = 0;
};

}  // namespace

void Text::fail(std::size_t offset, std::string what, std::string got, std::string want,
                std::string next) const {
  throw matrix::InputError({std::move(what), std::move(got), std::move(want), "", std::move(next),
                            matrix::place_in(source, all, offset)});
}

bool as_number(std::string_view text, double& number) {
  if (text.empty() || text.size() > 64 || std::isspace(static_cast<unsigned char>(text[0])))
    return false;
  const char head = text[0] == '-' || text[0] == '+' ? (text.size() > 1 ? text[1] : '\0') : text[0];
  if (!std::isdigit(static_cast<unsigned char>(head)) && head != '.')
    return false;  // "inf" and "nan" are texts
  const std::string copy(text);
  if (copy.find_first_of("xX") != std::string::npos) return false;
  char* end = nullptr;
  number = std::strtod(copy.c_str(), &end);
  return end == copy.c_str() + copy.size() && std::isfinite(number);
}

bool equal_without_case(std::string_view left, std::string_view right) {
  return left.size() == right.size() &&
         std::equal(left.begin(), left.end(), right.begin(),
                    [](char a, char b) { return lower(a) == lower(b); });
}

Condition read_predicate(const Text& text, std::size_t& offset, Dialect dialect, const Model& model,
                         std::vector<std::string>& warnings) {
  Parser parser(text, offset, dialect, model, warnings);
  Condition condition = parser.statement();
  offset = parser.offset();
  return condition;
}

}  // namespace graphproof::cover
