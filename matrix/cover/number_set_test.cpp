#include "matrix/cover/number_set.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <set>

namespace graphproof::cover {
namespace {

TEST(NumberSetTest, HoldsWhatASetHoldsWhateverTheOrder) {
  EXPECT_TRUE(rc::check([](const std::vector<std::uint16_t>& numbers) {
    NumberSet kept;
    std::set<std::uint64_t> wanted;
    for (const std::uint64_t number : numbers) {
      // Numbers that are far apart share their low bits, so that they collide.
      const std::uint64_t spread = (number % 97) << 20 | number % 3;
      if (wanted.insert(spread).second) {
        kept.insert(spread);
      } else {
        wanted.erase(spread);
        kept.erase(spread);
      }
      std::set<std::uint64_t> found;
      for (int at = 0; at < kept.size(); ++at) found.insert(kept[at]);
      RC_ASSERT(found == wanted);
    }
  }));
}

}  // namespace
}  // namespace graphproof::cover
