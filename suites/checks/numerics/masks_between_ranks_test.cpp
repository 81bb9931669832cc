#include <gtest/gtest.h>

#include "suites/checks/testing/check_rows.h"

namespace graphproof::checks {
namespace {

using nlohmann::json;

/// Sets the digest of a rank's masks of a region in step 3; of those of another rank if `like`.
std::function<void(Attempt&)> masks(std::size_t rank, const std::string& region,
                                    std::optional<std::size_t> like = std::nullopt) {
  return [=](Attempt& a) {
    const auto find = [&](std::size_t of) -> Line& {
      for (Line& line : a.ranks[of].evidence->lines)
        if (line.kind == "masks" && integer(line, "step") == 3 && text(line, "region") == region)
          return line;
      throw std::logic_error("no `masks` line");
    };
    find(rank).fields["digest"] = like ? find(*like).fields["digest"] : json("ffffffffffffffff");
    type_again(a);
  };
}

const json kDropout = {
    {"impl", "none"}, {"tp", 2}, {"dp", 2}, {"microbatches", 2}, {"dropout", true}};

TEST(MasksBetweenRanks, Rows) {
  const Where at_three{.rank = 1, .kind = "masks", .arm = "eager_a", .step = 3};
  judge_rows("D81.masks_between_ranks", kDropout,
             {
                 {.name = "tensor parallel ranks draw alike",
                  .change =
                      [](Attempt& a) {
                        masks(1, "inside", 0)(a);
                        masks(3, "inside", 0)(a);
                      },
                  .rank = 1,
                  .mentions = {"rank 1 drew the dropout masks of rank 0 inside tensor parallel",
                               "on both in step 3", "no loss shows it"}},
                 {.name = "tensor parallel ranks mask a copy differently",
                  .change = masks(1, "outside"),
                  .rank = 1,
                  .mentions = {"the dropout masks of rank 1 outside tensor parallel regions are "
                               "not those of rank 0",
                               "both mask the same activations"}},
                 {.name = "data parallel ranks draw differently",
                  .change = masks(2, "inside"),
                  .rank = 2,
                  .mentions = {"inside tensor parallel regions are not those of rank 0"}},
                 {.name = "absent",
                  .change = [=](Attempt& a) { erase(a, at_three); },
                  .rank = 1,
                  .mentions = {"`masks` line of masks inside parallel regions"}},
                 rank_died(at_three),
             });
}

TEST(MasksBetweenRanks, SequenceParallelRanksDrawDifferently) {
  json axes = kDropout;
  axes["sequence_parallel"] = true;
  const auto sound = judge_one("D81.masks_between_ranks", axes, [](Attempt&) {});
  EXPECT_EQ(sound.result, record::Result::pass);
  EXPECT_EQ(judge_one("D81.masks_between_ranks", axes, masks(1, "outside", 0)).result,
            record::Result::fail);
}

TEST(MasksBetweenRanks, StagesDrawDifferently) {
  const json axes = {{"impl", "none"}, {"pp", 2}, {"microbatches", 2}, {"dropout", true}};
  EXPECT_EQ(judge_one("D81.masks_between_ranks", axes, masks(1, "outside", 0)).result,
            record::Result::fail);
}

}  // namespace
}  // namespace graphproof::checks
