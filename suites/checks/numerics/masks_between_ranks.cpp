// D81: dropout masks agree between the ranks that must draw the same, and differ between those that
// must not. Eager and graph arms draw alike, and the layout reference has no dropout, so no other
// check compares the masks of two ranks.
#include <array>
#include <map>
#include <string>

#include "suites/checks/attempt/concat.h"
#include "suites/checks/attempt/judgement.h"

namespace graphproof::checks::d81 {
namespace {

using record::MasksLine;

constexpr std::array<std::string_view, 2> kRegions = {"inside", "outside"};

/// The ranks that draw the same masks have the same stage and the same tensor parallel rank.
/// Outside tensor parallel regions the latter does not matter, because all have the same
/// activations, unless sequence parallelism splits them. Data and context parallel ranks draw the
/// same, as Megatron-LM's do.
std::array<std::int64_t, 2> drawer(const Axes& axes, int world_size, int rank,
                                   std::string_view region) {
  const bool own = region == "inside" || axes.flag("sequence_parallel");
  return {rank / (world_size / axes.integer("pp")), own ? rank % axes.integer("tp") : 0};
}

const MasksLine* of(Judgement& judgement, const RankFiles& files, std::string_view region,
                    std::int64_t step) {
  for (const MasksLine* line : judgement.find<MasksLine>(files, "eager_a", step))
    if (line->region == region) return line;
  return nullptr;
}

}  // namespace

/// In every step of eager_a, the masks of a region are the same on ranks of one stage with the same
/// activations, and others on every other rank.
record::CheckResult masks_between_ranks(Judgement& judgement, const Attempt& attempt) {
  const int world_size = attempt.context.world_size;
  const std::int64_t steps = judgement.expected().steps;
  for (std::int64_t step = 0; step < steps; ++step)
    for (const std::string_view region : kRegions) {
      // By drawer the first rank and its masks; by masks the drawer.
      std::map<std::array<std::int64_t, 2>, std::pair<int, const MasksLine*>> drawn;
      std::map<std::string, int> drawn_by;
      for (const RankFiles& files : attempt.ranks) {
        const MasksLine* line = of(judgement, files, region, step);
        if (!line) {
          judgement.absent<MasksLine>(files, concat("of masks ", region, " parallel regions"),
                                      step);
          continue;
        }
        const auto [first, is_first] = drawn.try_emplace(
            drawer(attempt.axes, world_size, files.rank, region), std::pair(files.rank, line));
        const auto& [first_rank, masks] = first->second;
        if (!is_first) {
          if (line->digest == masks->digest && line->masks == masks->masks) {
            judgement.confirm(files.rank);
            continue;
          }
          judgement.defect(
              {.rank = files.rank,
               .step = step,
               .what = concat("the dropout masks of rank ", files.rank, " ", region,
                              " tensor parallel regions are not those of rank ", first_rank),
               .got = concat("digest ", line->digest, " in step ", step),
               .want = concat(masks->digest, ", because both mask the same activations"),
               .why = "ranks that mask copies of one activation differently compute parts of "
                      "different models"});
          continue;
        }
        const auto [other, is_new] = drawn_by.try_emplace(line->digest, files.rank);
        if (is_new) {
          judgement.confirm(files.rank);
          continue;
        }
        judgement.defect({.rank = files.rank,
                          .step = step,
                          .what = concat("rank ", files.rank, " drew the dropout masks of rank ",
                                         other->second, " ", region, " tensor parallel regions"),
                          .got = concat("digest ", line->digest, " on both in step ", step),
                          .want = "other masks, because they mask other activations",
                          .why =
                              "activations that are masked alike are not independent, so dropout "
                              "regularises less, and no loss shows it"});
      }
    }
  return judgement.result(
      concat("the masks of ", attempt.ranks.size(), " ranks in ", steps,
             " steps agree where activations do, and differ elsewhere"),
      "one sequence of random numbers for each different part of the activations");
}

}  // namespace graphproof::checks::d81
