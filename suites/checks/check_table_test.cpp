#include "suites/checks/check_table.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <regex>

#include "reports/record/schema/violations.h"
#include "reports/record/text/file.h"
#include "suites/checks/attempt/concat.h"
#include "suites/checks/testing/clean_attempt.h"

namespace graphproof::checks {
namespace {

using nlohmann::json;

const matrix::Catalogue& catalogue() {
  static const matrix::Catalogue loaded = matrix::load_catalogue();
  return loaded;
}

struct Shape {
  json axes;
  std::string device = "sim";
};

std::vector<Shape> shapes() {
  std::vector<Shape> result;
  for (const char* impl : {"none", "manual", "full_iteration"})
    for (const int tp : {1, 2})
      for (const int dp : {1, 2})
        for (const bool dropout : {false, true})
          for (const char* device : {"sim", "cuda"})
            result.push_back({{{"impl", impl},
                               {"tp", tp},
                               {"dp", dp},
                               {"dropout", dropout},
                               {"microbatches", 2}},
                              device});
  for (const char* impl : {"none", "manual"}) {
    const json moe = {{"impl", impl},
                      {"model", "moe"},
                      {"experts", 4},
                      {"topk", 2},
                      {"dp", 2},
                      {"ep", 2},
                      {"dispatch", "drop_and_pad"},
                      {"dispatcher", "alltoall"}};
    result.push_back({moe});
    result.push_back({{{"impl", impl}, {"pp", 2}, {"microbatches", 2}}});
    result.push_back({{{"impl", impl},
                       {"pp", 2},
                       {"vpp", 2},
                       {"dp", 2},
                       {"layers", 4},
                       {"microbatches", 2},
                       {"tied_embeddings", true}}});
    result.push_back({{{"impl", impl}, {"optimizer", "adam"}, {"precision", "bf16"}}});
    for (const bool dropout : {false, true})
      result.push_back(
          {{{"impl", impl}, {"recompute", "selective(core_attn)"}, {"dropout", dropout}}});
    result.push_back({{{"impl", impl}, {"precision", "fp16"}, {"tp", 2}, {"clip_grad", true}}});
    result.push_back({{{"impl", impl},
                       {"pp", 2},
                       {"microbatches", 2},
                       {"precision", "fp16"},
                       {"clip_grad", true}}});
    if (std::string(impl) == "none") continue;
    for (const char* schedule : {"resume", "train-eval-train", "train-rollout-train"})
      result.push_back({{{"impl", impl}, {"schedule", schedule}, {"dp", 2}}});
  }
  for (const char* scope : {"layer", "block"})
    for (const char* pool : {"single", "per_graph"})
      result.push_back({{{"impl", "local"},
                         {"inference_scope", scope},
                         {"pool", pool},
                         {"dp", 2},
                         {"microbatch_size", 4},
                         {"schedule", "train-rollout-train"}}});
  result.push_back({{{"impl", "local"},
                     {"pp", 2},
                     {"vpp", 2},
                     {"layers", 4},
                     {"microbatches", 2},
                     {"fp8_weights", true},
                     {"first_last_layers_bf16", true}}});
  result.push_back({{{"impl", "none"}, {"model", "hybrid"}, {"fp8_weights", true}}});
  result.push_back({{{"impl", "local"}, {"model", "vlm"}, {"fp8_weights", true}}});
  for (const char* impl : {"none", "local"})
    for (const bool sharded : {false, true})
      result.push_back({{{"impl", impl},
                         {"dp", 2},
                         {"microbatches", 2},
                         {"placement", "per_rank"},
                         {"distributed_optimizer", sharded}}});
  for (const char* impl : {"none", "local"})
    result.push_back(
        {{{"impl", impl}, {"tp", 2}, {"microbatches", 2}, {"precision", "fp8_delayed"}}});
  for (const char* impl : {"callables", "full_iteration"})
    result.push_back(
        {{{"impl", impl}, {"microbatches", 2}, {"shape_buckets", 2}, {"warmup_steps", 1}}});
  for (const char* impl : {"none", "local"})
    result.push_back({{{"impl", impl},
                       {"microbatches", 2},
                       {"tp", 2},
                       {"embedding_gradient", "index_add"},
                       {"deterministic_algorithms", "off"},
                       {"tolerance", "gradients: rtol 0.01 atol 0.001"}}});
  return result;
}

std::string word_of(const record::Checks& checks, const std::string& name) {
  for (const record::CheckResult& result : checks.checks)
    if (result.check == name) return std::string(record::name(result.result));
  return "missing";
}

bool seen_by_the_launcher(const record::CheckResult& result) {
  return result.check == "D21.log_clean" || result.check == "D22.progress";
}

// CMake generates the list from the table, so that a row without a function is a link error. This
// test finds a function without a row.
TEST(CheckTable, EveryFunctionOfACheckHasARow) {
  static const std::regex detector("namespace graphproof::checks::(d[0-9]+) \\{"),
      function(
          "\nrecord::CheckResult (\\w+)\\(Judgement& judgement, const Attempt& attempt\\) \\{");
  const char* source = std::getenv("GRAPHPROOF_SOURCE");
  ASSERT_NE(source, nullptr) << "run by ctest, or set GRAPHPROOF_SOURCE to the repository";
  const std::filesystem::path folder = std::filesystem::path(source) / "suites/checks";
  std::set<std::string> written, listed;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (entry.path().extension() != ".cpp") continue;
    const std::string text = record::read_text(entry.path());
    std::smatch in;
    if (!std::regex_search(text, in, detector)) continue;
    for (std::sregex_iterator at(text.begin(), text.end(), function), end; at != end; ++at)
      written.insert(in[1].str() + "." + (*at)[1].str());
  }
  for (const Check& check : all_checks()) {
    std::string name(check.name);
    name.front() = 'd';
    listed.insert(name);
  }
  EXPECT_EQ(written, listed);
}

// The rows of every check change this attempt, so ranks must be able to write it.
TEST(CleanAttempt, IsWhatTheSchemasAllow) {
  record::SchemaOf evidence("evidence"), context("context"), checks("checks");
  for (const Shape& shape : shapes()) {
    const Attempt attempt = clean_attempt(catalogue(), shape.axes, shape.device);
    EXPECT_EQ(context.violations(record::to_json(attempt.context)), std::vector<std::string>{})
        << shape.axes.dump();
    EXPECT_EQ(checks.violations(record::to_json(judge(attempt, catalogue().checks))),
              std::vector<std::string>{})
        << shape.axes.dump();
    for (const Line& line : attempt.ranks.back().evidence->lines)
      EXPECT_EQ(evidence.violations(line.fields), std::vector<std::string>{}) << line.fields.dump();
  }
}

TEST(CheckTable, ACleanAttemptPassesWhatItsCaseRequires) {
  for (const Shape& shape : shapes()) {
    SCOPED_TRACE(shape.axes.dump() + " on " + shape.device);
    const Attempt attempt = clean_attempt(catalogue(), shape.axes, shape.device);
    const record::Checks checks = judge(attempt, catalogue().checks);
    for (const record::CheckResult& result : checks.checks) {
      const bool required = std::ranges::count(attempt.context.required_checks, result.check) > 0;
      EXPECT_NE(result.result, record::Result::fail)
          << result.check << ": " << record::to_text(result.message);
      EXPECT_EQ(result.result == record::Result::pass, required)
          << result.check << ": " << record::to_text(result.message);
      EXPECT_FALSE(result.message.what.empty()) << result.check;
    }
  }
}

TEST(CheckTable, FinishedRanksThatLeftNothingFailWhatIsRequired) {
  const std::set<std::string> unaware = {"D21.evidence_complete", "D21.log_clean", "D22.progress"};
  for (const Shape& shape : shapes()) {
    SCOPED_TRACE(shape.axes.dump() + " on " + shape.device);
    Attempt attempt = clean_attempt(catalogue(), shape.axes, shape.device);
    for (RankFiles& files : attempt.ranks) {
      std::erase_if(files.evidence->lines,
                    [](const Line& line) { return line.kind != "start" && line.kind != "end"; });
      files.evidence->lines.back().fields["lines"] = 1;
    }
    type_again(attempt);
    const record::Checks checks = judge(attempt, catalogue().checks);
    for (const std::string& required : attempt.context.required_checks)
      EXPECT_EQ(word_of(checks, required), unaware.contains(required) ? "pass" : "fail")
          << required;
  }
}

TEST(CheckTable, WithoutAnyEvidenceNothingPassesButWhatTheLauncherSaw) {
  for (const Shape& shape : shapes()) {
    SCOPED_TRACE(shape.axes.dump() + " on " + shape.device);
    Attempt attempt = clean_attempt(catalogue(), shape.axes, shape.device);
    for (RankFiles& files : attempt.ranks) files.evidence.reset();
    const record::Checks checks = judge(attempt, catalogue().checks);
    for (const record::CheckResult& result : checks.checks)
      EXPECT_TRUE(result.result != record::Result::pass || seen_by_the_launcher(result))
          << result.check;
    EXPECT_EQ(word_of(checks, "D21.evidence_complete"), "fail");
    for (const std::string& required : attempt.context.required_checks)
      EXPECT_NE(word_of(checks, required), "not_applicable") << required;
  }
}

TEST(CheckTable, AMissingLastRankIsNeverAPass) {
  for (const Shape& shape : shapes()) {
    Attempt attempt = clean_attempt(catalogue(), shape.axes, shape.device);
    attempt.ranks.back().evidence.reset();
    const record::Checks checks = judge(attempt, catalogue().checks);
    for (const record::CheckResult& result : checks.checks)
      EXPECT_TRUE(result.result != record::Result::pass || seen_by_the_launcher(result))
          << result.check << " " << shape.axes.dump();
  }
}

TEST(CheckTable, EveryKindOfLineIsMissedWhenItIsNotThere) {
  // Figures, which no check judges.
  const std::set<std::string> figures_only = {"phase", "timing", "busy"};
  const json axes = {
      {"impl", "full_iteration"}, {"tp", 2}, {"dp", 2}, {"dropout", true}, {"microbatches", 2}};
  const Attempt clean = clean_attempt(catalogue(), axes, "cuda");
  std::set<std::string> kinds;
  for (const Line& line : clean.ranks[1].evidence->lines) kinds.insert(line.kind);
  for (const std::string& kind : kinds) {
    if (figures_only.contains(kind)) continue;
    Attempt attempt = clean;
    erase(attempt, {.rank = 1, .kind = kind});
    const record::Checks checks = judge(attempt, catalogue().checks);
    EXPECT_TRUE(std::ranges::any_of(checks.checks, [](const auto& result) {
      return result.result == record::Result::fail;
    })) << kind;
  }
}

std::set<std::string> flipped(const record::Checks& before, const record::Checks& after) {
  std::set<std::string> names;
  for (const record::CheckResult& result : before.checks)
    if (result.result == record::Result::pass && word_of(after, result.check) != "pass")
      names.insert(result.check);
  return names;
}

// A damaged line may have held anything, so no check that reads lines of its kind passes, and its
// message names the line.
TEST(CheckTable, ADamagedLineEndsEveryPassThatRestsOnItsKind) {
  const json axes = {
      {"impl", "full_iteration"}, {"tp", 2}, {"dp", 2}, {"dropout", true}, {"microbatches", 2}};
  const Attempt clean = clean_attempt(catalogue(), axes, "cuda");
  const record::Checks whole = judge(clean, catalogue().checks);
  std::set<std::string> kinds;
  for (const Line& line : clean.ranks[1].evidence->lines) kinds.insert(line.kind);
  for (const std::string& kind : kinds) {
    if (kind == "start" || kind == "end") continue;  // which D21 judges
    Attempt without = clean, damaged = clean;
    erase(without, {.rank = 1, .kind = kind});
    std::vector<Line>& lines = damaged.ranks[1].evidence->lines;
    const auto line = std::ranges::find(lines, kind, &Line::kind);
    line->fields = {{"kind", kind}};
    type_again(damaged);
    ASSERT_EQ(damaged.ranks[1].evidence->damaged.size(), 1u) << kind;
    EXPECT_FALSE(damaged.ranks[1].evidence->complete());
    const record::Checks after = judge(damaged, catalogue().checks);
    const std::set<std::string> ended = flipped(whole, after);
    EXPECT_TRUE(ended.contains("D21.evidence_complete")) << kind;
    for (const std::string& check : flipped(whole, judge(without, catalogue().checks)))
      EXPECT_TRUE(ended.contains(check))
          << check << " passes although a line is damaged, of kind " << kind;
    for (const record::CheckResult& result : after.checks)
      if (ended.contains(result.check)) {
        EXPECT_NE(record::to_text(result.message).find("of kind `" + kind + "`"), std::string::npos)
            << result.check << ": " << record::to_text(result.message);
      }
  }
}

// A damaged line must not end the judge, and must not make a failing check pass.
TEST(CheckTable, DamagedFieldsNeverThrowAndNeverHideAFailure) {
  const json axes = {
      {"impl", "manual"}, {"dropout", true}, {"steps", 3}, {"warmup_steps", 1}, {"layers", 1}};
  Attempt attempt = clean_attempt(catalogue(), axes, "cuda");
  set(attempt, {.rank = 0, .kind = "vote", .arm = {}}, "codes", {3});
  const json damages[] = {nullptr, "x", -1, json::array({"x", nullptr}), json::object()};
  std::vector<Line>& lines = attempt.ranks[0].evidence->lines;
  std::set<std::string> done;  // one line for each kind and arm
  for (Line& line : lines) {
    if (!done.insert(line.kind + "/" + text(line, "arm")).second) continue;
    const json whole = line.fields;
    for (const auto& [key, value] : whole.items()) {
      // If the revision is too low, newer checks have nothing to judge.
      if (key == "kind" || key == "revision" || line.kind == "vote") continue;
      for (const json& damage : damages) {
        line.fields[key] = damage;
        type_again(attempt);
        record::Checks checks;
        ASSERT_NO_THROW(checks = judge(attempt, catalogue().checks))
            << line.kind << "." << key << " = " << damage;
        EXPECT_EQ(word_of(checks, "D26.votes"), "fail")
            << line.kind << "." << key << " = " << damage;
      }
      line.fields = whole;
    }
  }
}

TEST(CheckTable, ARequiredCheckIsNeverNotApplicable) {
  Attempt attempt = clean_attempt(catalogue(), {{"impl", "none"}});
  attempt.context.required_checks.push_back("D01.lockstep");
  const record::Checks checks = judge(attempt, catalogue().checks);
  EXPECT_EQ(word_of(checks, "D01.lockstep"), "unexercised");
  EXPECT_EQ(word_of(checks, "D43.replays"), "not_applicable");
}

TEST(CheckTable, ADroppedCheckIsNotInTheResult) {
  const Attempt attempt = clean_attempt(catalogue(), {{"impl", "manual"}});
  const record::Checks checks = judge(attempt, catalogue().checks, {"D43.replays"});
  EXPECT_EQ(word_of(checks, "D43.replays"), "missing");
  EXPECT_EQ(checks.checks.size(), all_checks().size() - 1);
  EXPECT_THROW(judge(attempt, catalogue().checks, {"D43.replay"}), std::invalid_argument);
}

TEST(CheckTable, ARefusedCaseIsJudgedByItsRefusalAlone) {
  const json axes = {{"impl", "full_iteration"}, {"nan_check_loss", true}, {"tp", 2}};
  Attempt attempt = clean_attempt(catalogue(), axes);
  attempt.context.required_checks.clear();
  for (RankFiles& files : attempt.ranks) {
    std::erase_if(files.evidence->lines,
                  [](const Line& line) { return line.kind != "start" && line.kind != "end"; });
    add(attempt, files.rank,
        {{"kind", "refused"},
         {"phase", "validate"},
         {"rule", "R035"},
         {"device_initialised", false},
         {"what", "w"},
         {"got", "g"},
         {"want", "t"},
         {"why", "y"},
         {"next", "n"}});
    files.evidence->lines.back().fields["last_phase"] = "validate";
  }
  type_again(attempt);
  const record::Checks checks = judge(attempt, catalogue().checks);
  const std::set<std::string> judged = {"D21.evidence_complete", "D21.log_clean", "D22.progress",
                                        "D26.votes"};
  for (const record::CheckResult& result : checks.checks)
    EXPECT_EQ(record::name(result.result),
              judged.contains(result.check) ? "pass" : "not_applicable")
        << result.check;
  ASSERT_TRUE(checks.ranks[1].refused);
  EXPECT_EQ(checks.ranks[1].refused->rule, "R035");
  EXPECT_EQ(checks.ranks[1].refused->message.next, "n");
  EXPECT_FALSE(checks.ranks[1].refused->device_initialised);
}

TEST(CheckTable, EvidenceFromBeforeACheckLeavesItNotApplicableAndUnexercisedWhereItIsRequired) {
  Attempt attempt = clean_attempt(catalogue(), {{"impl", "manual"}});
  set(attempt, {.kind = "start"}, "revision", 1);
  EXPECT_EQ(word_of(judge(attempt, catalogue().checks), "D31.allocator_series"), "unexercised");
  attempt.context.required_checks.clear();
  const record::Checks checks = judge(attempt, catalogue().checks);
  for (const record::CheckResult& result : checks.checks)
    if (const std::int64_t since = catalogue().checks.find(result.check)->since; since > 1) {
      EXPECT_EQ(record::name(result.result), "not_applicable") << result.check;
      EXPECT_EQ(result.message.got, "evidence of revision 1");
      EXPECT_EQ(result.message.want, "revision " + std::to_string(since) + " or newer");
    }
}

TEST(CheckTable, RanksCarryTheirWayAndTheFiguresOfTheCase) {
  Attempt attempt = clean_attempt(catalogue(), {{"impl", "manual"}, {"tp", 2}});
  die_before(attempt, {.rank = 1, .kind = "replay", .arm = "lockstep_graph", .step = 3});
  const record::Checks checks = judge(attempt, catalogue().checks);
  ASSERT_EQ(checks.ranks.size(), 2u);
  EXPECT_TRUE(checks.ranks[0].complete);
  EXPECT_EQ(checks.ranks[0].last_phase, record::Phase::teardown_process);
  EXPECT_FALSE(checks.ranks[1].complete);
  EXPECT_EQ(checks.ranks[1].last_phase, record::Phase::replay);
  EXPECT_DOUBLE_EQ(checks.figures.at("eager_ms"), 6.0);
  EXPECT_DOUBLE_EQ(checks.figures.at("replay_ms"), 2.0);
  EXPECT_DOUBLE_EQ(checks.figures.at("capture_ms"), 4.0);
  EXPECT_DOUBLE_EQ(checks.figures.at("graph_nodes"), 391);
  EXPECT_DOUBLE_EQ(checks.figures.at("eager_step_ms"), 6.0);
  EXPECT_DOUBLE_EQ(checks.figures.at("graph_step_ms"), 2.0);
  EXPECT_DOUBLE_EQ(checks.figures.at("eager_launch_ms"), 5.5);
  EXPECT_DOUBLE_EQ(checks.figures.at("graph_launch_ms"), 0.5);
  EXPECT_DOUBLE_EQ(checks.figures.at("eager_busy_share"), 0.3);
  EXPECT_DOUBLE_EQ(checks.figures.at("graph_busy_ms"), 1.8);
  EXPECT_DOUBLE_EQ(checks.figures.at("capture_seconds"), 0.004);
  EXPECT_DOUBLE_EQ(checks.figures.at("graphs"), 1);
  EXPECT_DOUBLE_EQ(checks.figures.at("extra_memory_bytes"), 0);
}

TEST(CheckTable, TheWordsSurviveTheirFile) {
  const Attempt attempt = clean_attempt(catalogue(), {{"impl", "manual"}});
  const record::Checks checks = judge(attempt, catalogue().checks);
  const json written = json::parse(record::to_json(checks).dump());
  EXPECT_EQ(record::checks_from(written, "checks.json"), checks);
}

}  // namespace
}  // namespace graphproof::checks
