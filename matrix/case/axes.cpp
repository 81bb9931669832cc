#include "matrix/case/axes.h"

#include <algorithm>
#include <cassert>
#include <charconv>
#include <limits>
#include <optional>

namespace graphproof::matrix {
namespace {

constexpr std::string_view kOpenPrefix = "env.";
constexpr std::size_t kLongestText = 4096;  // bytes of an environment variable's value

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  while (true) {
    const std::size_t end = text.find(separator);
    parts.emplace_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

bool is_word(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-';
  });
}

CallForm parse_call_form(const Located& located) {
  const std::string text = located.string();
  const std::size_t open = text.find('(');
  CallForm form{.word = text.substr(0, open), .arguments = {}};
  if (!is_word(form.word) || (open != std::string::npos && text.back() != ')'))
    located.fail("a call form that can't be read", "word, word(a|b) or word(a|b,n)", "",
                 "correct the axis table");
  if (open == std::string::npos) return form;
  for (const std::string& part :
       split(std::string_view(text).substr(open + 1, text.size() - open - 2), ',')) {
    CallArgument argument;
    if (part == "n")
      argument.integer = true;
    else
      argument.words = split(part, '|');
    form.arguments.push_back(argument);
  }
  return form;
}

bool takes_list(const CallForm& form) {
  return form.arguments.size() == 1 && !form.arguments.front().integer;
}

std::string form_text(const CallForm& form) {
  std::string text = form.word;
  for (std::size_t i = 0; i < form.arguments.size(); ++i) {
    text += i == 0 ? "(" : ",";
    if (form.arguments[i].integer) text += "n";
    for (std::size_t w = 0; w < form.arguments[i].words.size(); ++w)
      text += (w == 0 ? "" : "|") + form.arguments[i].words[w];
  }
  return form.arguments.empty() ? text : text + ")";
}

[[noreturn]] void refuse(const Axis& axis, std::string_view name, std::string got, std::string want,
                         std::string next, const Place& place) {
  const std::string unit = axis.unit.empty() ? "" : " " + axis.unit;
  throw InputError({.what = "`" + got + "` is no value of axis `" + std::string(name) + "`",
                    .got = got,
                    .want = std::move(want) + unit,
                    .why = axis.meaning,
                    .next = std::move(next),
                    .place = place});
}

std::string parse_choice(const Axis& axis, std::string_view name, const std::string& text,
                         const Place& place) {
  if (std::find(axis.values.begin(), axis.values.end(), text) == axis.values.end())
    refuse(axis, name, text, "one of " + listed(axis.values),
           suggestion(text, axis.values, "choose one of them"), place);
  return text;
}

std::vector<std::string> parse_set(const Axis& axis, std::string_view name,
                                   const std::vector<std::string>& elements, const Place& place) {
  for (std::size_t i = 0; i < elements.size(); ++i) {
    parse_choice(axis, name, elements[i], place);
    if (std::find(elements.begin(), elements.begin() + static_cast<std::ptrdiff_t>(i),
                  elements[i]) != elements.begin() + static_cast<std::ptrdiff_t>(i))
      refuse(axis, name, elements[i] + " twice", "each value at most once", "remove one of them",
             place);
  }
  std::vector<std::string> ordered;
  for (const std::string& value : axis.values)
    if (std::find(elements.begin(), elements.end(), value) != elements.end())
      ordered.push_back(value);
  return ordered;
}

std::int64_t parse_integer(const Axis& axis, std::string_view name, std::int64_t number,
                           const Place& place) {
  if (number < axis.minimum || number > axis.maximum)
    refuse(axis, name, std::to_string(number),
           std::to_string(axis.minimum) + " to " + std::to_string(axis.maximum),
           "choose a number in the range", place);
  return number;
}

std::string parse_call(const Axis& axis, std::string_view name, const std::string& text,
                       const Place& place) {
  const Call call = split_call(text);
  std::vector<std::string> words, forms;
  for (const CallForm& form : axis.calls) {
    words.push_back(form.word);
    forms.push_back(form_text(form));
  }
  for (const CallForm& form : axis.calls) {
    if (form.word != call.word) continue;
    const std::string want = form_text(form);
    const auto check_word = [&](const CallArgument& argument, const std::string& got) {
      if (std::find(argument.words.begin(), argument.words.end(), got) == argument.words.end())
        refuse(axis, name, text, want,
               suggestion(got, argument.words, "use one of " + listed(argument.words)), place);
    };
    if (takes_list(form)) {
      if (call.arguments.empty())
        refuse(axis, name, text, want, "name at least one of " + listed(form.arguments[0].words),
               place);
      for (std::size_t i = 0; i < call.arguments.size(); ++i) {
        check_word(form.arguments[0], call.arguments[i]);
        if (std::find(call.arguments.begin(),
                      call.arguments.begin() + static_cast<std::ptrdiff_t>(i),
                      call.arguments[i]) != call.arguments.begin() + static_cast<std::ptrdiff_t>(i))
          refuse(axis, name, text, want, "name `" + call.arguments[i] + "` once", place);
      }
      std::string canonical;
      for (const std::string& word : form.arguments[0].words)
        if (std::find(call.arguments.begin(), call.arguments.end(), word) != call.arguments.end())
          canonical += (canonical.empty() ? "" : ",") + word;
      return form.word + "(" + canonical + ")";
    }
    if (call.arguments.size() != form.arguments.size())
      refuse(axis, name, text, want, "write it as " + want, place);
    std::string canonical;
    for (std::size_t i = 0; i < form.arguments.size(); ++i) {
      const std::string& got = call.arguments[i];
      if (form.arguments[i].integer) {
        std::int64_t number = 0;
        const auto [end, error] = std::from_chars(got.data(), got.data() + got.size(), number);
        if (error != std::errc() || end != got.data() + got.size() || number < 1 || number > 4096)
          refuse(axis, name, text, want + " with n from 1 to 4096", "write a number for n", place);
        canonical += (i == 0 ? "" : ",") + std::to_string(number);
      } else {
        check_word(form.arguments[i], got);
        canonical += (i == 0 ? "" : ",") + got;
      }
    }
    return form.arguments.empty() ? form.word : form.word + "(" + canonical + ")";
  }
  refuse(axis, name, text, "one of " + listed(forms),
         suggestion(call.word, words, "choose one of them"), place);
}

std::string parse_text(const Axis& axis, std::string_view name, const std::string& text,
                       const Place& place) {
  if (text.size() > kLongestText || text.find('\0') != std::string::npos)
    refuse(axis, name, text.substr(0, 40), "text of at most 4096 bytes without NUL", "shorten it",
           place);
  return text;
}

}  // namespace

std::string_view axis_type_name(AxisType type) {
  switch (type) {
    case AxisType::choice:
      return "choice";
    case AxisType::set:
      return "set";
    case AxisType::integer:
      return "integer";
    case AxisType::boolean:
      return "boolean";
    case AxisType::call:
      return "call";
    case AxisType::text:
      return "text";
    case AxisType::number:
      return "number";
    case AxisType::words:
      return "words";
  }
  return "";
}

AxisTable AxisTable::parse(const Document& document,
                           const std::map<std::string, std::vector<std::string>>& lists) {
  AxisTable table;
  const Located root(document);
  root.expect_keys({"schema", "version", "axes", "open"}, {});
  root.at("schema").word({"graphproof-axes/1"});
  table.version_ = static_cast<int>(root.at("version").integer(1, 1000));
  for (const Located& row : root.at("axes").items()) {
    row.expect_keys({"name", "type", "default", "meaning"},
                    {"values", "values_from", "minimum", "maximum", "unit"});
    Axis axis;
    axis.name = row.at("name").string();
    const std::string type =
        row.at("type").word({"choice", "set", "integer", "boolean", "call", "text"});
    axis.meaning = row.at("meaning").string();
    axis.unit = row.string_or("unit", "");
    for (const AxisType candidate : {AxisType::choice, AxisType::set, AxisType::integer,
                                     AxisType::boolean, AxisType::call, AxisType::text})
      if (type == axis_type_name(candidate)) axis.type = candidate;
    if (axis.type == AxisType::integer) {
      axis.minimum = row.at("minimum").integer(std::numeric_limits<std::int64_t>::min(),
                                               std::numeric_limits<std::int64_t>::max());
      axis.maximum =
          row.at("maximum").integer(axis.minimum, std::numeric_limits<std::int64_t>::max());
    } else if (row.has("values_from")) {
      const std::string list = row.at("values_from").string();
      const auto found = lists.find(list);
      if (found == lists.end())
        row.at("values_from")
            .fail("unknown list `" + list + "`", "a list that the product has", "",
                  "correct the axis table");
      axis.values.push_back(row.at("default").string());
      axis.values.insert(axis.values.end(), found->second.begin(), found->second.end());
    } else if (axis.type != AxisType::boolean && axis.type != AxisType::text) {
      for (const Located& value : row.at("values").items()) {
        if (axis.type == AxisType::call) axis.calls.push_back(parse_call_form(value));
        axis.values.push_back(value.string());
      }
    }
    axis.default_value =
        parse_value(axis, axis.name, row.at("default").json(), row.at("default").place());
    if (!table.index_.emplace(axis.name, table.axes_.size()).second)
      row.at("name").fail("the axis `" + axis.name + "` appears twice", "each axis once", "",
                          "remove one of them");
    table.names_.push_back(axis.name);
    table.axes_.push_back(std::move(axis));
  }

  const Located open = root.at("open");
  open.expect_keys({"prefix", "default", "meaning", "owned"}, {});
  if (open.at("prefix").string() != kOpenPrefix)
    open.at("prefix").fail("an open axis of another prefix", "env.", "", "correct the axis table");
  table.open_.name = kOpenPrefix;
  table.open_.type = AxisType::text;
  table.open_.default_value = open.at("default").string();
  table.open_.meaning = open.at("meaning").string();
  for (const auto& [variable, axis] : open.at("owned").members()) {
    if (table.index_.count(axis.string()) == 0)
      axis.fail("unknown axis `" + axis.string() + "`", "an axis of this table", "",
                "correct the axis table");
    table.owned_[variable] = axis.string();
  }
  return table;
}

AxisTable AxisTable::of(std::vector<Axis> axes, Axis open, std::string noun) {
  AxisTable table;
  table.axes_ = std::move(axes);
  table.open_ = std::move(open);
  table.noun_ = std::move(noun);
  for (std::size_t i = 0; i < table.axes_.size(); ++i) {
    table.names_.push_back(table.axes_[i].name);
    const bool added = table.index_.emplace(table.axes_[i].name, i).second;
    assert(added);
    static_cast<void>(added);
  }
  return table;
}

const Axis* AxisTable::find(std::string_view name) const {
  if (const auto found = index_.find(name); found != index_.end()) return &axes_[found->second];
  if (!name.starts_with(kOpenPrefix)) return nullptr;
  const std::string_view variable = name.substr(kOpenPrefix.size());
  const bool named = is_word(variable) && variable.find('-') == std::string_view::npos &&
                     !(variable[0] >= '0' && variable[0] <= '9');
  return named && owned_.find(variable) == owned_.end() ? &open_ : nullptr;
}

const Axis& AxisTable::at(std::string_view name, const Place& place) const {
  if (const Axis* axis = find(name)) return *axis;
  const std::string text(name);
  if (name.starts_with(kOpenPrefix)) {
    if (const auto owner = owned_.find(name.substr(kOpenPrefix.size())); owner != owned_.end())
      throw InputError({.what = "the environment variable of `" + text + "` belongs to axis `" +
                                owner->second + "`",
                        .got = text,
                        .want = "the axis `" + owner->second + "`",
                        .why = "two axes for one variable could contradict each other",
                        .next = "use `" + owner->second + "`",
                        .place = place});
    throw InputError({.what = "`" + text + "` names no environment variable",
                      .got = text,
                      .want = "env.NAME with letters, digits and _",
                      .why = "",
                      .next = "correct the name",
                      .place = place});
  }
  throw InputError({.what = "unknown axis `" + text + "`",
                    .got = text,
                    .want = "one of " + listed(names_),
                    .why = "",
                    .next = suggestion(name, names_, "`graphproof list axes` shows every axis"),
                    .place = place});
}

bool AxisTable::before(std::string_view left, std::string_view right) const {
  const auto rank = [&](std::string_view name) {
    const auto found = index_.find(name);
    return found == index_.end() ? axes_.size() : found->second;
  };
  const std::size_t left_rank = rank(left), right_rank = rank(right);
  return left_rank != right_rank ? left_rank < right_rank : left < right;
}

Value parse_value(const Axis& axis, std::string_view name, const Json& json, const Place& place) {
  const auto wrong_type = [&](const std::string& want) {
    std::string got = json.dump();
    if (got.size() > 80) got = got.substr(0, 77) + "...";
    throw InputError({.what = "a value of the wrong type for axis `" + std::string(name) + "`",
                      .got = got,
                      .want = want,
                      .why = "types are strict: \"4\" is not 4",
                      .next = "write " + want,
                      .place = place});
  };
  switch (axis.type) {
    case AxisType::choice:
      if (!json.is_string()) wrong_type("a text, one of " + listed(axis.values));
      return parse_choice(axis, name, json.get<std::string>(), place);
    case AxisType::call:
      if (!json.is_string()) wrong_type("a text, one of " + listed(axis.values));
      return parse_call(axis, name, json.get<std::string>(), place);
    case AxisType::text:
      if (!json.is_string()) wrong_type("a text");
      return parse_text(axis, name, json.get<std::string>(), place);
    case AxisType::boolean:
      if (!json.is_boolean()) wrong_type("true or false");
      return json.get<bool>();
    case AxisType::integer:
      if (!json.is_number_integer()) wrong_type("an integer");
      if (json.is_number_unsigned() &&
          json.get<std::uint64_t>() >
              static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()))
        refuse(axis, name, json.dump(),
               std::to_string(axis.minimum) + " to " + std::to_string(axis.maximum),
               "choose a number in the range", place);
      return parse_integer(axis, name, json.get<std::int64_t>(), place);
    case AxisType::number:
      if (!json.is_number()) wrong_type("a number");
      return json.get<double>();
    case AxisType::set:
    case AxisType::words: {
      const std::string want =
          axis.values.empty() ? "an array of texts" : "an array of " + listed(axis.values);
      std::vector<std::string> elements;
      if (!json.is_array()) wrong_type(want);
      for (const Json& element : json) {
        if (!element.is_string()) wrong_type(want);
        elements.push_back(element.get<std::string>());
      }
      if (axis.type == AxisType::set) return parse_set(axis, name, elements, place);
      if (!axis.values.empty())
        for (const std::string& element : elements) parse_choice(axis, name, element, place);
      return elements;
    }
  }
  assert(false);
  return Absent{};
}

Value parse_value_text(const Axis& axis, std::string_view name, std::string_view text,
                       const Place& place) {
  const auto unquoted = [&](std::string_view word) -> std::string {
    if (word.size() < 2 || word.front() != '"') return std::string(word);
    const nlohmann::json json = nlohmann::json::parse(word, nullptr, false);
    if (!json.is_string())
      refuse(axis, name, std::string(word), "a closed JSON text", "close the quotes", place);
    return json.get<std::string>();
  };
  switch (axis.type) {
    case AxisType::boolean:
      if (text == "true") return true;
      if (text == "false") return false;
      refuse(axis, name, std::string(text), "true or false", "write true or false", place);
    case AxisType::integer: {
      std::int64_t number = 0;
      const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
      if (error != std::errc() || end != text.data() + text.size())
        refuse(axis, name, std::string(text),
               "an integer from " + std::to_string(axis.minimum) + " to " +
                   std::to_string(axis.maximum),
               "write a number", place);
      return parse_integer(axis, name, number, place);
    }
    case AxisType::number: {
      double number = 0;
      const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
      if (error != std::errc() || end != text.data() + text.size())
        refuse(axis, name, std::string(text), "a number", "write a number", place);
      return number;
    }
    case AxisType::set:
    case AxisType::words: {
      if (text.size() < 2 || text.front() != '[' || text.back() != ']')
        refuse(axis, name, std::string(text), "[a,b] with values among " + listed(axis.values),
               "put the values into brackets", place);
      std::vector<std::string> elements;
      text = text.substr(1, text.size() - 2);
      if (!text.empty())
        for (const std::string& element : split(text, ',')) elements.push_back(unquoted(element));
      return axis.type == AxisType::set ? Value(parse_set(axis, name, elements, place))
                                        : Value(elements);
    }
    case AxisType::choice:
      return parse_choice(axis, name, unquoted(text), place);
    case AxisType::call:
      return parse_call(axis, name, unquoted(text), place);
    case AxisType::text:
      return parse_text(axis, name, unquoted(text), place);
  }
  assert(false);
  return Absent{};
}

Call split_call(std::string_view text) {
  const std::size_t open = text.find('(');
  if (open == std::string_view::npos || text.back() != ')')
    return {.word = std::string(text), .arguments = {}};
  Call call{.word = std::string(text.substr(0, open)), .arguments = {}};
  const std::string_view inside = text.substr(open + 1, text.size() - open - 2);
  if (!inside.empty()) {
    for (const std::string& part : split(inside, ',')) {
      const std::size_t first = part.find_first_not_of(' '), last = part.find_last_not_of(' ');
      call.arguments.push_back(first == std::string::npos ? ""
                                                          : part.substr(first, last - first + 1));
    }
  }
  return call;
}

}  // namespace graphproof::matrix
