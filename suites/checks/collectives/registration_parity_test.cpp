#include <gtest/gtest.h>

#include "suites/checks/testing/check_rows.h"

namespace graphproof::checks {
namespace {

using nlohmann::json;
using record::Result;

constexpr const char* kParityCheck = "D27.registration_parity";

json captured(const char* collective, const char* allocator = "expandable",
              const char* graph_register = "1") {
  return {{"impl", "manual"},
          {"dp", 2},
          {"model", "collective"},
          {"collective", collective},
          {"collective_bytes", 65536},
          {"allocator", allocator},
          {"nccl_graph_register", graph_register}};
}

/// Removes every line that contains `text` from the log of `rank`.
auto without(int rank, const char* text) {
  return [rank, text](Attempt& attempt) {
    std::string& log = *attempt.ranks.at(static_cast<std::size_t>(rank)).log;
    std::string kept;
    for (std::size_t begin = 0; begin < log.size();) {
      const std::size_t end = log.find('\n', begin) + 1;
      const std::string line = log.substr(begin, end - begin);
      if (line.find(text) == std::string::npos) kept += line;
      begin = end;
    }
    ASSERT_NE(kept.size(), log.size()) << text;
    log = kept;
  };
}

TEST(RegistrationParity, RanksThatDisagreeFailIt) {
  judge_rows(
      kParityCheck, captured("all_gather"),
      {
          {"rank 1 registered nothing",
           without(1, "IPC register"),
           Result::fail,
           1,
           {"the ranks disagree whether NCCL registers the buffers of the captured all_gather",
            "3 buffers on ranks 0; 0 buffers on ranks 1", "as many on every rank",
            "NCCL_GRAPH_REGISTER=0"}},
          {"rank 0 registered one buffer less",
           without(0, "0x7f2a42000000"),
           Result::fail,
           0,
           {"3 buffers on ranks 1; 2 buffers on ranks 0"}},
          {"no rank registered",
           [](Attempt& attempt) {
             without(0, "IPC register")(attempt), without(1, "IPC register")(attempt);
           },
           Result::unexercised,
           std::nullopt,
           {"NCCL registered nothing on any rank, where a captured all_gather in expandable "
            "segments is expected to be registered; it used RING SIMPLE"}},
          {"NCCL was silent",
           [](Attempt& attempt) { attempt.ranks[1].log = "graphproof: rank ready\n"; },
           Result::unexercised,
           std::nullopt,
           {"the log of rank 1 has no line of NCCL, which NCCL_DEBUG=INFO asks for"}},
      },
      "cuda");
}

TEST(RegistrationParity, RanksThatHungInTheFirstReplayAreJudgedByTheirLogs) {
  const auto hung = [](Attempt& attempt) {
    die_before(attempt, {.kind = "replay", .arm = "lockstep_graph"});
    for (int rank : {0, 1}) {
      without(rank, "0x7f2a41000000")(attempt);
      without(rank, "0x7f2a42000000")(attempt);
    }
  };
  const record::CheckResult clean = judge_one(kParityCheck, captured("all_gather"), hung, "cuda");
  EXPECT_EQ(record::name(clean.result), "pass") << record::to_text(clean.message);
  const record::CheckResult broken = judge_one(
      kParityCheck, captured("all_gather"),
      [&](Attempt& attempt) {
        hung(attempt);
        without(1, "IPC register")(attempt);
      },
      "cuda");
  EXPECT_EQ(record::name(broken.result), "fail");
  EXPECT_EQ(broken.message.got, "1 buffers on ranks 0; 0 buffers on ranks 1");
}

TEST(RegistrationParity, RegistrationThatIsSwitchedOffMustNotHappen) {
  const auto registered = [](Attempt& attempt) {
    *attempt.ranks[0].log +=
        "h:1:1 [0] NCCL INFO rank 0 - IPC register buffer 0x90 size 64 (baseAddr 0x90 size 64) to "
        "peer 1 regAddr 0x91 offsetOut 0\n";
  };
  judge_rows(kParityCheck, captured("all_gather", "expandable", "0"),
             {{"registered all the same",
               registered,
               Result::fail,
               0,
               {"NCCL registered buffers of a graph although NCCL_GRAPH_REGISTER is 0",
                "1 buffers on ranks 0; 0 buffers on ranks 1"}}},
             "cuda");
}

TEST(RegistrationParity, WhatIsNeverRegisteredAgreesInSilence) {
  for (const char* collective : {"all_reduce_in_place", "reduce_scatter"}) {
    const record::CheckResult result = judge_one(
        kParityCheck, captured(collective),
        [](Attempt& attempt) {
          without(0, "IPC register")(attempt);
          without(1, "IPC register")(attempt);
        },
        "cuda");
    EXPECT_EQ(record::name(result.result), "pass") << collective;
    EXPECT_EQ(result.message.got, "registered on no rank");
  }
  EXPECT_EQ(
      record::name(judge_one(
                       kParityCheck, captured("all_gather", "default"), [](Attempt&) {}, "cuda")
                       .result),
      "pass");
}

TEST(RegistrationParity, OtherCasesHaveNothingToJudge) {
  EXPECT_EQ(record::name(judge_one(
                             kParityCheck, {{"impl", "manual"}, {"tp", 2}}, [](Attempt&) {}, "cuda")
                             .result),
            "not_applicable");
  json eager = captured("all_gather");
  eager.erase("impl");
  EXPECT_EQ(record::name(judge_one(
                             kParityCheck, eager, [](Attempt&) {}, "cuda")
                             .result),
            "not_applicable");
  EXPECT_EQ(record::name(judge_one(
                             kParityCheck, captured("all_gather", "default", "unset"),
                             [](Attempt&) {}, "sim")
                             .result),
            "not_applicable");
}

}  // namespace
}  // namespace graphproof::checks
