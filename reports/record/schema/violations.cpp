#include "reports/record/schema/violations.h"

#include <map>
#include <stdexcept>
#include <valijson/adapters/nlohmann_json_adapter.hpp>
#include <valijson/schema.hpp>
#include <valijson/schema_parser.hpp>
#include <valijson/validation_results.hpp>
#include <valijson/validator.hpp>

namespace graphproof::record::schema {
std::string_view embedded(std::string_view name);
}  // namespace graphproof::record::schema

namespace graphproof::record {
namespace {

/// The name of the definition that `value` claims to be by its `kind` or `event`; "" if there is
/// none. Against a choice of definitions the library only reports that oneOf fails, which names no
/// mistake.
std::string claimed(const nlohmann::json& schema, const nlohmann::json& value) {
  if (!schema.contains("oneOf") || !value.is_object()) return "";
  for (const char* key : {"kind", "event"}) {
    if (!value.contains(key) || !value[key].is_string()) continue;
    std::string name = value[key];
    if (std::string_view(key) == "event" && name == "phase") name = "phase_event";
    if (schema["definitions"].contains(name)) return name;
  }
  return "";
}

}  // namespace

const std::vector<std::string_view>& schema_names() {
  static const std::vector<std::string_view> kNames = {
      "batch",   "heartbeat", "evidence",       "checks",       "plan",    "record",
      "run",     "context",   "summary",        "faults",       "hazards", "live",
      "compare", "shrink",    "order",          "report",       "cluster", "shard",
      "doctor",  "watched",   "watched_checks", "code-quality", "ctrf",    "trace",
      "history", "baseline",  "qualification"};
  return kNames;
}

struct SchemaOf::State {
  nlohmann::json document;
  std::map<std::string, std::unique_ptr<valijson::Schema>> parsed;  // by claimed definition
  valijson::Validator validator;                                    // keeps compiled patterns

  const valijson::Schema& schema_for(const nlohmann::json& value) {
    const std::string name = claimed(document, value);
    std::unique_ptr<valijson::Schema>& schema = parsed[name];
    if (schema) return *schema;
    nlohmann::json one = name.empty() ? document : document["definitions"][name];
    if (!name.empty()) one["definitions"] = document["definitions"];
    schema = std::make_unique<valijson::Schema>();
    valijson::SchemaParser parser(valijson::SchemaParser::kDraft7);
    parser.populateSchema(valijson::adapters::NlohmannJsonAdapter(one), *schema);
    return *schema;
  }
};

SchemaOf::SchemaOf(std::string_view name) : state_(std::make_unique<State>()) {
  const std::string_view text = schema::embedded(std::string(name) + ".schema.json");
  if (text.empty()) throw std::invalid_argument("no schema named " + std::string(name));
  state_->document = nlohmann::json::parse(text);
}

SchemaOf::~SchemaOf() = default;

std::vector<std::string> SchemaOf::violations(const nlohmann::json& value) {
  valijson::ValidationResults results;
  const bool valid = state_->validator.validate(
      state_->schema_for(value), valijson::adapters::NlohmannJsonAdapter(value), &results);

  std::vector<std::string> sentences;
  valijson::ValidationResults::Error error;
  while (results.popError(error)) {
    std::string place;
    for (const std::string& part : error.context) place += part;
    sentences.push_back(place + ": " + error.description);
  }
  if (!valid && sentences.empty()) sentences.push_back("<root>: does not match the schema");
  return sentences;
}

std::vector<std::string> violations(std::string_view schema, const nlohmann::json& value) {
  return SchemaOf(schema).violations(value);
}

}  // namespace graphproof::record
