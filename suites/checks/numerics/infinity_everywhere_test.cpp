#include <gtest/gtest.h>

#include "suites/checks/testing/check_rows.h"

namespace graphproof::checks {
namespace {

using nlohmann::json;

const json kHalf = {{"impl", "none"}, {"pp", 2}, {"microbatches", 2}, {"precision", "fp16"}};

/// Changes a field of a rank's line about an infinite gradient of rank `victim`.
std::function<void(Attempt&)> told(std::size_t rank, const std::string& part, std::int64_t victim,
                                   const std::string& field, bool value) {
  return [=](Attempt& a) {
    for (Line& line : a.ranks[rank].evidence->lines)
      if (line.kind == "infinity" && text(line, "part") == part &&
          integer(line, "victim") == victim) {
        line.fields[field] = value;
        return type_again(a);
      }
    throw std::logic_error("no `infinity` line of " + part);
  };
}

TEST(InfinityEverywhere, Rows) {
  const Where any{.rank = 1, .kind = "infinity"};
  judge_rows("D83.infinity_everywhere", kHalf,
             {
                 {.name = "a stage does not hear of the other",
                  .change = told(0, "dense", 1, "skipped", false),
                  .rank = 0,
                  .mentions = {"rank 0 did not skip a step in which a gradient of the dense model "
                               "is infinite on rank 1",
                               "took the step", "every rank skips it"}},
                 {.name = "a skipped step changes parameters",
                  .change = told(1, "dense", 1, "moved", true),
                  .rank = 1,
                  .mentions = {"skipped the step, and parameters changed"}},
                 {.name = "every step is skipped",
                  .change = told(1, "none", 0, "skipped", true),
                  .rank = 1,
                  .mentions = {"skipped a step whose gradients are all finite"}},
                 {.name = "no gradient was infinite",
                  .change =
                      [](Attempt& a) {
                        for (std::size_t rank : {0u, 1u})
                          for (Line& line : a.ranks[rank].evidence->lines)
                            if (line.kind == "infinity") {
                              line.fields["infinite"] = false;
                              line.fields["skipped"] = false;
                            }
                        type_again(a);
                      },
                  .rank = 0,
                  .mentions = {"`infinity` line with an infinite gradient of part dense"}},
                 {.name = "absent",
                  .change = [=](Attempt& a) { erase(a, any); },
                  .rank = 1,
                  .mentions = {"`infinity` line of part none and rank 0"}},
                 rank_died(any),
             });
}

TEST(InfinityEverywhere, EveryExpertAndEveryOwnerIsOneOfTheParts) {
  const auto fails = [](const json& more, std::size_t rank, const char* part, std::int64_t victim) {
    json axes = {{"impl", "none"}, {"microbatches", 2}, {"precision", "fp16"}};
    axes.update(more);
    return judge_one("D83.infinity_everywhere", axes, told(rank, part, victim, "skipped", false))
               .result == record::Result::fail;
  };
  const json moe = {{"dp", 2},
                    {"ep", 2},
                    {"model", "moe"},
                    {"experts", 4},
                    {"topk", 2},
                    {"dispatch", "drop_and_pad"},
                    {"dispatcher", "alltoall"}};
  EXPECT_TRUE(fails(moe, 0, "experts", 1));
  EXPECT_TRUE(fails({{"dp", 2}, {"distributed_optimizer", true}}, 0, "dense", 1));
  EXPECT_TRUE(fails({{"tp", 2}}, 0, "dense", 1));
}

}  // namespace
}  // namespace graphproof::checks
