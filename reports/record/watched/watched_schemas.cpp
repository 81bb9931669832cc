#include "reports/record/watched/watched_schemas.h"

#include "reports/record/evidence/line_description.h"
#include "reports/record/watched/watched_checks.h"
#include "reports/record/watched/watched_run.h"

namespace graphproof::record {
namespace {

Json with_head(const char* title, const char* description, Json object) {
  Json schema = {{"$schema", "http://json-schema.org/draft-07/schema#"},
                 {"title", title},
                 {"description", description}};
  schema.update(object);
  return schema;
}

/// The key "schema" stands before the fields of the table.
Json with_schema_name(std::string_view name, Json object) {
  object["required"].insert(object["required"].begin(), "schema");
  Json properties = {{"schema", {{"const", name}}}};
  properties.update(object["properties"]);
  object["properties"] = std::move(properties);
  return object;
}

/// One result of a check, as in the checks.json of an attempt (checks.schema.json).
Json check_schema() {
  const Json text = {{"type", "string"}}, filled = {{"type", "string"}, {"minLength", 1}},
             long_enough = {{"minLength", 1}};
  const Json members = {
      {"type", "object"},
      {"additionalProperties", false},
      {"required", {"check", "result", "rank", "what", "got", "want", "why", "next"}},
      {"properties",
       {{"check", {{"type", "string"}, {"pattern", "^D[0-9]{2}\\.[a-z0-9_]+$"}}},
        {"result", {{"enum", {"pass", "fail", "unexercised", "not_applicable"}}}},
        {"rank",
         {{"oneOf",
           Json::array({Json{{"type", "null"}}, Json{{"type", "integer"}, {"minimum", 0}}})}}},
        {"what", filled},
        {"got", text},
        {"want", text},
        {"why", text},
        {"next", text}}}};
  const auto when = [&](Json results, Json then) {
    return Json{{"if", {{"properties", {{"result", std::move(results)}}}}},
                {"then", {{"properties", std::move(then)}}}};
  };
  return {
      {"allOf",
       Json::array({members,
                    when({{"const", "fail"}},
                         {{"got", long_enough}, {"want", long_enough}, {"next", long_enough}}),
                    when({{"enum", {"unexercised", "not_applicable"}}}, {{"got", long_enough}})})}};
}

}  // namespace

std::string watched_schema() {
  return generated_json(
      with_head("watched",
                "watched.json: a watched run as the launcher saw it. Generated from "
                "reports/record/watched/watched_run.h",
                with_schema_name(kWatchedRunSchema, object_schema(describe_fields<WatchedRun>()))));
}

std::string watched_example() {
  Json example = {{"schema", kWatchedRunSchema}};
  example.update(object_example(describe_fields<WatchedRun>()));
  return generated_json(example);
}

std::string watched_checks_schema() {
  return generated_json(with_head(
      "watched_checks",
      "checks.json of a watched run: what the judge found. Generated from "
      "reports/record/watched/watched_checks.h",
      {{"type", "object"},
       {"additionalProperties", false},
       {"required", {"schema", "checks", "graphs", "figures", "notes"}},
       {"properties",
        {{"schema", {{"const", kWatchedChecksSchema}}},
         {"checks", {{"type", "array"}, {"items", {{"$ref", "#/definitions/check"}}}}},
         {"graphs", {{"type", "array"}, {"items", {{"$ref", "#/definitions/graph"}}}}},
         {"figures", {{"type", "object"}, {"additionalProperties", {{"type", "number"}}}}},
         {"notes", {{"type", "array"}, {"items", {{"type", "string"}, {"minLength", 1}}}}},
         {"failed_processes",
          {{"type", "array"}, {"items", {{"$ref", "#/definitions/failed_process"}}}}}}},
       {"definitions",
        {{"check", check_schema()},
         {"graph", object_schema(describe_fields<GraphRow>())},
         {"failed_process", object_schema(describe_fields<FailedProcess>())}}}}));
}

std::string watched_checks_example() {
  const CheckResult passed{
      .check = "D07.static_addresses",
      .result = Result::pass,
      .rank = {},
      .message = {
          .what = "no operand moved", .got = "12 blocks", .want = "", .why = "", .next = ""}};
  const CheckResult failed{
      .check = "D60.host_nodes",
      .result = Result::fail,
      .rank = 1,
      .message = {.what = "rank 1 (node1.4711): a host function is in a graph",
                  .got = "note_step of train.so, once in each replay",
                  .want = "host functions of NCCL alone",
                  .why = "its arguments are those of the capture in every replay",
                  .next = "call it after the replay"}};
  Json example = {
      {"schema", kWatchedChecksSchema},
      {"checks", Json::array({to_json(passed), to_json(failed)})},
      {"graphs", Json::array({object_example(describe_fields<GraphRow>())})},
      {"figures", {{"graph_share", 0.85}}},
      {"notes", Json::array({"rank 1 (node1.4711): memory: no snapshot was taken"})},
      {"failed_processes", Json::array({object_example(describe_fields<FailedProcess>())})}};
  return generated_json(example);
}

}  // namespace graphproof::record
