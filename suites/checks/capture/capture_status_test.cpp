#include <gtest/gtest.h>

#include "suites/checks/testing/check_rows.h"

namespace graphproof::checks {
namespace {

nlohmann::json refused_operator() {
  return {{"kind", "error"},
          {"phase", "capture"},
          {"arm", "lockstep_graph"},
          {"step", 2},
          {"type", "cuda"},
          {"code", 900},
          {"call", "aten::_local_scalar_dense"},
          {"message", "operation not permitted when stream is capturing"}};
}

TEST(CaptureStatus, Rows) {
  const Where capture{.rank = 0, .kind = "capture", .arm = "lockstep_graph"};
  judge_rows("D19.capture_status", {{"impl", "full_iteration"}},
             {
                 {.name = "an error in phase capture",
                  .change = [](Attempt& a) { add(a, 0, refused_operator()); },
                  .rank = 0,
                  .mentions = {"the capture of arm lockstep_graph failed",
                               "code 900 at aten::_local_scalar_dense: operation not permitted"}},
                 {.name = "a host synchronisation (M01)",
                  .change =
                      [=](Attempt& a) {
                        set(a, capture, "status", "error");
                        set(a, capture, "code", 900);
                        set(a, capture, "site", "aten::_local_scalar_dense");
                        die_before(a, {.rank = 0, .kind = "state", .arm = "lockstep_graph"});
                        add(a, 0, {{"kind", "vote"}, {"phase", "capture"}, {"codes", {900}}});
                        add(a, 0, refused_operator());
                        add(a, 0,
                            {{"kind", "end"},
                             {"complete", false},
                             {"lines", 0},
                             {"last_phase", "capture"}});
                      },
                  .rank = 0,
                  .mentions = {"the capture of arm lockstep_graph failed",
                               "code 900 at aten::_local_scalar_dense"},
                  .also = {"*"}},
                 {.name = "an error code although the status is ok",
                  .change = [=](Attempt& a) { set(a, capture, "code", 901); },
                  .rank = 0,
                  .mentions = {"code 901"},
                  .also = {"D15.census"}},
                 {.name = "a fork whose only work is NCCL's, not joined (M11)",
                  .change =
                      [=](Attempt& a) {
                        set(a, capture, "unjoined",
                            {"ncclDevKernel_AllReduce_Sum_f32_RING_LL",
                             "ncclDevKernel_AllReduce_Sum_f32_RING_LL"});
                      },
                  .rank = 0,
                  .mentions = {"left work that its stream does not wait for",
                               "2 unjoined, the first is \"ncclDevKernel_AllReduce"}},
                 {.name = "no capture",
                  .change = [=](Attempt& a) { erase(a, capture); },
                  .rank = 0,
                  .mentions = {"`capture` line of arm lockstep_graph"},
                  .also = {"D15.census", "D18.coverage", "D37.warmed_up"}},
                 {.name = "died before",
                  .change = [=](Attempt& a) { die_before(a, capture); },
                  .want = record::Result::unexercised,
                  .rank = std::nullopt,
                  .mentions = {"so there is no `capture` line"},
                  .also = {"*"}},
             });
}

TEST(CaptureStatus, OfAFailedCaptureLeavesTheVotesToAgree) {
  const record::CheckResult votes =
      judge_one("D26.votes", {{"impl", "full_iteration"}, {"tp", 2}}, [](Attempt& a) {
        for (int rank : {0, 1}) {
          set(a, {.rank = rank, .kind = "capture", .arm = "lockstep_graph"}, "status", "error");
          die_before(a, {.rank = rank, .kind = "vote", .arm = {}});
        }
        for (int rank : {0, 1}) {
          for (const char* phase : {"init", "build", "eager"})
            add(a, rank, {{"kind", "vote"}, {"phase", phase}, {"codes", {0, 0}}});
          add(a, rank, {{"kind", "vote"}, {"phase", "capture"}, {"codes", {900, 900}}});
          add(a, rank, refused_operator());
        }
      });
  EXPECT_EQ(votes.result, record::Result::unexercised) << record::to_text(votes.message);
}

TEST(CaptureStatus, ARankThatLeavesNoEvidenceForItCannotPassItButCanFailIt) {
  const auto unobserved = [](Attempt& a) {
    add(a, 0,
        {{"kind", "unobserved"},
         {"check", "D19.capture_status"},
         {"why", "stand_in: no CUDA graph was captured"}});
  };
  const nlohmann::json axes = {{"impl", "full_iteration"}};
  const record::CheckResult clean = judge_one("D19.capture_status", axes, unobserved);
  EXPECT_EQ(clean.result, record::Result::unexercised);
  EXPECT_EQ(clean.message.got, "rank 0 cannot show it: stand_in: no CUDA graph was captured");
  EXPECT_EQ(judge_one("D15.census", axes, unobserved).result, record::Result::pass)
      << "another check";
  const record::CheckResult defect = judge_one("D19.capture_status", axes, [&](Attempt& a) {
    unobserved(a);
    add(a, 0, refused_operator());
  });
  EXPECT_EQ(defect.result, record::Result::fail);
}

}  // namespace
}  // namespace graphproof::checks
