#include "matrix/dialect/command_line.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>

namespace graphproof::dialect {
namespace {

using matrix::AxisType;
using matrix::Value;

// Rules of matrix/rules/megatron-lm/near.json.
constexpr const char* kBadValue = "RN02";
constexpr const char* kMissingValue = "RN03";
constexpr const char* kRetiredFlag = "RN18";

bool quotes_needed(const std::string& word) {
  return word.empty() || std::any_of(word.begin(), word.end(), [](char c) {
           const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                              (c >= '0' && c <= '9') ||
                              std::string_view("_-+./:,=@%").find(c) != std::string_view::npos;
           return !plain;
         });
}

// argparse reads -1 and -.5 as values if no option looks like a number.
bool negative_number(const std::string& word) {
  if (word.size() < 2 || word[0] != '-') return false;
  const std::string digits = word.substr(1);
  return digits.find_first_not_of("0123456789.") == std::string::npos &&
         std::count(digits.begin(), digits.end(), '.') <= 1 && digits.back() != '.';
}

bool looks_like_flag(const std::string& word) {
  return word.size() >= 2 && word[0] == '-' && !negative_number(word) &&
         word.find(' ') == std::string::npos;
}

// Reads an integer as Python's int() does: with a sign, and underscores between digits.
std::optional<std::int64_t> python_integer(std::string text) {
  if (text.find("__") != std::string::npos || text.empty() || text.front() == '_' ||
      text.back() == '_')
    return std::nullopt;
  text.erase(std::remove(text.begin(), text.end(), '_'), text.end());
  if (text.size() > 1 && text[0] == '+' && text[1] != '-') text.erase(0, 1);
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

std::optional<double> python_float(const std::string& text) {
  if (text.empty() || text.find_first_of("xX ") != std::string::npos) return std::nullopt;
  char* end = nullptr;
  const double number = std::strtod(text.c_str(), &end);
  return end == text.c_str() + text.size() ? std::optional<double>(number) : std::nullopt;
}

std::vector<std::string> split_commas(const std::string& text) {
  std::vector<std::string> parts;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

bool among(const std::vector<std::string>& words, const std::string& word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

class Reader {
 public:
  Reader(const Dialect& dialect, const std::vector<std::string>& words, std::size_t begin,
         bool harness)
      : dialect_(dialect), words_(words), at_(begin), harness_(harness), line_(shell_line(words)) {
    reading_.configuration = Configuration::defaults(
        dialect.options, harness ? Surface::harness : Surface::command_line);
    std::size_t offset = 0;
    for (const std::string& word : words) {
      offsets_.push_back(offset);
      offset += shell_line({word}).size() + 1;
    }
  }

  Reading run() {
    while (at_ < words_.size()) read_one();
    // argparse reports unknown flags only after it has read everything else.
    for (Finding& finding : unknown_) reading_.findings.push_back(std::move(finding));
    return std::move(reading_);
  }

 private:
  matrix::Place place(std::size_t index) const {
    return matrix::place_in("command line", line_, offsets_[index]);
  }

  void add(std::vector<Finding>& list, const std::string& rule, const std::string& option,
           std::string got, std::string want, std::size_t index, std::string next = "",
           bool unknown = false) {
    Finding finding = finding_of(dialect_.rule(rule), Stage::cli, std::move(got), std::move(want));
    finding.option = option;
    finding.place = place(index);
    finding.unknown = unknown;
    if (!next.empty()) finding.next = std::move(next);
    list.push_back(std::move(finding));
  }

  void read_one() {
    const std::size_t index = at_++;
    const std::string& word = words_[index];
    if (harness_ && !looks_like_flag(word) && override_of_recipe(word, index)) return;
    if (!looks_like_flag(word)) {
      add(unknown_, kUnknownFlag, "", word, "an option before each value", index,
          "remove it, or put it after the option that it belongs to");
      return;
    }
    const Flag* flag = dialect_.options.flag(word, harness_);
    std::optional<std::string> attached;
    const std::size_t equals = word.find('=');
    if (flag == nullptr && equals != std::string::npos) {
      flag = dialect_.options.flag(word.substr(0, equals), harness_);
      attached = word.substr(equals + 1);
    }
    if (flag == nullptr) return unknown_flag(index, word.substr(0, equals));
    const Option* written = &dialect_.options.options()[flag->option];
    if (written->where == Where::retired) {
      const Option* today = dialect_.options.find(written->renamed_to);
      add(unknown_, kRetiredFlag, written->renamed_to, word.substr(0, equals),
          "`" + flag_of(*today, flag->off) + "`", index, "write " + flag_of(*today, flag->off));
      written = today;
    }
    const Option& option = *written;
    reading_.configuration.places[option.name()] = place(index);
    reading_.configuration.unreadable.erase(option.name());
    std::vector<std::string> values;
    if (attached)
      values.push_back(*attached);
    else
      while (at_ < words_.size() && values.size() < most(option) && !looks_like_flag(words_[at_]))
        values.push_back(words_[at_++]);
    if (values.empty() && option.arity == Arity::optional && option.constant)
      return take(option, *option.constant);
    if (values.empty() && option.arity == Arity::count && option.count == 0)
      return take(option, option.constant ? *option.constant : Value(!flag->off));
    if (attached && option.arity == Arity::count && option.count == 0)
      return refuse(kBadValue, option, *attached,
                    "no value: " + word.substr(0, equals) + " takes none", index);
    const bool too_few = option.arity == Arity::one_or_more
                             ? values.empty()
                             : option.arity == Arity::count && values.size() < option.count;
    if (too_few)
      return refuse(
          kMissingValue, option,
          values.empty() ? "nothing after " + word : std::to_string(values.size()) + " values",
          option.arity == Arity::one_or_more
              ? "at least one value"
              : std::to_string(option.count) + (option.count == 1 ? " value" : " values"),
          index);
    convert(option, values, index);
  }

  static std::string flag_of(const Option& option, bool off) {
    const std::vector<std::string>& flags = off ? option.off_flags : option.flags;
    return flags.empty() ? option.name() : flags.front();
  }

  // A harness also accepts fields of its configuration by their path:
  // model.cuda_graph_modules=[attn,mlp].
  bool override_of_recipe(const std::string& word, std::size_t index) {
    const std::size_t equals = word.find('=');
    const std::size_t begin = word.find_first_not_of('+');
    if (equals == std::string::npos || begin >= equals) return false;
    const Option* option = dialect_.options.key(word.substr(begin, equals - begin));
    if (option == nullptr || option->where == Where::retired) return false;
    std::string value = word.substr(equals + 1);
    reading_.configuration.places[option->name()] = place(index);
    reading_.configuration.unreadable.erase(option->name());
    if (value == "null")
      take(*option, matrix::Absent{});
    else if (value == "[]")
      take(*option, std::vector<std::string>());
    else if (!option->frequency && value.size() > 2 && value.front() == '[' && value.back() == ']')
      convert(*option, {value.substr(1, value.size() - 2)}, index);
    else
      convert(*option, {value}, index);
    return true;
  }

  static std::size_t most(const Option& option) {
    return option.arity == Arity::count      ? option.count
           : option.arity == Arity::optional ? 1
                                             : static_cast<std::size_t>(-1);
  }

  void take(const Option& option, Value value) {
    reading_.configuration.set(dialect_.options, option.name(), std::move(value));
  }

  void refuse(const std::string& rule, const Option& option, std::string got, std::string want,
              std::size_t index) {
    add(reading_.findings, rule, option.name(), std::move(got), std::move(want), index);
    reading_.configuration.values[option.name()] = matrix::Unknown{};
    reading_.configuration.unreadable.insert(option.name());
  }

  void convert(const Option& option, const std::vector<std::string>& values, std::size_t index) {
    const std::string& rule = option.refused_by.cli;
    const std::vector<std::string>& choices = option.axis.values;
    const std::string one_of = "one of " + matrix::listed(choices);
    if (option.frequency) {
      // Megatron-LM's own parser accepts no space inside of a pattern.
      const bool spaced = !harness_ && values[0].find(' ') != std::string::npos;
      const auto list = spaced ? std::nullopt : frequency_list(values[0]);
      return list ? take(option, *list)
                  : refuse(rule, option, values[0],
                           "a number N, or a pattern such as ([0]*1+[1]*3)", index);
    }
    if (option.axis.type == AxisType::words) {
      const std::vector<std::string> words = harness_ ? split_commas(values[0]) : values;
      for (const std::string& word : words)
        if (!choices.empty() && !among(choices, word)) {
          const bool joined = word.find(',') != std::string::npos;
          return refuse(rule, option, word, one_of + (joined ? ", separated by spaces" : ""),
                        index);
        }
      return take(option, words);
    }
    const std::string& text = values.back();
    if (!choices.empty() && !among(choices, text)) return refuse(rule, option, text, one_of, index);
    switch (option.axis.type) {
      case AxisType::integer:
        if (const auto number = python_integer(text)) return take(option, *number);
        return refuse(rule, option, text, "an integer", index);
      case AxisType::number:
        if (const auto number = python_float(text)) return take(option, *number);
        return refuse(rule, option, text, "a number", index);
      case AxisType::boolean: {
        std::string lower = text;
        std::transform(lower.begin(), lower.end(), lower.begin(),
                       [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
        for (const char* yes : {"true", "1", "yes", "t", "y"})
          if (lower == yes) return take(option, true);
        for (const char* no : {"false", "0", "no", "f", "n"})
          if (lower == no) return take(option, false);
        return refuse(rule, option, text, "true or false", index);
      }
      default:
        if (values.size() == 1) return take(option, text);
        std::string joined;
        for (const std::string& value : values) joined += (joined.empty() ? "" : " ") + value;
        return take(option, joined);
    }
  }

  // Upstream's parser refuses a misspelt or shortened flag. A flag that resembles no known one may
  // belong to the user's own training script, which is not known here.
  void unknown_flag(std::size_t index, const std::string& flag) {
    while (at_ < words_.size() && !looks_like_flag(words_[at_])) ++at_;
    std::string dest =
        flag.substr(flag.find_first_not_of('-') == std::string::npos ? flag.size()
                                                                     : flag.find_first_not_of('-'));
    std::replace(dest.begin(), dest.end(), '-', '_');
    const Option* only_config = dialect_.options.find(dest);
    if (only_config != nullptr && !only_config->versions.include(dialect_.version))
      return add(unknown_, kUnknownFlag, dest, flag, "a version of upstream that has it", index,
                 "leave it out, or use a version that has it instead of " + dialect_.version);
    if (only_config != nullptr && only_config->where == Where::config) {
      const std::string& own = only_config->refused_by.cli;
      return add(unknown_, own == kBadValue ? kUnknownFlag : own, dest, flag,
                 "no such flag: `" + dest + "` exists in the configuration only", index,
                 "set `" + dest + "` in the configuration object");
    }
    const std::vector<std::string> flags = dialect_.options.flags(harness_);
    const std::string underscored = "--" + dest;
    std::string dashed = underscored, near;
    std::replace(dashed.begin() + 2, dashed.end(), '_', '-');
    for (const std::string& candidate : flags)
      if (near.empty() && ((flag.size() > 4 && candidate.starts_with(flag)) ||
                           candidate == dashed || candidate == underscored))
        near = candidate;
    if (near.empty()) near = matrix::nearest_name(flag, flags);
    const bool of_graphs =
        dest.find("cuda_graph") != std::string::npos;  // the table has every option of CUDA graphs
    add(unknown_, kUnknownFlag, "", flag,
        near.empty() ? "an option of this dialect" : "`" + near + "`", index,
        near.empty() && of_graphs
            ? "`graphproof list` and upstream's --help show the options; remove it"
        : near.empty()
            ? "see that the training script itself has " + flag + "; upstream's parser does not"
            : "did you mean `" + near + "`? Options can't be shortened",
        near.empty() && !of_graphs);
  }

  const Dialect& dialect_;
  const std::vector<std::string>& words_;
  std::size_t at_;
  bool harness_;
  std::string line_;
  std::vector<std::size_t> offsets_;
  Reading reading_;
  std::vector<Finding> unknown_;
};

}  // namespace

Program read_program(const std::vector<std::string>& words) {
  Program program;
  std::size_t script = words.size();
  for (std::size_t i = 0; i < words.size() && script == words.size(); ++i)
    if (words[i].size() > 3 && words[i].ends_with(".py")) script = i;
  for (; program.first_option < words.size(); ++program.first_option) {
    const std::string& word = words[program.first_option];
    const std::size_t equals = word.find('=');
    const bool name = equals != std::string::npos && equals > 0 && word[0] != '-' &&
                      std::all_of(word.begin(), word.begin() + static_cast<std::ptrdiff_t>(equals),
                                  [](unsigned char c) { return std::isalnum(c) || c == '_'; });
    if (!name) break;
    program.environment.emplace_back(word.substr(0, equals), word.substr(equals + 1));
  }
  if (script == words.size()) return program;
  std::optional<std::int64_t> per_node, nodes;
  for (std::size_t i = program.first_option; i < script; ++i) {
    const std::size_t equals = words[i].find('=');
    const std::string flag = words[i].substr(0, equals);
    const auto value = python_integer(equals != std::string::npos ? words[i].substr(equals + 1)
                                      : i + 1 < script            ? words[i + 1]
                                                                  : "");
    for (const char* name : {"--nproc-per-node", "--nproc_per_node"})
      if (flag == name) per_node = value;
    if (flag == "--nnodes") nodes = value;
  }
  if (per_node) program.world_size = *per_node * nodes.value_or(1);
  program.first_option = script + 1;
  return program;
}

Reading read_command_line(const Dialect& dialect, const std::vector<std::string>& words,
                          std::size_t begin, bool harness) {
  return Reader(dialect, words, begin, harness).run();
}

std::string shell_line(const std::vector<std::string>& words) {
  std::string line;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (i > 0) line += ' ';
    if (!quotes_needed(words[i])) {
      line += words[i];
      continue;
    }
    line += '\'';
    for (const char c : words[i]) line += c == '\'' ? "'\\''" : std::string(1, c);
    line += '\'';
  }
  return line;
}

std::vector<std::string> shell_words(const std::string& line) {
  std::vector<std::string> words;
  std::string word;
  bool inside = false;
  char quote = 0;
  for (std::size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (quote != 0) {
      if (c == quote)
        quote = 0;
      else
        word += c;
    } else if (c == '\'' || c == '"') {
      quote = c;
      inside = true;
    } else if (c == '\\' && i + 1 < line.size()) {
      if (line[++i] != '\n') word += line[i], inside = true;
    } else if (c == ' ' || c == '\n' || c == '\t') {
      if (inside) words.push_back(word);
      word.clear();
      inside = false;
    } else {
      word += c;
      inside = true;
    }
  }
  if (inside) words.push_back(word);
  return words;
}

}  // namespace graphproof::dialect
