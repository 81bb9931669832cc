#include <gtest/gtest.h>

#include "suites/checks/testing/check_rows.h"

namespace graphproof::checks {
namespace {

TEST(Padding, Rows) {
  const Where padded{.rank = 0, .kind = "padding", .step = 2};
  judge_rows(
      "D38.padding", kChangingLengths,
      {
          {.name = "padding counts (M144)",
           .change =
               [=](Attempt& a) {
                 set(a, padded, "max_abs", 0.5);
                 set(a, padded, "max_rel", 0.1);
               },
           .rank = 0,
           .mentions = {"losses and gradients of a padded step differ from those without padding",
                        "0.5 (0.1 of the largest element) in `losses`"}},
          {.name = "as far as a defect, within a bound that is too wide",
           .change =
               [=](Attempt& a) {
                 set(a, padded, "bound", 3.0);
                 set(a, padded, "max_abs", 0.5);
                 set(a, padded, "max_rel", 0.1);
               },
           .rank = 0,
           .mentions = {"as far as a defect may move them", "0.1 of the largest element"}},
          {.name = "nothing was padded",
           .change =
               [](Attempt& a) {
                 for (Line& line : a.ranks[0].evidence->lines)
                   if (line.kind == "padding")
                     for (nlohmann::json& length : line.fields["lengths"])
                       length = line.fields["length"];
               },
           .want = record::Result::unexercised,
           .rank = std::nullopt,
           .mentions = {"every microbatch filled its bucket"}},
          {.name = "a length was left out",
           .change = [=](Attempt& a) { erase(a, padded); },
           .rank = 0,
           .mentions = {"`padding` line of length 8"}},
      });
}

}  // namespace
}  // namespace graphproof::checks
