// Which versions have a rule, a part or an option.
#include "matrix/dialect/versions.h"

#include <gtest/gtest.h>

#include "matrix/dialect/dialect.h"
#include "matrix/input/input_error.h"

namespace graphproof::dialect {
namespace {

Versions versions(const char* text) {
  const matrix::Document document = matrix::parse_document(text, "versions");
  return read_versions(matrix::Located(document));
}

TEST(Versions, DaysAreBoundsAndAReleaseCountsAsTheDayOfItsBranch) {
  const Versions removed = versions(R"({"before": "2026.7.2"})");
  EXPECT_TRUE(removed.include("2026.7.1"));
  EXPECT_FALSE(removed.include("2026.7.2"));
  EXPECT_TRUE(removed.include("0.19.2"));
  const Versions added = versions(R"({"from": "2026.7.2"})");
  EXPECT_FALSE(added.include("2026.7.1"));
  EXPECT_TRUE(added.include("2026.8.22"));
  EXPECT_FALSE(added.include("0.19.2"));
}

TEST(Versions, AReleaseMayLackWhatItsDayHadOrHaveWhatNoDayHas) {
  EXPECT_FALSE(versions(R"({"except": ["0.19.2"]})").include("0.19.2"));
  EXPECT_TRUE(versions(R"({"except": ["0.19.2"]})").include("2026.8.22"));
  EXPECT_TRUE(versions(R"({"only": ["0.19.2"]})").include("0.19.2"));
  EXPECT_FALSE(versions(R"({"only": ["0.19.2"]})").include("2026.7.1"));
}

TEST(Versions, AnUnknownReleaseIsRefused) {
  EXPECT_THROW(versions(R"({"only": ["0.18.0"]})"), matrix::InputError);
  EXPECT_THROW(versions(R"({"from": "soon"})"), matrix::InputError);
}

TEST(Versions, TheReleaseHasItsOwnPartsOfARule) {
  const Dialect release = load_dialect("megatron-lm", "0.19.2");
  const Dialect newest = load_dialect("megatron-lm", "");
  EXPECT_EQ(release.rule("R114").parts.size(), newest.rule("R114").parts.size() + 1);
  EXPECT_FALSE(release.rule("R104").active("0.19.2"));
  EXPECT_TRUE(newest.rule("R104").active("2026.8.22"));
  EXPECT_EQ(release.options.flag("--moe-use-grouped-tensor", false), nullptr);
  EXPECT_NE(newest.options.flag("--moe-use-grouped-tensor", false), nullptr);
}

}  // namespace
}  // namespace graphproof::dialect
