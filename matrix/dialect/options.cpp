#include "matrix/dialect/options.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <utility>

namespace graphproof::dialect {
namespace {

using matrix::Absent;
using matrix::Axis;
using matrix::AxisType;
using matrix::Located;
using matrix::Unknown;
using matrix::Value;

constexpr std::pair<std::string_view, AxisType> kTypes[] = {
    {"bool", AxisType::boolean},   {"int", AxisType::integer}, {"float", AxisType::number},
    {"word", AxisType::choice},    {"text", AxisType::text},   {"list", AxisType::words},
    {"frequency", AxisType::words}};
constexpr std::pair<std::string_view, Where> kWheres[] = {
    {"cli", Where::cli},         {"config", Where::config}, {"both", Where::both},
    {"harness", Where::harness}, {"stack", Where::stack},   {"retired", Where::retired}};
// Rules of matrix/rules/megatron-lm/near.json on values that argparse or a dataclass refuses.
constexpr const char* kRefusedByParser = "RN02";
constexpr const char* kRefusedByConfig = "RN05";
constexpr std::size_t kLongestPattern = 4096;  // layers; a longer pattern is a mistake

std::vector<std::string> texts(const Located& row, std::string_view key) {
  std::vector<std::string> result;
  if (row.has(key))
    for (const Located& item : row.at(key).items()) result.push_back(item.string());
  return result;
}

Value default_of(const Option& option, const Located& value) {
  if (value.json().is_null()) return Absent{};
  if (option.frequency && value.json().is_number_integer())
    return *frequency_list(std::to_string(value.integer(1, kLongestPattern)));
  return matrix::parse_value(option.axis, option.name(), value.json(), value.place());
}

Option read_option(const Located& row) {
  row.expect_keys({"name", "type", "where"},
                  {"default", "config_default", "flags", "off_flags", "choices", "nargs", "const",
                   "keys", "refused_by", "renamed_to", "versions", "meaning", "unit"});
  Option option;
  Axis& axis = option.axis;
  axis.name = row.at("name").string();
  const std::string type =
      row.at("type").word({"bool", "int", "float", "word", "text", "list", "frequency"});
  for (const auto& [name, value] : kTypes)
    if (type == name) axis.type = value;
  option.frequency = type == "frequency";
  const std::string where =
      row.at("where").word({"cli", "config", "both", "harness", "stack", "retired"});
  for (const auto& [name, value] : kWheres)
    if (where == name) option.where = value;
  axis.minimum = std::numeric_limits<std::int64_t>::min();
  axis.maximum = std::numeric_limits<std::int64_t>::max();
  axis.values = option.frequency ? std::vector<std::string>{"0", "1"} : texts(row, "choices");
  axis.meaning = row.string_or("meaning", "");
  axis.unit = row.string_or("unit", "");
  option.renamed_to = row.string_or("renamed_to", "");
  if (row.has("versions")) option.versions = read_versions(row.at("versions"));
  if (option.where == Where::retired && option.renamed_to.empty())
    row.fail("a retired option without `renamed_to`", "today's name", "", "add it");
  if (axis.type == AxisType::choice && axis.values.empty())
    row.fail("a word without `choices`", "its words", "", "list them, or use type text");
  option.flags = texts(row, "flags");
  option.off_flags = texts(row, "off_flags");
  option.keys = texts(row, "keys");
  if (row.has("nargs")) {
    const Located nargs = row.at("nargs");
    if (nargs.json().is_string()) {
      const std::string word = nargs.word({"+", "*", "?"});
      option.arity = word == "+" ? Arity::one_or_more : word == "*" ? Arity::any : Arity::optional;
    } else {
      option.count = static_cast<std::size_t>(nargs.integer(0, 64));
    }
  } else if (axis.type == AxisType::words && !option.frequency) {
    option.arity = Arity::one_or_more;
  }
  if (axis.type == AxisType::boolean) option.count = row.has("nargs") ? option.count : 0;
  if (option.where == Where::stack) {
    axis.default_value = Unknown{};
    option.config_default = Unknown{};
  } else {
    axis.default_value = axis.type == AxisType::boolean ? Value(false)
                         : axis.type == AxisType::words ? Value(std::vector<std::string>())
                                                        : Value(Absent{});
    if (row.has("default")) axis.default_value = default_of(option, row.at("default"));
    option.config_default = row.has("config_default") ? default_of(option, row.at("config_default"))
                                                      : axis.default_value;
  }
  if (row.has("const")) option.constant = default_of(option, row.at("const"));
  option.refused_by = {kRefusedByParser, kRefusedByConfig, kRefusedByConfig};
  if (row.has("refused_by")) {
    const Located refused = row.at("refused_by");
    if (refused.json().is_string()) {
      option.refused_by = {refused.string(), refused.string(), refused.string()};
    } else {
      refused.expect_keys({}, {"cli", "config", "config_type"});
      option.refused_by.cli = refused.string_or("cli", kRefusedByParser);
      option.refused_by.config = refused.string_or("config", kRefusedByConfig);
      option.refused_by.config_type = refused.string_or("config_type", option.refused_by.config);
    }
  }
  return option;
}

// Evaluates a list expression of upstream: lists of digits, + and * between them, and parentheses.
class Pattern {
 public:
  explicit Pattern(std::string_view text) : text_(text) {}

  std::optional<std::vector<std::string>> run() {
    auto result = sum(0);
    if (!result || at_ != text_.size() || result->empty()) return std::nullopt;
    return result;
  }

 private:
  using List = std::optional<std::vector<std::string>>;

  bool take(char c) {
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }

  List sum(int depth) {
    List left = product(depth);
    while (left && take('+')) {
      const List right = product(depth);
      if (!right || left->size() + right->size() > kLongestPattern) return std::nullopt;
      left->insert(left->end(), right->begin(), right->end());
    }
    return left;
  }

  List product(int depth) {
    List left = primary(depth);
    while (left && take('*')) {
      std::size_t times = 0;
      const auto [end, error] =
          std::from_chars(text_.data() + at_, text_.data() + text_.size(), times);
      if (error != std::errc() || times > kLongestPattern || left->size() * times > kLongestPattern)
        return std::nullopt;
      at_ = static_cast<std::size_t>(end - text_.data());
      const std::vector<std::string> once = *left;
      left->clear();
      for (std::size_t i = 0; i < times; ++i) left->insert(left->end(), once.begin(), once.end());
    }
    return left;
  }

  List primary(int depth) {
    if (depth > 32) return std::nullopt;
    if (take('(')) {
      List inside = sum(depth + 1);
      return inside && take(')') ? inside : std::nullopt;
    }
    if (!take('[')) return std::nullopt;
    std::vector<std::string> elements;
    while (!take(']')) {
      if (!elements.empty() && !take(',')) return std::nullopt;
      if (at_ >= text_.size() || (text_[at_] != '0' && text_[at_] != '1')) return std::nullopt;
      elements.emplace_back(1, text_[at_++]);
    }
    return elements;
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

}  // namespace

std::string_view where_name(Where where) {
  for (const auto& [name, value] : kWheres)
    if (value == where) return name;
  return "";
}

std::optional<std::vector<std::string>> frequency_list(std::string_view text) {
  std::size_t period = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), period);
  if (error == std::errc() && end == text.data() + text.size()) {
    if (period == 0 || period > kLongestPattern) return std::nullopt;
    std::vector<std::string> list(period, "0");
    list.front() = "1";
    return list;
  }
  std::string spaceless;
  for (const char c : text)
    if (c != ' ') spaceless += c;
  return Pattern(spaceless).run();
}

OptionTable OptionTable::parse(std::span<const matrix::Document> documents,
                               const std::string& version) {
  OptionTable table;
  const auto once = [](bool added, const Located& at, const std::string& what) {
    if (!added) at.fail(what + " appears twice", "each once", "", "remove one of them");
  };
  for (const matrix::Document& document : documents) {
    const Located root(document);
    root.expect_keys({"schema", "dialect", "options"}, {"enumerations", "of_recipe"});
    root.at("schema").word({"graphproof-options/1"});
    root.at("dialect").word({"megatron-lm", "megatron-bridge", "pytorch"});
    if (root.has("enumerations"))
      for (const auto& [name, words] : root.at("enumerations").members())
        table.enumerations_[name] = texts(root.at("enumerations"), name);
    for (const Located& row : root.at("options").items()) {
      Option option = read_option(row);
      const std::size_t index = table.options_.size();
      once(table.index_.emplace(option.name(), index).second, row.at("name"),
           "the option `" + option.name() + "`");
      auto& flags = table.flags_[option.where == Where::harness ? 1 : 0];
      if (!option.versions.include(version)) {
        option.flags.clear();
        option.off_flags.clear();
      }
      for (const std::string& flag : option.flags)
        once(flags.emplace(flag, Flag{index, false}).second, row.at("flags"),
             "the flag `" + flag + "`");
      for (const std::string& flag : option.off_flags)
        once(flags.emplace(flag, Flag{index, true}).second, row.at("off_flags"),
             "the flag `" + flag + "`");
      for (const std::string& key : option.keys)
        once(table.keys_.emplace(key, index).second, row.at("keys"), "the key `" + key + "`");
      table.options_.push_back(std::move(option));
    }
  }
  for (const matrix::Document& document : documents) {
    const Located root(document);
    if (!root.has("of_recipe")) continue;
    for (const Located& name : root.at("of_recipe").items()) {
      const auto found = table.index_.find(name.string());
      if (found == table.index_.end())
        name.fail("no option `" + name.string() + "`", "the name of an option", "", "correct it");
      table.options_[found->second].of_recipe = true;
    }
  }
  std::vector<Axis> axes;
  for (const Option& option : table.options_) axes.push_back(option.axis);
  Axis open;
  open.name = "env.";
  open.type = AxisType::text;
  open.default_value = Absent{};  // only variables that were given count
  table.names_ = matrix::AxisTable::of(std::move(axes), std::move(open), "option");
  return table;
}

const Option* OptionTable::find(std::string_view name) const {
  const auto found = index_.find(name);
  return found == index_.end() ? nullptr : &options_[found->second];
}

const Flag* OptionTable::flag(std::string_view spelling, bool harness) const {
  const auto found = flags_[harness ? 1 : 0].find(spelling);
  return found == flags_[harness ? 1 : 0].end() ? nullptr : &found->second;
}

std::vector<std::string> OptionTable::flags(bool harness) const {
  std::vector<std::string> result;
  for (const auto& [spelling, flag] : flags_[harness ? 1 : 0]) result.push_back(spelling);
  return result;
}

const Option* OptionTable::key(std::string_view path) const {
  if (const auto found = keys_.find(path); found != keys_.end()) return &options_[found->second];
  const std::size_t dot = path.rfind('.');
  const std::string_view last = dot == std::string_view::npos ? path : path.substr(dot + 1);
  const Option* option = find(last);
  if (option == nullptr) {
    const auto alias = keys_.find(last);
    option = alias == keys_.end() ? nullptr : &options_[alias->second];
  }
  return option != nullptr && option->where != Where::stack && option->where != Where::harness
             ? option
             : nullptr;
}

const std::vector<std::string>* OptionTable::enumeration(std::string_view name) const {
  const auto found = enumerations_.find(name);
  return found == enumerations_.end() ? nullptr : &found->second;
}

}  // namespace graphproof::dialect
