// A kind of evidence line is one struct with one table of its fields:
//
//   struct ScribbledLine {
//     static constexpr std::string_view kKind = "scribbled", kDoc = "...";
//     std::string arm;
//     std::int64_t step = 0;
//     template <class Visitor>
//     static void fields(Visitor& field) {
//       field("arm", &ScribbledLine::arm, "arm whose step this is", "lockstep_graph", kFilled);
//       field("step", &ScribbledLine::step, "step of the arm, from 0", 5, kCount);
//     }
//   };
//
// Writer (line_json), reader (read_line), JSON schema, example and reference page
// (line_description.h) all visit that table. Members may be bool, std::int64_t, double,
// std::string, Phase, Settings, another struct with a table, and std::vector, std::map (by name)
// and std::optional of these.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "reports/record/evidence/table/json_number.h"
#include "reports/record/text/fields.h"
#include "reports/record/verdict/phase.h"

namespace graphproof::record {

/// Names and their values, each a JSON text, number or boolean.
struct Settings : std::map<std::string, nlohmann::json> {
  using map::map;
};

/// An example value that is no literal of C++, as JSON text: a list or a map.
struct JsonText {
  std::string_view text;
};

/// The example value of a field. A member with a table of its own has none: its example consists of
/// the examples of its fields.
struct Example {
  constexpr Example() = default;
  constexpr Example(const char* text) : value(std::string_view(text)) {}
  constexpr Example(JsonText text) : value(text) {}
  constexpr Example(bool flag) : value(flag) {}
  constexpr Example(int number) : value(std::int64_t{number}) {}
  constexpr Example(std::int64_t number) : value(number) {}
  constexpr Example(double number) : value(number) {}

  std::variant<std::monostate, std::string_view, JsonText, bool, std::int64_t, double> value;
};

/// The limits of a field's value, in addition to its type. For a list they apply to each element,
/// for a map to each value.
///
/// The reader enforces `one_of` and what may be null, because these belong to the type. Everything
/// else is only in the schema, and tests hold the writers to it: whether a value is in its range is
/// judged by checks, and a line with one out of range is not damaged.
struct FieldLimits {
  std::optional<std::int64_t> at_least = {}, more_than = {}, min_items = {};
  bool filled = false;            // not the empty text
  std::string_view pattern = {};  // regular expression of the whole text
  std::string_view one_of = {};   // words, separated by '|'
  std::int64_t since = 1;         // the first evidence revision that has the field
  bool null_when_empty = false;   // an empty std::optional is written as null and not left out
  bool may_be_null = false;       // reads null as an empty std::optional, and writes nothing
  std::string_view null_exactly_if = {};  // a boolean field of the line; with null_when_empty
};

inline constexpr FieldLimits kFilled{.filled = true};
inline constexpr FieldLimits kCount{.at_least = 0};
inline constexpr FieldLimits kPositive{.at_least = 1};
inline constexpr FieldLimits kDigest{.pattern = "^[0-9a-f]{16}$"};
/// A digest; empty if there was nothing to digest.
inline constexpr FieldLimits kDigestOrEmpty{.pattern = "^([0-9a-f]{16})?$"};

/// Why a line does not fit its table. `place` is the path of the value in the line, such as
/// moved[0].now.
struct Misfit {
  std::string place, got, want;
};
/// "`moved[0].now` is 3, want a text"
std::string to_text(const Misfit& misfit);

/// Whether `word` is one of `words`, which are separated by '|'.
bool is_one_of(std::string_view word, std::string_view words);

/// A list of kinds of lines.
template <class... Lines>
struct Kinds {};

/// `Type` is one list of the kinds of two or more lists.
template <class... Lists>
struct Joined;
template <class... Lines>
struct Joined<Kinds<Lines...>> {
  using Type = Kinds<Lines...>;
};
template <class... First, class... Second, class... Rest>
struct Joined<Kinds<First...>, Kinds<Second...>, Rest...>
    : Joined<Kinds<First..., Second...>, Rest...> {};

struct AnyVisitor;

/// A struct with a table of fields.
template <class T>
concept HasFields = requires(AnyVisitor& visitor) { T::fields(visitor); };

/// A struct of one kind of evidence line.
template <class T>
concept LineKind = HasFields<T> && requires {
  T::kKind;
  T::kDoc;
};

/// The first evidence revision that has lines of the kind T: its `kSince`, or 1 if it has none.
template <LineKind T>
constexpr std::int64_t kind_since() {
  if constexpr (requires { T::kSince; }) return T::kSince;
  return 1;
}
/// The newest of these revisions, but at least `least`.
template <class... Lines>
constexpr std::int64_t newest_revision(std::int64_t least, Kinds<Lines...>) {
  return std::max({least, kind_since<Lines>()...});
}

/// How a member of type T is written, read and described; one specialisation a type.
template <class T>
struct FieldType;

/// Misfit of a value of the wrong type.
Misfit wrong_type(const nlohmann::json& value, std::string want);

template <>
struct FieldType<bool> {
  static Json write(bool value) { return value; }
  static std::optional<Misfit> read(const nlohmann::json& value, bool& into, const FieldLimits&);
  static Json schema(const FieldLimits&);
};

template <>
struct FieldType<std::int64_t> {
  static Json write(std::int64_t value) { return value; }
  static std::optional<Misfit> read(const nlohmann::json& value, std::int64_t& into,
                                    const FieldLimits&);
  static Json schema(const FieldLimits&);
};

/// Without a lower limit the number may be NaN or infinite.
template <>
struct FieldType<double> {
  static Json write(double value) { return number(value); }
  static std::optional<Misfit> read(const nlohmann::json& value, double& into, const FieldLimits&);
  static Json schema(const FieldLimits&);
};

template <>
struct FieldType<std::string> {
  static Json write(const std::string& value) { return value; }
  static std::optional<Misfit> read(const nlohmann::json& value, std::string& into,
                                    const FieldLimits&);
  static Json schema(const FieldLimits&);
};

template <>
struct FieldType<Phase> {
  static Json write(Phase value) { return name(value); }
  static std::optional<Misfit> read(const nlohmann::json& value, Phase& into, const FieldLimits&);
  static Json schema(const FieldLimits&);
};

template <>
struct FieldType<Settings> {
  static Json write(const Settings& value);
  static std::optional<Misfit> read(const nlohmann::json& value, Settings& into,
                                    const FieldLimits&);
  static Json schema(const FieldLimits&);
};

template <class T>
struct FieldType<std::vector<T>> {
  static Json write(const std::vector<T>& value) {
    Json list = Json::array();
    for (const auto& element : value) list.push_back(FieldType<T>::write(element));
    return list;
  }
  static std::optional<Misfit> read(const nlohmann::json& value, std::vector<T>& into,
                                    const FieldLimits& limits) {
    if (!value.is_array()) return wrong_type(value, "a list");
    into.reserve(value.size());
    for (const nlohmann::json& element : value) {
      T read{};
      if (auto misfit = FieldType<T>::read(element, read, limits)) {
        misfit->place.insert(0, "[" + std::to_string(into.size()) + "]");
        return misfit;
      }
      into.push_back(std::move(read));
    }
    return std::nullopt;
  }
  static Json schema(const FieldLimits& limits) {
    Json schema = {{"type", "array"}, {"items", FieldType<T>::schema(limits)}};
    if (limits.min_items) schema["minItems"] = *limits.min_items;
    return schema;
  }
};

template <class T>
struct FieldType<std::map<std::string, T>> {
  static Json write(const std::map<std::string, T>& value) {
    Json object = Json::object();
    for (const auto& [key, inner] : value) object[key] = FieldType<T>::write(inner);
    return object;
  }
  static std::optional<Misfit> read(const nlohmann::json& value, std::map<std::string, T>& into,
                                    const FieldLimits& limits) {
    if (!value.is_object()) return wrong_type(value, "an object");
    for (const auto& [key, inner] : value.items())
      if (auto misfit = FieldType<T>::read(inner, into[key], limits)) {
        misfit->place.insert(0, "." + key);
        return misfit;
      }
    return std::nullopt;
  }
  static Json schema(const FieldLimits& limits) {
    return {{"type", "object"}, {"additionalProperties", FieldType<T>::schema(limits)}};
  }
};

/// Sets the key of each field in `object`.
template <HasFields T>
class FieldWriter {
 public:
  FieldWriter(const T& line, Json& object) : line_(line), object_(object) {}

  template <class M>
  void operator()(std::string_view name, M T::* member, std::string_view, const Example& = {},
                  const FieldLimits& = {}) {
    object_[std::string(name)] = FieldType<M>::write(line_.*member);
  }
  template <class M>
  void operator()(std::string_view name, std::optional<M> T::* member, std::string_view,
                  const Example& = {}, const FieldLimits& limits = {}) {
    if (const std::optional<M>& value = line_.*member)
      object_[std::string(name)] = FieldType<M>::write(*value);
    else if (limits.null_when_empty)
      object_[std::string(name)] = nullptr;
  }
  /// A member whose fields are written next to the others, not in an object of their own.
  template <HasFields M>
  void part(M T::* member) {
    FieldWriter<M> inner(line_.*member, object_);
    M::fields(inner);
  }

 private:
  const T& line_;
  Json& object_;
};

/// Reads the fields of `object` in the order of the table, up to the first that does not fit.
template <HasFields T>
class FieldReader {
 public:
  FieldReader(const nlohmann::json& object, T& line) : object_(object), line_(line) {}

  template <class M>
  void operator()(std::string_view name, M T::* member, std::string_view, const Example& = {},
                  const FieldLimits& limits = {}) {
    if (misfit_) return;
    const auto found = object_.find(name);
    if (found == object_.end())
      misfit_ = Misfit{std::string(name), "missing", "the field"};
    else
      keep(name, FieldType<M>::read(*found, line_.*member, limits));
  }
  template <class M>
  void operator()(std::string_view name, std::optional<M> T::* member, std::string_view,
                  const Example& = {}, const FieldLimits& limits = {}) {
    if (misfit_) return;
    const auto found = object_.find(name);
    if (found == object_.end()) {
      if (limits.null_when_empty) misfit_ = Misfit{std::string(name), "missing", "the field"};
      return;
    }
    if (found->is_null() && (limits.null_when_empty || limits.may_be_null)) return;
    keep(name, FieldType<M>::read(*found, (line_.*member).emplace(), limits));
  }
  template <HasFields M>
  void part(M T::* member) {
    if (misfit_) return;
    FieldReader<M> inner(object_, line_.*member);
    M::fields(inner);
    misfit_ = std::move(inner).misfit();
  }

  std::optional<Misfit> misfit() && { return std::move(misfit_); }

 private:
  void keep(std::string_view name, std::optional<Misfit> misfit) {
    if (misfit) misfit->place.insert(0, name);
    misfit_ = std::move(misfit);
  }

  const nlohmann::json& object_;
  T& line_;
  std::optional<Misfit> misfit_;
};

/// The description of a field in a table.
struct FieldDescription {
  std::string name, doc;
  Json schema, example;
  bool required = true;
  std::int64_t since = 1;
  std::string null_exactly_if;
};

/// The schema of an object with these fields: all of them, those of `required` always, no others.
Json object_schema(const std::vector<FieldDescription>& fields);
/// An object of the fields' examples.
Json object_example(const std::vector<FieldDescription>& fields);
Json json_of(const Example& example);

template <HasFields T>
std::vector<FieldDescription> describe_fields();

/// The example of a member that has none of its own, from the table of its type.
template <class M>
Json example_of(const Example& example) {
  if constexpr (HasFields<M>)
    return object_example(describe_fields<M>());
  else
    return json_of(example);
}
template <class M>
  requires HasFields<typename M::value_type>
Json example_of(const Example&) {
  return Json::array({object_example(describe_fields<typename M::value_type>())});
}

template <HasFields T>
class FieldDescriber {
 public:
  explicit FieldDescriber(std::vector<FieldDescription>& into) : into_(into) {}

  template <class M>
  void operator()(std::string_view name, M T::*, std::string_view doc, const Example& example = {},
                  const FieldLimits& limits = {}) {
    add(name, doc, FieldType<M>::schema(limits), example_of<M>(example), limits, true);
  }
  template <class M>
  void operator()(std::string_view name, std::optional<M> T::*, std::string_view doc,
                  const Example& example = {}, const FieldLimits& limits = {}) {
    Json schema = FieldType<M>::schema(limits);
    if (limits.null_when_empty || limits.may_be_null)
      schema = {{"oneOf", Json::array({Json{{"type", "null"}}, std::move(schema)})}};
    add(name, doc, std::move(schema), example_of<M>(example), limits, limits.null_when_empty);
  }
  template <HasFields M>
  void part(M T::*) {
    FieldDescriber<M> inner(into_);
    M::fields(inner);
  }

 private:
  void add(std::string_view name, std::string_view doc, Json schema, Json example,
           const FieldLimits& limits, bool required) {
    into_.push_back({.name = std::string(name),
                     .doc = std::string(doc),
                     .schema = std::move(schema),
                     .example = std::move(example),
                     .required = required,
                     .since = limits.since,
                     .null_exactly_if = std::string(limits.null_exactly_if)});
  }

  std::vector<FieldDescription>& into_;
};

template <HasFields T>
std::vector<FieldDescription> describe_fields() {
  std::vector<FieldDescription> fields;
  FieldDescriber<T> describer(fields);
  T::fields(describer);
  return fields;
}

template <HasFields T>
struct FieldType<T> {
  static Json write(const T& value) {
    Json object = Json::object();
    FieldWriter<T> writer(value, object);
    T::fields(writer);
    return object;
  }
  static std::optional<Misfit> read(const nlohmann::json& value, T& into, const FieldLimits& = {}) {
    if (!value.is_object()) return wrong_type(value, "an object");
    FieldReader<T> reader(value, into);
    T::fields(reader);
    auto misfit = std::move(reader).misfit();
    if (misfit) misfit->place.insert(0, ".");
    return misfit;
  }
  static Json schema(const FieldLimits&) { return object_schema(describe_fields<T>()); }
};

/// The line as JSON: {"kind": ..., and the fields in the order of their table}.
template <LineKind T>
Json line_json(const T& line) {
  Json object = {{"kind", T::kKind}};
  FieldWriter<T> writer(line, object);
  T::fields(writer);
  return object;
}

/// Reads a JSON object of kind T::kKind into `line`. Returns why it does not fit the table, and
/// nothing if it fits. Fields that the table does not have are ignored.
template <LineKind T>
std::optional<Misfit> read_line(const nlohmann::json& object, T& line) {
  FieldReader<T> reader(object, line);
  T::fields(reader);
  return std::move(reader).misfit();
}

}  // namespace graphproof::record
