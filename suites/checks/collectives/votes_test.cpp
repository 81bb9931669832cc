#include <gtest/gtest.h>

#include <algorithm>

#include "suites/checks/testing/check_rows.h"

namespace graphproof::checks {
namespace {

using nlohmann::json;

void set_codes(Attempt& attempt, std::optional<int> rank, const char* phase, json codes) {
  for (RankFiles& files : attempt.ranks) {
    if (rank && *rank != files.rank) continue;
    for (Line& line : files.evidence->lines)
      if (line.kind == "vote" && text(line, "phase") == phase) line.fields["codes"] = codes;
  }
}

/// Removes the first vote after `phase`.
void without_vote(Attempt& attempt, int rank, std::string_view phase) {
  auto& lines = attempt.ranks[static_cast<std::size_t>(rank)].evidence->lines;
  lines.erase(std::ranges::find_if(lines, [&](const Line& line) {
    return line.kind == "vote" && text(line, "phase") == phase;
  }));
  set(attempt, {.rank = rank, .kind = "end"}, "lines", lines.size() - 1);
}

json refusal(const char* rule) {
  return {{"kind", "refused"}, {"phase", "validate"}, {"rule", rule}, {"device_initialised", false},
          {"what", "w"},       {"got", "g"},          {"want", "t"},  {"why", "y"},
          {"next", "n"}};
}

/// Leaves each rank the first `count` votes after phase capture.
void keep_capture_votes(Attempt& attempt, int count) {
  for (RankFiles& files : attempt.ranks) {
    auto& lines = files.evidence->lines;
    int votes = 0;
    std::erase_if(lines, [&](const Line& line) {
      return line.kind == "vote" && text(line, "phase") == "capture" && ++votes > count;
    });
    set(attempt, {.rank = files.rank, .kind = "end"}, "lines", lines.size() - 1);
  }
}

TEST(Votes, StagesWithOtherNumbersOfLocalGraphsVoteOnceAnArm) {
  const auto result = [](const char* impl, int votes) {
    return judge_one("D26.votes",
                     {{"subject", "megatron_core"}, {"impl", impl}, {"pp", 2}, {"microbatches", 4}},
                     [=](Attempt& a) { keep_capture_votes(a, votes); })
        .result;
  };
  EXPECT_EQ(result("local", 3), record::Result::pass);
  EXPECT_EQ(result("local", 2), record::Result::fail);
  EXPECT_EQ(result("transformer_engine", 3), record::Result::fail);
}

TEST(Votes, Rows) {
  judge_rows(
      "D26.votes", {{"impl", "full_iteration"}, {"tp", 2}},
      {
          {.name = "rank 1 failed",
           .change = [](Attempt& a) { set_codes(a, std::nullopt, "build", {0, 3}); },
           .rank = 1,
           .mentions = {"rank 1 voted that phase build failed", "codes 0 3 after phase build"}},
          {.name = "all ranks failed with the same code outside the capture",
           .change = [](Attempt& a) { set_codes(a, std::nullopt, "build", {3, 3}); },
           .rank = 0,
           .mentions = {"rank 0 voted"}},
          {.name = "all ranks failed in capture and none reports why",
           .change = [](Attempt& a) { set_codes(a, std::nullopt, "capture", {900, 900}); },
           .rank = 0,
           .mentions = {"phase capture failed"}},
          {.name = "one rank failed its capture",
           .change =
               [](Attempt& a) {
                 set_codes(a, std::nullopt, "capture", {0, 900});
                 set(a, {.rank = 1, .kind = "capture", .arm = "solo_graph"}, "status", "error");
               },
           .rank = 1,
           .mentions = {"rank 1 voted that phase capture failed"},
           .also = {"D19.capture_status", "D15.census", "D24.rank_signatures",
                    "D84.second_capture"}},
          {.name = "ranks recorded different votes",
           .change =
               [](Attempt& a) {
                 for (Line& line : a.ranks[1].evidence->lines)
                   if (line.kind == "vote" && text(line, "phase") == "build")
                     line.fields["phase"] = "warmup";
               },
           .rank = 1,
           .mentions = {"ranks 0 and 1 recorded different votes", "vote 2 of rank 1"}},
          {.name = "a vote of one rank only",
           .change = [](Attempt& a) { set_codes(a, std::nullopt, "build", {0}); },
           .rank = 0,
           .mentions = {"lacks codes of ranks", "2 codes"}},
          {.name = "no vote at all",
           .change = [](Attempt& a) { erase(a, {.rank = std::nullopt, .kind = "vote"}); },
           .rank = 0,
           .mentions = {"rank 0 left no vote after phase init"}},
          {.name = "no vote after the last phase",
           .change =
               [](Attempt& a) {
                 for (const int rank : {0, 1}) without_vote(a, rank, "teardown_process");
               },
           .rank = 0,
           .mentions = {"rank 0 left no vote after phase teardown_process"}},
          {.name = "no vote after one of the captures",
           .change =
               [](Attempt& a) {
                 for (const int rank : {0, 1}) without_vote(a, rank, "capture");
               },
           .rank = 0,
           .mentions = {"rank 0 left no 1 of 4 votes after phase capture"}},
          {.name = "no vote after the replays of one arm",
           .change =
               [](Attempt& a) {
                 for (const int rank : {0, 1}) without_vote(a, rank, "replay");
               },
           .rank = 0,
           .mentions = {"rank 0 left no 1 of 3 votes after phase replay"}},
          {.name = "one rank did not vote",
           .change = [](Attempt& a) { erase(a, {.rank = 1, .kind = "vote"}); },
           .rank = 1,
           .mentions = {"rank 1 left no vote"}},
          {.name = "an error",
           .change =
               [](Attempt& a) {
                 add(a, 1,
                     {{"kind", "error"},
                      {"phase", "replay"},
                      {"arm", "solo_graph"},
                      {"step", 3},
                      {"type", "nccl"},
                      {"code", 2},
                      {"call", "ncclAllReduce"},
                      {"message", "unhandled system error"}});
               },
           .rank = 1,
           .mentions = {"rank 1 met an error in phase replay, arm solo_graph",
                        "nccl error 2 at ncclAllReduce: unhandled system error"}},
          {.name = "one rank refused",
           .change =
               [](Attempt& a) {
                 a.ranks[1].evidence->lines.resize(2);
                 add(a, 1, refusal("R035"));
               },
           .rank = 0,
           .mentions = {"rank 0 did not refuse the case as others did", "refused by rule R035"},
           .also = {"*"}},
          {.name = "refused by other rules",
           .change =
               [](Attempt& a) {
                 for (int rank : {0, 1}) {
                   a.ranks[static_cast<std::size_t>(rank)].evidence->lines.resize(1);
                   add(a, rank, refusal(rank == 0 ? "R035" : "R071"));
                 }
               },
           .rank = 1,
           .mentions = {"refused by rule R071"},
           .also = {"*"}},
          {.name = "a rank died",
           .change =
               [](Attempt& a) { die_before(a, {.rank = 1, .kind = "step", .arm = "solo_eager"}); },
           .want = record::Result::unexercised,
           .rank = std::nullopt,
           .mentions = {"rank 1"},
           .also = {"*"}},
      });
}

TEST(Votes, OfASingleRankAreVotesToo) {
  judge_rows("D26.votes", json::object(),
             {
                 {.name = "absent",
                  .change = [](Attempt& a) { erase(a, {.rank = 0, .kind = "vote"}); },
                  .rank = 0,
                  .mentions = {"no vote after phase init"}},
             });
}

}  // namespace
}  // namespace graphproof::checks
