#include "suites/checks/attempt/arms.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "suites/checks/testing/check_rows.h"

namespace graphproof::checks {
namespace {

const nlohmann::json kGraphs = {{"impl", "manual"}};
constexpr const char* kDevice = "sim";

// In evidence older than revision 5 the second runs are arms of their own.

TEST(ControlArms, BeforeRevisionFiveEagerBRepeatsEager) {
  judge_rows(
      "D02.eager_repeats", {{"impl", "none"}},
      {{.name = "differs",
        .change =
            [](Attempt& a) {
              set(a, {.rank = 0, .kind = "compare", .step = 4, .name = "eager_repeats"}, "equal",
                  false);
            },
        .rank = 0,
        .mentions = {"eager_b differs from eager_a at step 4"}},
       {.name = "absent",
        .change =
            [](Attempt& a) { erase(a, {.rank = 0, .kind = "step", .arm = "eager_b", .step = 3}); },
        .rank = 0,
        .mentions = {"`step` line of arm eager_b at step 3"}}},
      kDevice, 4);
}

TEST(ControlArms, BeforeRevisionFiveGraphBRepeatsTheGraphByItsBytes) {
  judge_rows("D02.graph_repeats", kGraphs,
             {{.name = "differs",
               .change =
                   [](Attempt& a) {
                     set(a, {.rank = 0, .kind = "compare", .step = 4, .name = "graph_repeats"},
                         "equal", false);
                   },
               .rank = 0,
               .mentions = {"graph_b differs from lockstep_graph at step 4"}},
              {.name = "another arm's comparison",
               .change =
                   [](Attempt& a) {
                     set(a, {.rank = 0, .kind = "compare", .name = "graph_repeats"}, "right",
                         "solo_graph");
                   },
               .rank = 0,
               .mentions = {"lockstep_graph with solo_graph"}}},
             kDevice, 4);
}

TEST(GraphArms, BeforeRevisionFiveGraphBCaptures) {
  judge_rows(
      "D36.capture_changes_nothing", kGraphs,
      {{.name = "absent",
        .change = [](Attempt& a) { erase(a, {.rank = 0, .kind = "state", .arm = "graph_b"}); },
        .rank = 0,
        .mentions = {"`state` line of the capture of arm graph_b"}}},
      kDevice, 4);
}

TEST(WatchedReplays, BeforeRevisionFiveThoseOfGraphBAreToo) {
  judge_rows(
      "D03.outputs_written", kGraphs,
      {{.name = "absent",
        .change = [](Attempt& a) { erase(a, {.rank = 0, .kind = "poison", .arm = "graph_b"}); },
        .rank = 0,
        .mentions = {"`poison` line of arm graph_b at step 2"}},
       {.name = "canaries left",
        .change =
            [](Attempt& a) {
              set(a, {.rank = 0, .kind = "poison", .arm = "graph_b", .step = 2}, "canary_words", 1);
            },
        .rank = 0,
        .mentions = {"in arm graph_b at step 2"}}},
      kDevice, 4);
  judge_rows("D07.static_addresses", kGraphs,
             {{.name = "absent",
               .change =
                   [](Attempt& a) {
                     erase(a, {.rank = 0, .kind = "address", .arm = "graph_b", .step = 4});
                   },
               .rank = 0,
               .mentions = {"`address` line of arm graph_b at step 4"}}},
             kDevice, 4);
  judge_rows("D43.replays", kGraphs,
             {{.name = "captured again",
               .change =
                   [](Attempt& a) {
                     set(a, {.rank = 0, .kind = "replay", .arm = "graph_b", .step = 4},
                         "recaptures", 1);
                   },
               .rank = 0,
               .mentions = {"arm graph_b", "1 recaptures"}}},
             kDevice, 4);
}

TEST(FirstTimedStep, LeavesOutWhatFollowsACopy) {
  const matrix::Catalogue catalogue = matrix::load_catalogue();
  const auto eager_step_ms = [&](std::int64_t revision, std::int64_t first_slow,
                                 std::int64_t last_slow) {
    Attempt attempt = clean_attempt(catalogue, kGraphs, kDevice, revision);
    for (std::int64_t step = first_slow; step <= last_slow; ++step)
      set(attempt, {.rank = 0, .kind = "timing", .arm = "solo_eager", .step = step}, "wall_ms",
          60.0);
    return judge(attempt, catalogue.checks).figures.at("eager_step_ms");
  };
  EXPECT_EQ(eager_step_ms(record::kEvidenceRevision, 0, 7), 6.0)
      << "the last five count, and two may be slow";
  EXPECT_EQ(eager_step_ms(record::kEvidenceRevision, 6, 8), 60.0);
  EXPECT_EQ(eager_step_ms(4, 0, 6), 6.0) << "the last seven count, and three may be slow";
  EXPECT_EQ(eager_step_ms(4, 4, 7), 60.0);
}

TEST(Arms, EveryRequiredCheckPassesAtBothRevisions) {
  const matrix::Catalogue catalogue = matrix::load_catalogue();
  for (const std::int64_t revision : {std::int64_t{4}, record::kEvidenceRevision})
    for (const char* model : {"gpt", "collective"}) {
      const Attempt attempt = clean_attempt(
          catalogue, {{"impl", "manual"}, {"dp", 2}, {"model", model}}, kDevice, revision);
      const record::Checks checks = judge(attempt, catalogue.checks);
      for (const record::CheckResult& result : checks.checks) {
        const auto& required = attempt.context.required_checks;
        if (std::find(required.begin(), required.end(), result.check) == required.end()) continue;
        const bool asked = catalogue.checks.find(result.check)->since <= revision;
        EXPECT_EQ(record::name(result.result), std::string_view(asked ? "pass" : "unexercised"))
            << revision << " " << model << " " << result.check << ": "
            << record::to_text(result.message);
      }
    }
}

}  // namespace
}  // namespace graphproof::checks
