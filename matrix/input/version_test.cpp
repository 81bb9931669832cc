#include "matrix/input/version.h"

#include <gtest/gtest.h>

namespace graphproof::matrix {
namespace {

TEST(VersionTest, VersionsAreOrderedAsPeopleReadThem) {
  const char* ascending[] = {"2.6.0.dev20250101", "2.6",    "2.9.1",  "2.11.0a0",
                             "2.11.0rc1",         "2.11.0", "2.11.1", "10"};
  for (std::size_t i = 0; i + 1 < std::size(ascending); ++i)
    EXPECT_LT(*parse_version(ascending[i]), *parse_version(ascending[i + 1]))
        << ascending[i] << " before " << ascending[i + 1];
}

TEST(VersionTest, TrailingZerosAndLocalPartDoNotCount) {
  EXPECT_EQ(*parse_version("2.11"), *parse_version("2.11.0"));
  EXPECT_EQ(*parse_version("2.11.0+cu130"), *parse_version("2.11.0"));
  EXPECT_EQ(parse_version("2.11.0+cu130")->text, "2.11.0+cu130");
}

TEST(VersionTest, OtherTextsAreNoVersions) {
  for (const char* text : {"", "none", "v2", "2..1", "2.", "2.1-3", "99999999999999999999", "2. 1"})
    EXPECT_FALSE(parse_version(text)) << text;
}

}  // namespace
}  // namespace graphproof::matrix
