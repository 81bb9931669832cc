#include <gtest/gtest.h>

#include "suites/checks/testing/check_rows.h"

namespace graphproof::checks {
namespace {

using nlohmann::json;

TEST(Communicators, Rows) {
  const Where counts{.rank = 1, .kind = "communicators"};
  const auto group = [](int before, int made, int ended, int left) {
    return json{{"group", "tp=0,1"}, {"transport", "mpi"}, {"before", before},
                {"made", made},      {"ended", ended},     {"left", left}};
  };
  const auto with = [=](const json& groups) {
    return [=](Attempt& a) { set(a, counts, "groups", groups); };
  };
  json again = group(0, 1, 0, 1);
  again["group"] = "tp again=0,1";
  judge_rows("D29.communicators", kTwoRanks,
             {
                 {.name = "groups made again while the arms run (M391)",
                  .change = with(json::array({group(1, 0, 0, 1), again})),
                  .rank = 1,
                  .mentions = {"group tp again=0,1 of rank 1 has a wrong number of communicators",
                               "0 over mpi", "1: one for each group"}},
                 {.name = "communicators outlive the last case (M392)",
                  .change = [=](Attempt& a) { set(a, counts, "kept", false); },
                  .rank = 1,
                  .mentions = {"communicators after the teardown", "1 over mpi",
                               "0: the teardown destroys it"}},
                 {.name = "destroyed although the next case needs it",
                  .change = with(json::array({group(1, 0, 0, 0)})),
                  .rank = 1,
                  .mentions = {"1: the next case of the batch uses it"}},
                 {.name = "one more made while the arms run",
                  .change = with(json::array({group(1, 1, 0, 2)})),
                  .rank = 1,
                  .mentions = {"communicators made while the arms ran"}},
                 {.name = "one ended while the arms run",
                  .change = with(json::array({group(1, 0, 1, 0)})),
                  .rank = 1,
                  .mentions = {"communicators ended while the arms ran"}},
                 {.name = "made anew for every case of the batch",
                  .change = with(json::array({group(2, 0, 0, 2)})),
                  .rank = 1,
                  .mentions = {"communicators when the arms began", "2 over mpi"}},
                 {.name = "no count of a group",
                  .change = with(json::array()),
                  .rank = 1,
                  .mentions = {"the communicators of group tp of rank 1 are not counted"}},
                 {.name = "no line",
                  .change = [=](Attempt& a) { erase(a, counts); },
                  .rank = 1,
                  .mentions = {"`communicators` line"}},
                 {.name = "the rank died",
                  .change = [=](Attempt& a) { die_before(a, counts); },
                  .want = record::Result::unexercised,
                  .rank = std::nullopt,
                  .mentions = {"rank 1"},
                  .also = {"*"}},
             });
}

}  // namespace
}  // namespace graphproof::checks
