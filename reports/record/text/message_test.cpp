#include "reports/record/text/message.h"

#include <gtest/gtest.h>

namespace graphproof::record {
namespace {

TEST(Message, LeavesOutEmptyParts) {
  EXPECT_EQ(to_text({.what = "a", .got = "b", .want = "", .why = "", .next = "c"}),
            "a; got b; next: c");
}

}  // namespace
}  // namespace graphproof::record
