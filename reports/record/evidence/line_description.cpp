#include "reports/record/evidence/line_description.h"

#include "reports/record/evidence/former_names.h"
#include "reports/record/evidence/lines/kinds.h"

namespace graphproof::record {
namespace {

constexpr std::size_t kWidth = 100;

template <class... Lines>
std::vector<KindDescription> describe(Kinds<Lines...>) {
  return {KindDescription{std::string(Lines::kKind), std::string(Lines::kDoc), kind_since<Lines>(),
                          describe_fields<Lines>()}...};
}

/// `value` on one line, with a space after each comma and colon.
std::string one_line(const Json& value) {
  if (!value.is_structured()) return value.dump();
  std::string text;
  for (const auto& [key, one] : value.items())
    text += (text.empty() ? "" : ", ") + (value.is_object() ? Json(key).dump() + ": " : "") +
            one_line(one);
  return value.is_object() ? "{" + text + "}" : "[" + text + "]";
}

/// `value` as indented JSON. Each value that fits into the rest of its line is on one line; `used`
/// columns of the first line are taken.
std::string pretty(const Json& value, std::size_t indent = 0, std::size_t used = 0) {
  const std::string line = one_line(value);
  if (!value.is_structured() || used + line.size() < kWidth) return line;
  const std::string inner(indent + 2, ' ');
  std::string text;
  for (const auto& [key, one] : value.items()) {
    const std::string name = value.is_object() ? Json(key).dump() + ": " : "";
    text += (text.empty() ? "\n" : ",\n") + inner + name +
            pretty(one, indent + 2, inner.size() + name.size());
  }
  text += "\n" + std::string(indent, ' ');
  return value.is_object() ? "{" + text + "}" : "[" + text + "]";
}

/// The field is null if the flag is true, and an object otherwise.
Json null_exactly_if(const FieldDescription& field) {
  const auto property = [](const std::string& name, Json schema) {
    Json properties = Json::object();
    properties[name] = std::move(schema);
    return Json{{"properties", std::move(properties)}};
  };
  return {{"if", property(field.null_exactly_if, {{"const", true}})},
          {"then", property(field.name, {{"type", "null"}})},
          {"else", property(field.name, {{"type", "object"}})}};
}

Json definition(const KindDescription& kind) {
  Json schema = object_schema(kind.fields);
  schema["required"].insert(schema["required"].begin(), "kind");
  Json properties = {{"kind", {{"const", kind.kind}}}};
  properties.update(schema["properties"]);
  schema["properties"] = std::move(properties);
  Json all = Json::array();
  for (const FieldDescription& field : kind.fields)
    if (!field.null_exactly_if.empty()) all.push_back(null_exactly_if(field));
  if (all.empty()) return schema;
  all.insert(all.begin(), std::move(schema));
  return {{"allOf", std::move(all)}};
}

/// A cell of a Markdown table.
std::string cell(std::string text) {
  for (std::size_t at = text.find('|'); at != std::string::npos; at = text.find('|', at + 2))
    text.insert(at, "\\");
  return text;
}

/// A sentence about the names that the kind and its fields had; "" if there were no others.
std::string former_names_of(const std::string& kind) {
  for (const FormerKind& former : former_kinds()) {
    if (former.is != kind) continue;
    std::string text = "\nBefore revision " + std::to_string(kNamesSince) + ": ";
    if (former.was != former.is) text += "kind `" + std::string(former.was) + "`";
    bool first = former.was == former.is;
    for (const auto& [was, is] : former.fields) {
      text += std::string(first ? "" : ", ") + "`" + std::string(was) + "` for `" +
              std::string(is) + "`";
      first = false;
    }
    return text + ".\n";
  }
  return "";
}

}  // namespace

const std::vector<KindDescription>& kind_descriptions() {
  static const std::vector<KindDescription> kKinds = describe(LineKinds());
  return kKinds;
}

std::string generated_json(const Json& value) { return pretty(value) + "\n"; }

std::string evidence_schema() {
  Json choices = Json::array(), definitions = Json::object();
  Json phases = Json::array();
  for (const std::string_view phase : kPhaseNames) phases.push_back(phase);
  definitions["phase_name"] = {{"enum", std::move(phases)}};
  definitions["number"] = {
      {"oneOf", Json::array({Json{{"type", "number"}}, Json{{"enum", {"nan", "inf", "-inf"}}}})}};
  for (const KindDescription& kind : kind_descriptions()) {
    choices.push_back({{"$ref", "#/definitions/" + kind.kind}});
    definitions[kind.kind] = definition(kind);
  }
  return generated_json(
      {{"$schema", "http://json-schema.org/draft-07/schema#"},
       {"title", "evidence"},
       {"description",
        "One line of rank-R.evidence.jsonl; each kind is the definition of its name. "
        "Generated from reports/record/evidence/lines"},
       {"oneOf", std::move(choices)},
       {"definitions", std::move(definitions)}});
}

std::string evidence_examples() {
  std::string text;
  for (const KindDescription& kind : kind_descriptions()) {
    Json line = {{"kind", kind.kind}};
    line.update(object_example(kind.fields));
    text += line.dump() + "\n";
  }
  return text;
}

std::string evidence_page() {
  std::string text =
      "# Evidence\n\n"
      "What a rank writes while it runs a case: `rank-R.evidence.jsonl`, one JSON object a line. "
      "Generated from `reports/record/evidence/lines`, which is where a kind of line is added or "
      "changed.\n";
  for (const KindDescription& kind : kind_descriptions()) {
    text += "\n## " + kind.kind + "\n\n" + kind.doc;
    if (kind.since > 1) text += " Since revision " + std::to_string(kind.since) + ".";
    text += "\n\n| field | what | example |\n|---|---|---|\n";
    for (const FieldDescription& field : kind.fields) {
      text += "| `" + field.name + "` | " + cell(field.doc);
      if (field.since > 1) text += "; since revision " + std::to_string(field.since);
      if (!field.required) text += "; may be absent";
      text += " | `" + cell(field.example.dump()) + "` |\n";
    }
    text += former_names_of(kind.kind);
  }
  return text;
}

}  // namespace graphproof::record
