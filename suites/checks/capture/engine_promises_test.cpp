#include <gtest/gtest.h>

#include <tuple>

#include "suites/checks/testing/check_rows.h"

namespace graphproof::checks {
namespace {

using nlohmann::json;

const json kCase = {{"impl", "full_iteration"}, {"tp", 2}, {"microbatches", 2}};

Row died(const Where& where) {
  return {.name = "the rank died",
          .change = [=](Attempt& a) { die_before(a, where); },
          .want = record::Result::unexercised,
          .rank = std::nullopt,
          .said = {"rank 1"},
          .also = {"*"}};
}

TEST(OperandsAlive, Rows) {
  const Where third{.rank = 1, .kind = "freed", .arm = "lockstep_graph", .step = 3};
  judge_rows("D05.operands_alive", kCase,
             {
                 {.name = "a freed input (M27)",
                  .change =
                      [=](Attempt& a) {
                        set(a, third, "freed",
                            {"0x7f0000000200, 4096 bytes", "0x7f0000002200, 512 bytes"});
                      },
                  .rank = 1,
                  .said = {"a graph of arm lockstep_graph is about to touch memory that was freed",
                           "0x7f0000000200, 4096 bytes, and 1 more"}},
                 {.name = "nothing was looked at",
                  .change = [=](Attempt& a) { set(a, third, "operands", 0); },
                  .rank = 1,
                  .said = {"0 blocks looked at"}},
                 {.name = "absent",
                  .change = [=](Attempt& a) { erase(a, third); },
                  .rank = 1,
                  .said = {"`freed` line of arm lockstep_graph at step 3"}},
                 died(third),
             });
}

TEST(OperandsAlive, AreJudgedOnBothDevices) {
  const Where third{.rank = 1, .kind = "freed", .arm = "lockstep_graph", .step = 3};
  EXPECT_EQ(
      judge_one("D05.operands_alive", kCase, [](Attempt&) {}, "cuda").result, record::Result::pass);
  EXPECT_EQ(judge_one(
                "D05.operands_alive", kCase,
                [=](Attempt& a) { set(a, third, "freed", {"0x7f0000000200, 4096 bytes"}); }, "cuda")
                .result,
            record::Result::fail);
}

TEST(KeptLosses, Rows) {
  const Where third{.rank = 1, .kind = "kept", .arm = "lockstep_graph", .step = 3};
  judge_rows("D12.kept_losses", kCase,
             {
                 {.name = "changed under whoever kept them (M38)",
                  .change = [=](Attempt& a) { set(a, third, "later", "ffffffffffffffff"); },
                  .rank = 1,
                  .said = {"the losses that arm lockstep_graph handed out in step 3 changed",
                           "ffffffffffffffff"}},
                 {.name = "no digest",
                  .change = [=](Attempt& a) { set(a, third, "digest", ""); },
                  .rank = 1,
                  .said = {"a digest, as when they were handed out"}},
                 {.name = "absent",
                  .change = [=](Attempt& a) { erase(a, third); },
                  .rank = 1,
                  .said = {"`kept` line of arm lockstep_graph at step 3"}},
                 died(third),
             });
}

TEST(Participation, Rows) {
  const Where third{.rank = 1, .kind = "replay", .arm = "lockstep_graph", .step = 3};
  judge_rows(
      "D26.participation", kCase,
      {
          {.name = "one rank falls back (M56)",
           .change = [=](Attempt& a) { set(a, third, "fallbacks", 1); },
           .rank = 1,
           .said = {"ranks 0 and 1 did not take the same way through step 3 of arm lockstep_graph",
                    "1 fallbacks", "as rank 0"},
           .also = {"D43.replays"}},
          {.name = "one rank launches less",
           .change = [=](Attempt& a) { set(a, third, "replays", 1); },
           .rank = 1,
           .said = {"1 launches", "2 launches"},
           .also = {"D43.replays"}},
          {.name = "both ranks as one, and wrongly: that is D43's",
           .change =
               [](Attempt& a) {
                 set(a, {.kind = "replay", .arm = "lockstep_graph", .step = 3}, "replays", 7);
               },
           .want = record::Result::pass,
           .rank = std::nullopt,
           .said = {},
           .also = {"D43.replays"}},
          {.name = "launches of an arm that another rank does not make",
           .change =
               [](Attempt& a) {
                 for (const int rank : {0, 1})
                   add(a, rank,
                       record::line_json(record::ReplayLine{.arm = "extra",
                                                            .graph = "training",
                                                            .step = 9,
                                                            .replays = rank,
                                                            .out_of_order = 0}));
               },
           .rank = 1,
           .said = {"1 launches", "0 launches"}},
          died({.rank = 1, .kind = "replay"}),
      });
}

TEST(FailedCaptureLeavesNothing, JudgesOnlyWhatFailedAndWasTakenBack) {
  EXPECT_EQ(judge_one("D33.failed_capture_leaves_nothing", kCase, [](Attempt&) {}).result,
            record::Result::not_applicable);
  const auto failed = [](std::int64_t bytes) {
    return [bytes](Attempt& a) {
      for (const int rank : {0, 1})
        add(a, rank,
            {{"kind", "failed_capture"},
             {"arm", "lockstep_graph"},
             {"graph", "training"},
             {"code", 900},
             {"site", "aten::item"},
             {"message", "m"},
             {"pool_bytes", rank * bytes}});
    };
  };
  EXPECT_EQ(judge_one("D33.failed_capture_leaves_nothing", kCase, failed(0)).result,
            record::Result::pass);
  const auto left = judge_one("D33.failed_capture_leaves_nothing", kCase, failed(2097152));
  EXPECT_EQ(left.result, record::Result::fail);
  EXPECT_EQ(left.rank, 1);
  EXPECT_EQ(left.message.what, "a failed capture in arm lockstep_graph left its pool behind");
  EXPECT_EQ(left.message.got, "2097152 bytes after reset and empty_cache, code 900");
  if (left.result == record::Result::fail)
    RecordProperty("D33.failed_capture_leaves_nothing",
                   "fails");  // a clean attempt has none, so no row
}

TEST(PoolOrder, Rows) {
  const Where third{.rank = 1, .kind = "replay", .arm = "lockstep_graph", .step = 3};
  judge_rows("D35.pool_order", kCase,
             {
                 {.name = "out of order (M43)",
                  .change = [=](Attempt& a) { set(a, third, "out_of_order", 2); },
                  .rank = 1,
                  .said = {"graphs of one pool ran in another order", "2 launches out of order"}},
                 {.name = "nobody counted",
                  .change = [=](Attempt& a) { unset(a, third, "out_of_order"); },
                  .rank = 1,
                  .said = {"unknown launches"}},
                 died({.rank = 1, .kind = "replay"}),
             });
}

TEST(WarmedUp, Rows) {
  const Where capture{.rank = 1, .kind = "capture", .arm = "solo_graph"};
  judge_rows("D37.warmed_up", kCase,
             {
                 {.name = "no warm-up (M46)",
                  .change = [=](Attempt& a) { set(a, capture, "warmups", 0); },
                  .rank = 1,
                  .said = {"graph training of arm solo_graph was captured before its work had run",
                           "0 warm-up runs", "2, as axis warmup_steps says"}},
                 {.name = "nobody counted",
                  .change = [=](Attempt& a) { unset(a, capture, "warmups"); },
                  .rank = 1,
                  .said = {"unknown warm-up runs"}},
                 {.name = "a warm-up that the engine counts and no layer (M168)",
                  .change = [=](Attempt& a) { set(a, capture, "counter_before", {4, 3}); },
                  .rank = 1,
                  .said = {"layers had not run before graph training of arm solo_graph", "[4,3]",
                           "4 at least: 2 eager steps"},
                  .also = {"D18.coverage"}},
                 died(capture),
             });
}

TEST(WarmedUp, OfLocalTheOptimizerRunsOnceBeforeItsCaptureAndItsModulesAsAsked) {
  const Where capture{.rank = 0, .kind = "capture", .arm = "solo_graph"};
  for (const auto& [graph, warmups, word] : {std::tuple{"optimizer", 1, "pass"},
                                             {"optimizer", 0, "fail"},
                                             {"layers.0.layer.forward", 1, "fail"}}) {
    const record::CheckResult result =
        judge_one("D37.warmed_up", {{"impl", "local"}, {"optimizer_graph", true}}, [&](Attempt& a) {
          set(a, capture, "graph", graph);
          set(a, capture, "warmups", warmups);
        });
    EXPECT_EQ(record::name(result.result), word)
        << graph << " " << warmups << ": " << record::to_text(result.message);
  }
}

TEST(ModulesWarmedUp, Rows) {
  const Where capture{.rank = 1, .kind = "capture", .arm = "solo_graph"};
  const auto runs = [=](std::int64_t forwards, std::int64_t backwards) {
    return [=](Attempt& a) {
      set(a, capture, "module_runs", {{"forwards", forwards}, {"backwards", backwards}});
    };
  };
  judge_rows("D37.modules_warmed_up", {{"impl", "local"}, {"dp", 2}, {"microbatches", 2}},
             {
                 {.name = "no pass but the recorded step's (M169)",
                  .change = runs(2, 2),
                  .rank = 1,
                  .said = {"the module of graph training of arm solo_graph had run more rarely",
                           "2 forwards, 2 backwards",
                           "4 of each at least: 2 warm-ups behind 2 in the recorded step"}},
                 {.name = "passes without their backward (M170)",
                  .change = runs(4, 3),
                  .rank = 1,
                  .said = {"4 forwards, 3 backwards"}},
                 {.name = "an engine that says none",
                  .change = [=](Attempt& a) { set(a, capture, "warmups", 0); },
                  .rank = 1,
                  .said = {"0 warm-ups"},
                  .also = {"D37.warmed_up"}},
                 {.name = "nobody counted in an arm",
                  .change = [=](Attempt& a) { set(a, capture, "module_runs", nullptr); },
                  .rank = 1,
                  .said = {"`capture` line with `module_runs` of arm solo_graph"}},
                 died(capture),
             });
  EXPECT_EQ(
      judge_one("D37.modules_warmed_up", {{"impl", "transformer_engine"}, {"dp", 2}}, runs(2, 2))
          .result,
      record::Result::pass)
      << "its eager steps are the warm-up";
  EXPECT_EQ(
      judge_one("D37.modules_warmed_up", {{"impl", "full_iteration"}}, [](Attempt&) {}).result,
      record::Result::not_applicable);
}

TEST(IdleWhenDropped, Rows) {
  const auto graphs = [](Attempt& a) -> Line& {
    for (Line& line : a.ranks[1].evidence->lines)
      if (line.kind == "teardown" && text(line, "step") == "graphs") return line;
    throw std::logic_error("no such line");
  };
  judge_rows("D29.idle_when_dropped", kCase,
             {
                 {.name = "dropped in flight (M72)",
                  .change = [=](Attempt& a) { graphs(a).fields["in_flight"] = 4; },
                  .rank = 1,
                  .said = {"rank 1 dropped graphs that the device was still running",
                           "4 replays in flight"}},
                 {.name = "nobody counted",
                  .change = [=](Attempt& a) { graphs(a).fields.erase("in_flight"); },
                  .rank = 1,
                  .said = {"unknown replays in flight"}},
                 died({.rank = 1, .kind = "teardown"}),
             });
}

}  // namespace
}  // namespace graphproof::checks
