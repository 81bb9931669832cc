#include "matrix/catalogue/bad_stacks.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "matrix/catalogue/catalogue.h"
#include "matrix/testing/thrown.h"

namespace graphproof::matrix {
namespace {

BadStackTable with(const char* changes) {
  nlohmann::json row = {{"id", "B90"},
                        {"what", "w"},
                        {"component", "libnccl"},
                        {"before", "2.30.4"},
                        {"when", {"spans_nodes"}},
                        {"check", "D67.bad_stack"},
                        {"why", "y"},
                        {"next", "n"},
                        {"source", "https://example.org"}};
  row.merge_patch(nlohmann::json::parse(changes));  // null removes
  return BadStackTable::parse(
      parse_document(nlohmann::json({{"schema", "graphproof-bad-stacks/1"},
                                     {"bad_stacks", nlohmann::json::array({row})}})
                         .dump(),
                     "b.json"));
}

std::string refused(const char* changes) {
  return thrown([&] { with(changes); }).what;
}

TEST(BadStacks, ARowCoversItsVersions) {
  const BadStackTable table = with(R"({"from": "2.27"})");
  const BadStack& row = table.rows().front();
  EXPECT_FALSE(row.covers(*parse_version("2.26.9")));
  EXPECT_TRUE(row.covers(*parse_version("2.27.0")));
  EXPECT_TRUE(row.covers(*parse_version("2.30.3")));
  EXPECT_FALSE(row.covers(*parse_version("2.30.4")));
  EXPECT_EQ(row.conditions(), "libnccl from 2.27 before 2.30.4 with spans_nodes");
}

TEST(BadStacks, AStackMeetsARowUnlessAVersionOrAUseIsKnownToDiffer) {
  const BadStack row = with("{}").rows().front();
  const auto met = [&](const char* version, std::optional<bool> use) -> std::string {
    const auto found = row.met(
        [&](const std::string& component) {
          EXPECT_EQ(component, "libnccl");
          return parse_version(version);
        },
        [&](StackUse asked) {
          EXPECT_EQ(asked, StackUse::spans_nodes);
          return use;
        });
    if (!found) return "no";
    std::string text = found->got;
    for (const std::string& one : found->unknown) text += ", unknown " + one;
    return text;
  };
  EXPECT_EQ(met("2.28.9", true), "libnccl 2.28.9");
  EXPECT_EQ(met("2.28.9", {}), "libnccl 2.28.9, unknown spans_nodes");
  EXPECT_EQ(met("", true), "libnccl, unknown libnccl");
  EXPECT_EQ(met("2.28.9", false), "no");
  EXPECT_EQ(met("", false), "no");
  EXPECT_EQ(met("2.30.4", true), "no");
}

TEST(BadStacks, BrokenRowsAreRefused) {
  EXPECT_EQ(refused(R"({"before": "newest"})"), "a version that can't be read");
  EXPECT_EQ(refused(R"({"before": null})"), "a bad stack without versions");
  EXPECT_EQ(refused(R"({"when": ["sunday"]})"), "unknown value `sunday`");
  EXPECT_EQ(refused(R"({"source": "a friend"})"), "a source that can't be opened");
}

TEST(BadStacks, EveryShippedRowIsReportedByACheckThatIsJudgedOverWatchedRuns) {
  const Catalogue catalogue = load_catalogue();
  const BadStackTable table = load_bad_stacks();
  EXPECT_FALSE(table.rows().empty());
  for (const BadStack& row : table.rows()) {
    const CheckEntry* check = catalogue.checks.find(row.reported_by);
    ASSERT_NE(check, nullptr) << row.id << ": " << row.reported_by;
    EXPECT_TRUE(check->watched) << row.id;
  }
}

}  // namespace
}  // namespace graphproof::matrix
