#include "reports/record/evidence/table/field_table.h"

#include <algorithm>

namespace graphproof::record {
namespace {

/// The words of `words`, which are separated by '|'.
std::vector<std::string_view> split(std::string_view words) {
  std::vector<std::string_view> list;
  while (true) {
    const std::size_t end = words.find('|');
    list.push_back(words.substr(0, end));
    if (end == std::string_view::npos) return list;
    words.remove_prefix(end + 1);
  }
}

/// As much of a value as a message shows.
std::string shown(const nlohmann::json& value) {
  constexpr std::size_t kShownBytes = 80;
  std::string text = value.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
  if (text.size() > kShownBytes) text = text.substr(0, kShownBytes) + " ...";
  return text;
}

void add_minimum(Json& schema, const FieldLimits& limits) {
  if (limits.at_least) schema["minimum"] = *limits.at_least;
  if (limits.more_than) schema["exclusiveMinimum"] = *limits.more_than;
}

bool has_minimum(const FieldLimits& limits) { return limits.at_least || limits.more_than; }

bool is_scalar(const nlohmann::json& value) {
  return value.is_string() || value.is_number() || value.is_boolean();
}

}  // namespace

std::string to_text(const Misfit& misfit) {
  return "`" + misfit.place + "` is " + misfit.got + ", want " + misfit.want;
}

bool is_one_of(std::string_view word, std::string_view words) {
  const std::vector<std::string_view> list = split(words);
  return std::ranges::find(list, word) != list.end();
}

Misfit wrong_type(const nlohmann::json& value, std::string want) {
  return {.place = "", .got = shown(value), .want = std::move(want)};
}

std::optional<Misfit> FieldType<bool>::read(const nlohmann::json& value, bool& into,
                                            const FieldLimits&) {
  if (!value.is_boolean()) return wrong_type(value, "true or false");
  into = value.get<bool>();
  return std::nullopt;
}

Json FieldType<bool>::schema(const FieldLimits&) { return {{"type", "boolean"}}; }

std::optional<Misfit> FieldType<std::int64_t>::read(const nlohmann::json& value, std::int64_t& into,
                                                    const FieldLimits&) {
  if (!value.is_number_integer()) return wrong_type(value, "an integer");
  into = value.get<std::int64_t>();
  return std::nullopt;
}

Json FieldType<std::int64_t>::schema(const FieldLimits& limits) {
  Json schema = {{"type", "integer"}};
  add_minimum(schema, limits);
  return schema;
}

std::optional<Misfit> FieldType<double>::read(const nlohmann::json& value, double& into,
                                              const FieldLimits& limits) {
  if (value.is_number()) {
    into = value.get<double>();
  } else if (!has_minimum(limits) && value.is_string() &&
             is_one_of(value.get_ref<const std::string&>(), "nan|inf|-inf")) {
    into = number_from(value);
  } else {
    return wrong_type(value, has_minimum(limits) ? "a number" : "a number, nan, inf or -inf");
  }
  return std::nullopt;
}

Json FieldType<double>::schema(const FieldLimits& limits) {
  if (!has_minimum(limits)) return {{"$ref", "#/definitions/number"}};
  Json schema = {{"type", "number"}};
  add_minimum(schema, limits);
  return schema;
}

std::optional<Misfit> FieldType<std::string>::read(const nlohmann::json& value, std::string& into,
                                                   const FieldLimits& limits) {
  if (!value.is_string()) return wrong_type(value, "a text");
  into = value.get_ref<const std::string&>();
  if (limits.one_of.empty() || is_one_of(into, limits.one_of)) return std::nullopt;
  return wrong_type(value, "one of " + std::string(limits.one_of));
}

Json FieldType<std::string>::schema(const FieldLimits& limits) {
  if (!limits.one_of.empty()) return {{"enum", split(limits.one_of)}};
  Json schema = {{"type", "string"}};
  if (limits.filled) schema["minLength"] = 1;
  if (!limits.pattern.empty()) schema["pattern"] = limits.pattern;
  return schema;
}

std::optional<Misfit> FieldType<Phase>::read(const nlohmann::json& value, Phase& into,
                                             const FieldLimits&) {
  const auto phase =
      value.is_string() ? phase_from(value.get_ref<const std::string&>()) : std::nullopt;
  if (!phase) return wrong_type(value, "the name of a phase");
  into = *phase;
  return std::nullopt;
}

Json FieldType<Phase>::schema(const FieldLimits&) { return {{"$ref", "#/definitions/phase_name"}}; }

Json FieldType<Settings>::write(const Settings& value) {
  Json object = Json::object();
  for (const auto& [name, setting] : value) object[name] = setting;
  return object;
}

std::optional<Misfit> FieldType<Settings>::read(const nlohmann::json& value, Settings& into,
                                                const FieldLimits&) {
  if (!value.is_object()) return wrong_type(value, "an object");
  for (const auto& [name, setting] : value.items()) {
    if (!is_scalar(setting))
      return Misfit{"." + name, shown(setting), "a text, a number, true or false"};
    into.emplace(name, setting);
  }
  return std::nullopt;
}

Json FieldType<Settings>::schema(const FieldLimits&) {
  return {{"type", "object"},
          {"additionalProperties", {{"type", {"string", "integer", "boolean", "number"}}}}};
}

Json object_schema(const std::vector<FieldDescription>& fields) {
  Json required = Json::array(), properties = Json::object();
  for (const FieldDescription& field : fields) {
    if (field.required) required.push_back(field.name);
    properties[field.name] = field.schema;
  }
  return {{"type", "object"},
          {"additionalProperties", false},
          {"required", std::move(required)},
          {"properties", std::move(properties)}};
}

Json object_example(const std::vector<FieldDescription>& fields) {
  Json object = Json::object();
  for (const FieldDescription& field : fields) object[field.name] = field.example;
  return object;
}

Json json_of(const Example& example) {
  return std::visit(
      [](const auto& value) -> Json {
        using Value = std::decay_t<decltype(value)>;
        if constexpr (std::is_same_v<Value, std::monostate>)
          return nullptr;
        else if constexpr (std::is_same_v<Value, JsonText>)
          return Json::parse(value.text);
        else
          return value;
      },
      example.value);
}

}  // namespace graphproof::record
