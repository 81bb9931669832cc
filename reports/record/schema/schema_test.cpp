// Tests of the schemas with the examples in schema/examples: each example is accepted and unchanged
// after it was read into its struct and written again, and each broken variant of it is refused.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <set>

#include "reports/record/evidence/evidence.h"
#include "reports/record/evidence/line_description.h"
#include "reports/record/job/agent.h"
#include "reports/record/job/batch.h"
#include "reports/record/job/cluster.h"
#include "reports/record/job/context.h"
#include "reports/record/job/heartbeat.h"
#include "reports/record/job/live.h"
#include "reports/record/job/plan.h"
#include "reports/record/job/shard.h"
#include "reports/record/run/checks.h"
#include "reports/record/run/faults.h"
#include "reports/record/run/hazards.h"
#include "reports/record/run/record.h"
#include "reports/record/run/run.h"
#include "reports/record/run/summary.h"
#include "reports/record/schema/violations.h"
#include "reports/record/text/file.h"
#include "reports/record/watched/watched_checks.h"
#include "reports/record/watched/watched_run.h"

namespace graphproof::record {
namespace {

using nlohmann::json;

struct Kind {
  const char* schema;
  const char* file;
  std::function<json(const json&)> round_trip;  // through its struct; null if there is none
};

json evidence_round_trip(const json& value) {
  EvidenceLine line{.kind = value.value("kind", ""), .fields = value};
  json written;
  with_typed(line, [&](const auto& typed) { written = json(line_json(typed)); });
  if (written.is_null())
    throw ReadError(
        {.what = "no line of evidence", .got = value.dump(), .want = "one", .next = "-"});
  return written;
}

const std::vector<Kind>& kinds() {
  static const std::vector<Kind> kKinds = {
      {"batch", "batch.json",
       [](const json& value) { return json(to_json(batch_from(value, "example"))); }},
      {"heartbeat", "heartbeat.jsonl",
       [](const json& value) {
         return json::parse(to_line(heartbeat_from(value.dump(), "example")));
       }},
      {"evidence", "evidence.jsonl", evidence_round_trip},
      {"checks", "checks.json",
       [](const json& value) { return json(to_json(checks_from(value, "example"))); }},
      {"plan", "plan.jsonl",
       [](const json& value) { return json::parse(to_line(plan_line_from(value, "example"))); }},
      {"record", "journal.jsonl",
       [](const json& value) { return json::parse(to_line(record_from(value, "example"))); }},
      {"live", "live.json",
       [](const json& value) { return json(to_json(live_from(value, "example"))); }},
      {"run", "run.json",
       [](const json& value) { return json(to_json(run_from(value, "example"))); }},
      {"context", "context.json",
       [](const json& value) { return json(to_json(context_from(value, "example"))); }},
      {"summary", "summary.json",
       [](const json& value) { return json(to_json(summary_from(value, "example"))); }},
      {"faults", "faults.json",
       [](const json& value) { return json(to_json(faults_from(value, "example"))); }},
      {"hazards", "hazards.json",
       [](const json& value) { return json(to_json(hazards_from(value, "example"))); }},
      {"compare", "compare.json", nullptr},
      {"history", "history.jsonl", nullptr},
      {"baseline", "baseline.jsonl", nullptr},
      {"qualification", "qualification.json", nullptr},
      {"order", "orders.jsonl",
       [](const json& value) { return json(to_json(order_from(value, "example"))); }},
      {"cluster", "cluster.json",
       [](const json& value) { return json(to_json(cluster_from(value, "example"))); }},
      {"shard", "shard.json",
       [](const json& value) { return json(to_json(shard_from(value, "example"))); }},
      {"report", "reports.jsonl",
       [](const json& value) { return json(to_json(report_from(value, "example"))); }},
      {"shrink", "shrink.json", nullptr},
      {"doctor", "doctor.json", nullptr},
      {"code-quality", "code-quality.json", nullptr},
      {"ctrf", "ctrf.json", nullptr},
      {"trace", "trace.json", nullptr},
      {"watched", "watched.json",
       [](const json& value) { return json(to_json(watched_run_from(value, "example"))); }},
      {"watched_checks", "watched_checks.json",
       [](const json& value) { return json(to_json(watched_checks_from(value, "example"))); }},
  };
  return kKinds;
}

const Kind& kind_of(std::string_view schema) {
  return *std::find_if(kinds().begin(), kinds().end(),
                       [&](const Kind& kind) { return kind.schema == schema; });
}

/// The values of an example file: its lines, or the one value.
std::vector<json> examples(const Kind& kind) {
  const char* source = std::getenv("GRAPHPROOF_SOURCE");
  const std::filesystem::path file =
      std::filesystem::path(source ? source : ".") / "reports/record/schema/examples" / kind.file;
  if (!file.string().ends_with(".jsonl")) return {read_json(file)};
  std::vector<json> values;
  for (const std::string& line : read_lines(file).lines) values.push_back(json::parse(line));
  return values;
}

std::string joined(const std::vector<std::string>& sentences) {
  std::string all;
  for (const std::string& one : sentences) all += one + "\n";
  return all;
}

void add_places(const json& value, const json::json_pointer& at,
                std::vector<json::json_pointer>& result) {
  result.push_back(at);
  if (value.is_object())
    for (const auto& [key, inner] : value.items()) add_places(inner, at / key, result);
  if (value.is_array())
    for (std::size_t i = 0; i < value.size(); ++i) add_places(value[i], at / i, result);
}

/// Every place in a value, parents first.
std::vector<json::json_pointer> places(const json& value) {
  std::vector<json::json_pointer> result;
  add_places(value, json::json_pointer(), result);
  return result;
}

bool within(const json::json_pointer& place, const std::set<std::string>& names) {
  for (json::json_pointer at = place; !at.empty(); at = at.parent_pointer())
    if (names.contains(at.back())) return true;
  return false;
}

// Maps whose keys are the writer's: a key may be missing or new in them.
const std::set<std::string> kOpen = {
    "axes",        "environment", "figures",        "asked",         "effective", "census",
    "digest",      "versions",    "nodes",          "stacks",        "earlier",   "kinds",
    "kinds_again", "host_memory", "host_functions", "other_threads", "refused"};
// Maps whose keys come from a list, and may be missing: verdicts, checks, phases of a plan.
bool may_lack(const Kind& kind, const json::json_pointer& parent) {
  if (parent.empty()) return false;
  const std::string schema = kind.schema, name = parent.back();
  return kOpen.contains(name) || (schema == "summary" && (name == "counts" || name == "checks")) ||
         (schema == "qualification" && name == "counts") ||
         ((schema == "plan" || schema == "run") && name == "limits_ms") ||
         (schema == "run" && name == "subjects");
}

// Keys that older files lack, and which are therefore optional.
const std::set<std::string>& added_keys() {
  static const std::set<std::string> kAdded = [] {
    std::set<std::string> keys = {"record/again",
                                  "context/again",
                                  "context/ranks/0/progress",
                                  "context/ranks/1/progress",
                                  "summary/ending",
                                  "run/plan_sha256",
                                  "run/parent",
                                  "run/stack/python",
                                  "run/stack/compute_sanitizer",
                                  "run/stack/subjects",
                                  "run/options",
                                  "run/options/max_gpu_ms",
                                  "run/options/ranks_per_gpu",
                                  "run/options/cases_per_gpu",
                                  "run/options/confirm",
                                  "doctor/libraries"};
    for (const KindDescription& kind : kind_descriptions())
      for (const FieldDescription& field : kind.fields)
        if (!field.required) keys.insert("evidence/" + kind.kind + "/" + field.name);
    for (const FieldDescription& field : describe_fields<WatchedRun>())
      if (!field.required) keys.insert("watched/" + field.name);
    for (const FieldDescription& field : describe_fields<GraphRow>())
      if (!field.required) keys.insert("watched_checks/graphs/0/" + field.name);
    for (const FieldDescription& field : describe_fields<UnwatchedProcess>())
      if (!field.required) keys.insert("watched/unwatched/0/" + field.name);
    for (const FieldDescription& field : describe_fields<StartedElsewhere>())
      if (!field.required) keys.insert("watched/elsewhere/0/" + field.name);
    keys.insert("watched_checks/failed_processes");
    for (const FieldDescription& field : describe_fields<FailedProcess>())
      if (!field.required) keys.insert("watched_checks/failed_processes/0/" + field.name);
    return keys;
  }();
  return kAdded;
}
/// In evidence the kind of the line comes before the place.
bool may_be_absent(const Kind& kind, const json& value, const json::json_pointer& place) {
  const std::string line =
      std::string_view(kind.schema) == "evidence" ? "/" + value.at("kind").get<std::string>() : "";
  return may_lack(kind, place.parent_pointer()) ||
         added_keys().contains(kind.schema + line + place.to_string());
}

TEST(Schema, AcceptsEveryExample) {
  for (const Kind& kind : kinds())
    for (const json& value : examples(kind))
      EXPECT_EQ(joined(violations(kind.schema, value)), "") << kind.file << ": " << value.dump();
}

TEST(Schema, ExistsForEveryFileKind) {
  std::set<std::string_view> listed(schema_names().begin(), schema_names().end());
  for (const Kind& kind : kinds()) EXPECT_EQ(listed.erase(kind.schema), 1u) << kind.schema;
  EXPECT_TRUE(listed.empty());
  EXPECT_THROW(violations("surprise", json::object()), std::invalid_argument);
}

TEST(Schema, RefusesAMissingKeyAnywhere) {
  int tried = 0;
  for (const Kind& kind : kinds()) {
    SchemaOf schema(kind.schema);
    for (const json& value : examples(kind)) {
      for (const auto& place : places(value)) {
        if (place.empty() || value[place.parent_pointer()].is_array() ||
            may_be_absent(kind, value, place))
          continue;
        json broken = value;
        broken[place.parent_pointer()].erase(place.back());
        EXPECT_FALSE(schema.violations(broken).empty())
            << kind.file << " without " << place.to_string();
        ++tried;
      }
    }
  }
  EXPECT_GT(tried, 300);
}

TEST(Schema, RefusesAnUnknownKeyAnywhere) {
  for (const Kind& kind : kinds()) {
    SchemaOf schema(kind.schema);
    for (const json& value : examples(kind)) {
      for (const auto& place : places(value)) {
        if (!value[place].is_object() || within(place, kOpen)) continue;
        json broken = value;
        broken[place]["surprise"] = 1;
        EXPECT_FALSE(schema.violations(broken).empty())
            << kind.file << " with a key more in " << place.to_string();
      }
    }
  }
}

TEST(Schema, RefusesAnotherTypeAnywhere) {
  for (const Kind& kind : kinds()) {
    SchemaOf schema(kind.schema);
    for (const json& value : examples(kind)) {
      for (const auto& place : places(value)) {
        if (within(place, {"axes", "asked", "effective"})) continue;
        json broken = value;
        // No key of any file holds a list of a list of a list.
        broken[place] = json::array({json::array({json::array()})});
        EXPECT_FALSE(schema.violations(broken).empty())
            << kind.file << " with a list at " << place.to_string();
        broken[place] = value[place].is_string() ? json(-7.5) : json("surprise");
        EXPECT_FALSE(schema.violations(broken).empty())
            << kind.file << " with " << broken[place] << " at " << place.to_string();
      }
    }
  }
}

TEST(Schema, RefusesWhatOnlyMeaningCanTell) {
  struct Row {
    const char* schema;
    int line;  // of the example
    const char* place;
    json value;
  };
  const Row kRows[] = {
      {"record", 0, "/verdict", "fail.hang"},
      {"record", 0, "/verdict", "pass.maybe"},
      {"record", 0, "/verdict", "fail.hang.lunch"},
      {"record", 0, "/observed", ""},
      {"record", 1, "/failing/0/next", ""},
      {"record", 0, "/rule", 0},
      {"plan", 0, "/id", "9D2C0F6A1B3E4D57"},
      {"plan", 0, "/id", "9d2c"},
      {"plan", 0, "/ranks", 0},
      {"plan", 0, "/isolation", "none"},
      {"plan", 0, "/limits_ms/replay", 0},
      {"plan", 0, "/expect/kind", "fail"},
      {"plan", 0, "/expect/kind", "rejected"},
      {"plan", 3, "/skip/verdict", "pass"},
      {"plan", 0, "/required_checks/0", "lockstep"},
      {"context", 0, "/ended", "well"},
      {"context", 0, "/hang/phase", "lunch"},
      {"context", 0, "/ranks/0/exit/kind", "gone"},
      {"context", 0, "/device", "tpu"},
      {"checks", 0, "/checks/0/result", "skipped"},
      {"checks", 0, "/checks/1/next", ""},
      {"checks", 0, "/checks/1/want", ""},
      {"checks", 0, "/ranks/2/refused/next", ""},
      {"heartbeat", 2, "/phase", "lunch"},
      {"heartbeat", 2, "/event", "hello"},
      {"evidence", 0, "/kind", "surprise"},
      {"evidence", 4, "/type", "python"},
      {"evidence", 9, "/loss", json::array({nullptr})},
      {"evidence", 10, "/equal", true},
      {"evidence", 10, "/mismatch", nullptr},
      {"summary", 0, "/exit_code", 7},
      {"summary", 0, "/counts", {{"passed", 1}}},
      {"faults", 0, "/0/status", "dead"},
      {"hazards", 0, "/cells/0/expected", "xfail"},
      {"hazards", 0, "/cells/0/hang/phase", "lunch"},
      {"hazards", 0, "/cells/0/basis", "guessed"},
      {"compare", 0, "/exit_code", 6},
      {"compare", 0, "/slower/cases/0/figure", "replay"},
      {"compare", 0, "/drift/cases/0/class", "far"},
      {"history", 1, "/results/0/standing", "good"},
      {"history", 1, "/first_bad/verdict", "fail"},
      {"history", 2, "/cases/0/rate/1", 1.5},
      {"baseline", 0, "/accepted/until", "soon"},
      {"baseline", 2, "/cases/0/state", "old"},
      {"code-quality", 0, "/0/severity", "bad"},
      {"ctrf", 0, "/results/tests/0/status", "pass"},
      {"trace", 0, "/traceEvents/2/ph", "B"},
      {"shrink", 0, "/state", "found"},
      {"shrink", 0, "/known_issue/expect", "pass"},
      {"shrink", 0, "/jobs/0/outcome", "passed"},
      {"run", 0, "/started", "yesterday"},
      {"batch", 0, "/cases", json::array()},
      {"live", 0, "/pid", 0},
      {"live", 0, "/running/0/ranks/0/phase", "lunch"},
      {"summary", 0, "/ending", "well"},
      {"order", 0, "/cases", json::array()},
      {"order", 1, "/order", "start"},
      {"order", 2, "/order", "hold"},
      {"report", 1, "/report", "over"},
      {"report", 4, "/report", "over"},
      {"report", 5, "/why", ""},
      {"cluster", 0, "/engine", "local"},
      {"cluster", 0, "/nodes", 0},
      {"shard", 0, "/plan_sha256", "9f86"},
      {"run", 0, "/options/isolation", "thread"},
      {"watched", 0, "/ending", "lunch"},
      {"watched", 0, "/profile", "slow"},
      {"watched", 0, "/unwatched/0/pid", 0},
      {"watched_checks", 0, "/checks/0/result", "skipped"},
      {"watched_checks", 0, "/checks/1/next", ""},
      {"watched_checks", 0, "/graphs/0/executable", 0},
      {"watched_checks", 0, "/graphs/0/signature", "5566"},
  };
  for (const Row& row : kRows)
    for (const Kind& kind : kinds()) {
      if (std::string_view(kind.schema) != row.schema) continue;
      json broken = examples(kind).at(static_cast<std::size_t>(row.line));
      const json::json_pointer place(row.place);
      ASSERT_TRUE(broken.contains(place)) << row.schema << row.place;
      ASSERT_NE(broken[place], row.value) << row.schema << row.place;
      broken[place] = row.value;
      EXPECT_FALSE(violations(row.schema, broken).empty())
          << row.schema << " with " << row.value << " at " << row.place;
    }
}

/// Both files hold results of checks; the schemas of both are the same.
TEST(Schema, OfACheckIsTheSameForCasesAndWatchedRuns) {
  const char* source = std::getenv("GRAPHPROOF_SOURCE");
  const std::filesystem::path folder =
      std::filesystem::path(source ? source : ".") / "reports/record/schema";
  EXPECT_EQ(read_json(folder / "checks.schema.json").at("definitions").at("check"),
            read_json(folder / "watched_checks.schema.json").at("definitions").at("check"));
}

TEST(Schema, NamesThePlaceOfAViolation) {
  json line = examples(kind_of("evidence")).front();
  line["rank"] = -1;
  const std::string text = joined(violations("evidence", line));
  EXPECT_NE(text.find("[rank]"), std::string::npos) << text;
}

TEST(Structs, GiveEveryExampleBackUnchanged) {
  for (const Kind& kind : kinds()) {
    if (!kind.round_trip) continue;
    for (const json& value : examples(kind)) EXPECT_EQ(kind.round_trip(value), value) << kind.file;
  }
}

TEST(Structs, RefuseAMissingKeyAnywhere) {
  for (const Kind& kind : kinds()) {
    if (!kind.round_trip) continue;
    for (const json& value : examples(kind)) {
      for (const auto& place : places(value)) {
        if (place.empty() || value[place.parent_pointer()].is_array() ||
            may_be_absent(kind, value, place))
          continue;
        json broken = value;
        broken[place.parent_pointer()].erase(place.back());
        EXPECT_THROW(kind.round_trip(broken), ReadError)
            << kind.file << " without " << place.to_string();
      }
    }
  }
}

TEST(Structs, AFileOfBeforeAKeyWasAddedIsRead) {
  int tried = 0;
  for (const Kind& kind : kinds())
    for (const std::string& added : added_keys()) {
      const std::string prefix = std::string(kind.schema) + "/";
      if (!added.starts_with(prefix)) continue;
      const std::string key = added.substr(added.rfind('/') + 1),
                        line = added.substr(prefix.size(), added.rfind('/') - prefix.size());
      const auto values = examples(kind);
      const auto found = std::find_if(values.begin(), values.end(), [&](const json& value) {
        return std::string_view(kind.schema) != "evidence" ||
               (value["kind"] == line && value.contains(key));
      });
      ASSERT_NE(found, values.end()) << added;
      json older = *found;
      // In evidence the key is at the top level of its kind of line, in other files at the path.
      const json::json_pointer at(
          std::string_view(kind.schema) == "evidence"
              ? ""
              : added.substr(prefix.size() - 1, added.rfind('/') - prefix.size() + 1));
      ASSERT_EQ(older[at].erase(key), 1u) << added;
      EXPECT_EQ(joined(violations(kind.schema, older)), "") << added;
      if (kind.round_trip) {
        EXPECT_NO_THROW(kind.round_trip(older)) << added;
      }
      ++tried;
    }
  EXPECT_EQ(tried, static_cast<int>(added_keys().size()));
}

TEST(Structs, EveryExpectationSurvivesItsTextForm) {
  const Expect kRows[] = {
      {.kind = "pass"},
      {.kind = "rejected", .rule = "R035"},
      {.kind = "fault", .fault = "M23", .detector = "D04", .clean_twin = "1234567890abcdef"},
      {.kind = "known_issue",
       .issue = "NCCL-1",
       .verdict = "fail.hang.replay",
       .owner = "comm",
       .until = "2027-03-01"},
      {.kind = "hazard", .rule = "R035", .verdict = "fail.hang"},
  };
  json line = examples(kind_of("plan")).front();
  for (const Expect& expect : kRows) {
    line["expect"] = to_json(expect);
    EXPECT_EQ(joined(violations("plan", line)), "") << expect.kind;
    EXPECT_EQ(plan_line_from(line, "row").expect, expect) << expect.kind;
  }
}

}  // namespace
}  // namespace graphproof::record
