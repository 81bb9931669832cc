#include "matrix/dialect/config_file.h"

#include <algorithm>

namespace graphproof::dialect {
namespace {

using matrix::Absent;
using matrix::AxisType;
using matrix::Json;
using matrix::Located;
using matrix::Unknown;
using matrix::Value;

constexpr const char* kUnknownKey = "RN04";
constexpr const char* kRetiredKey = "RN18";
constexpr int kDeepestNesting = 32;

std::vector<std::string> comma_list(const std::string& text) {
  std::vector<std::string> parts;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

class FileReader {
 public:
  explicit FileReader(const Dialect& dialect) : dialect_(dialect) {
    reading_.configuration = Configuration::defaults(dialect.options, Surface::configuration);
  }

  Reading run(const Located& root) {
    if (!root.json().is_object())
      root.fail("a configuration that is not an object", "an object of options", "",
                "write {\"cuda_graph_impl\": \"local\"}");
    section(root, "", 0);
    return std::move(reading_);
  }

 private:
  void section(const Located& object, const std::string& prefix, int depth) {
    if (depth > kDeepestNesting)
      object.fail("a configuration nested too deeply", std::to_string(kDeepestNesting) + " levels",
                  "", "flatten it");
    for (const auto& [key, value] : object.members()) {
      const std::string path = prefix.empty() ? key : prefix + "." + key;
      // Keys such as _target_ name a Python class. Some classes are options, because rules differ
      // between them.
      if (key.starts_with("_") && dialect_.options.key(path) == nullptr) continue;
      if ((key == "env" || key == "env_vars" || key == "environment") && value.json().is_object()) {
        environment(value);
        continue;
      }
      const Option* option = dialect_.options.key(path);
      if (option != nullptr && option->where == Where::retired)
        option = retired(*option, key, value);
      if (option != nullptr && !is_section(value))
        read(*option, value);
      else if (value.json().is_object() && !value.has("_args_"))
        section(value, path, depth + 1);
      else if (option == nullptr)
        unknown(key, value);
    }
  }

  // {"_target_": "....OptimizerConfig", "optimizer": "adam"} is a section; an object without fields
  // of its own is a value.
  static bool is_section(const Located& value) {
    if (!value.json().is_object() || value.has("_args_")) return false;
    return !value.has("_target_") ||
           std::any_of(value.json().items().begin(), value.json().items().end(),
                       [](const auto& member) { return !member.key().starts_with("_"); });
  }

  void environment(const Located& object) {
    for (const auto& [name, value] : object.members()) {
      reading_.configuration.places["env." + name] = value.place();
      reading_.configuration.values["env." + name] = value.json().is_null() ? Value(Absent{})
                                                     : value.json().is_string()
                                                         ? Value(value.string())
                                                         : Value(value.json().dump());
    }
  }

  // The option that has the value today.
  const Option* retired(const Option& option, const std::string& key, const Located& value) {
    Finding finding =
        finding_of(dialect_.rule(kRetiredKey), Stage::config, key, "`" + option.renamed_to + "`");
    finding.option = option.renamed_to;
    finding.place = value.key_place();
    finding.next = "write `" + option.renamed_to + "`";
    reading_.findings.push_back(std::move(finding));
    return dialect_.options.find(option.renamed_to);
  }

  void unknown(const std::string& key, const Located& value) {
    ++reading_.unknown_keys;
    std::vector<std::string> names;
    for (const Option& option : dialect_.options.options())
      if (option.where == Where::config || option.where == Where::both)
        names.push_back(option.name());
    const std::string near = matrix::nearest_name(key, names);
    if (near.empty()) return;
    Finding finding = finding_of(dialect_.rule(kUnknownKey), Stage::config, key, "`" + near + "`");
    finding.option = near;
    finding.place = value.key_place();
    finding.next = "did you mean `" + near + "`?";
    reading_.findings.push_back(std::move(finding));
  }

  void read(const Option& option, const Located& value) {
    reading_.configuration.places[option.name()] = value.place();
    reading_.configuration.unreadable.erase(option.name());
    const Json& json = value.json();
    if (json.is_null()) return take(option, Absent{});
    if (option.axis.type == AxisType::words) return read_list(option, value);
    if (json.is_object()) {
      const auto word = enumerator(value);
      if (word && option.axis.type == AxisType::choice) return read_word(option, *word, value);
      return take(option, Unknown{});  // a Python object that only upstream can build
    }
    switch (option.axis.type) {
      case AxisType::boolean:
        if (json.is_boolean()) return take(option, json.get<bool>());
        return refuse(option, option.refused_by.config_type, value, "true or false");
      case AxisType::integer:
        if (json.is_number_integer()) return take(option, json.get<std::int64_t>());
        return refuse(option, option.refused_by.config_type, value, "an integer");
      case AxisType::number:
        if (json.is_number()) return take(option, json.get<double>());
        return refuse(option, option.refused_by.config_type, value, "a number");
      case AxisType::choice:
        if (!json.is_string())
          return refuse(option, option.refused_by.config_type, value,
                        "one of " + matrix::listed(option.axis.values));
        return read_word(option, json.get<std::string>(), value);
      default:
        return take(option, json.is_string() ? Value(json.get<std::string>()) : Value(json.dump()));
    }
  }

  void read_word(const Option& option, const std::string& text, const Located& value) {
    const std::string word = bare(text);
    const std::vector<std::string>& words = option.axis.values;
    if (std::find(words.begin(), words.end(), word) == words.end())
      return refuse(option, option.refused_by.config, value, "one of " + matrix::listed(words));
    take(option, word);
  }

  void read_list(const Option& option, const Located& value) {
    const Json& json = value.json();
    if (option.frequency) {
      std::string pattern = json.is_string() ? json.get<std::string>() : json.dump();
      const auto list = frequency_list(pattern);
      return list ? take(option, *list)
                  : refuse(option, option.refused_by.config_type, value,
                           "a number, a pattern, or a list of 0 and 1");
    }
    std::vector<std::string> words;
    if (json.is_string()) {
      words = comma_list(json.get<std::string>());
      for (std::string& word : words) word = bare(word);
    } else if (json.is_array()) {
      for (const Located& item : value.items()) {
        const auto word = item.json().is_string() ? std::optional<std::string>(bare(item.string()))
                                                  : enumerator(item);
        if (word)
          words.push_back(*word);
        else if (option.axis.values.empty())
          words.push_back(item.json().dump());
        else
          return refuse(option, option.refused_by.config_type, item,
                        "words: " + matrix::listed(option.axis.values));
      }
    } else if (const auto word = enumerator(value)) {
      words.push_back(*word);
    } else {
      return refuse(option, option.refused_by.config_type, value, "a list, or one text");
    }
    for (const std::string& word : words)
      if (!option.axis.values.empty() &&
          std::find(option.axis.values.begin(), option.axis.values.end(), word) ==
              option.axis.values.end())
        return refuse(option, option.refused_by.config, value,
                      "one of " + matrix::listed(option.axis.values) + " instead of " + word);
    take(option, words);
  }

  // CudaGraphModule.attn is attn. After anything but a class name a dot is part of the text.
  std::string bare(const std::string& text) const {
    const std::size_t dot = text.find('.');
    return dot != std::string::npos && dialect_.options.enumeration(text.substr(0, dot)) != nullptr
               ? text.substr(dot + 1)
               : text;
  }

  // The word of {"_target_": "....CudaGraphScope", "_args_": [2]}. Enumerations are looked up by
  // name, because their numbers differ.
  std::optional<std::string> enumerator(const Located& value) const {
    if (!value.json().is_object() || !value.has("_target_") || !value.has("_args_"))
      return std::nullopt;
    const std::string target = value.at("_target_").string();
    const std::vector<std::string>* words =
        dialect_.options.enumeration(target.substr(target.rfind('.') + 1));
    const Json& arguments = value.at("_args_").json();
    if (words == nullptr || !arguments.is_array() || arguments.size() != 1) return std::nullopt;
    if (arguments[0].is_string()) return arguments[0].get<std::string>();
    if (!arguments[0].is_number_integer()) return std::nullopt;
    const auto number = arguments[0].get<std::int64_t>();
    return number >= 1 && number <= static_cast<std::int64_t>(words->size())
               ? std::optional<std::string>((*words)[static_cast<std::size_t>(number - 1)])
               : std::nullopt;
  }

  void take(const Option& option, Value value) {
    reading_.configuration.set(dialect_.options, option.name(), std::move(value));
  }

  void refuse(const Option& option, const std::string& rule, const Located& value,
              std::string want) {
    Finding finding =
        finding_of(dialect_.rule(rule), Stage::config, value.json().dump(), std::move(want));
    finding.option = option.name();
    finding.place = value.place();
    reading_.findings.push_back(std::move(finding));
    reading_.configuration.values[option.name()] = Unknown{};
    reading_.configuration.unreadable.insert(option.name());
  }

  const Dialect& dialect_;
  Reading reading_;
};

}  // namespace

Reading read_config_file(const Dialect& dialect, const matrix::Document& document) {
  return FileReader(dialect).run(Located(document));
}

}  // namespace graphproof::dialect
