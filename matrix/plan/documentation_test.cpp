// The examples of docs/reference/matrix.md are matrix files, and each of their profiles can be
// planned. The cases of docs/reference/guides.md have the outcomes that the page states.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "matrix/plan/plan.h"
#include "matrix/plan/plan_line.h"

namespace graphproof::matrix {
namespace {

std::string document(const std::string& name = "matrix.md") {
  const char* source = std::getenv("GRAPHPROOF_SOURCE");
  std::ifstream in(std::string(source != nullptr ? source : ".") + "/docs/reference/" + name);
  return {std::istreambuf_iterator<char>(in), {}};
}

/// What happens to a case on a machine, as guides.md says it.
std::string outcome(const Catalogue& catalogue, const std::string& name, const Machine& machine) {
  const record::PlanLine line =
      plan_case(catalogue, case_from_name(catalogue.axes, name, ""), machine, "");
  if (line.skip) {
    const std::string& why = line.skip->why;
    const std::string first = why.substr(0, why.find("; "));
    return std::string(line.skip->verdict.text()) + ": " + first.substr(first.find(": ") + 2);
  }
  return line.expect.kind == "rejected" ? "refused by " + line.expect.rule : "runs";
}

std::vector<std::string> between(const std::string& text, const std::string& open,
                                 const std::string& close) {
  std::vector<std::string> found;
  for (std::size_t at = text.find(open); at != std::string::npos; at = text.find(open, at)) {
    at += open.size();
    const std::size_t end = text.find(close, at);
    if (end == std::string::npos) break;
    found.push_back(text.substr(at, end - at));
    at = end + close.size();
  }
  return found;
}

TEST(MatrixDocumentation, EveryExampleIsAMatrixFileWhoseProfilesHaveCases) {
  const Catalogue catalogue = load_catalogue();
  const Machine machine{.device = "sim", .slots = 4, .stack = {}};
  const std::vector<std::string> examples = between(document(), "```jsonc\n", "```");
  ASSERT_FALSE(examples.empty());
  std::int64_t negative = 0, tolerant = 0;
  for (const std::string& example : examples) {
    const MatrixFile file = parse_matrix_file(example, "docs/reference/matrix.md", catalogue, {});
    EXPECT_FALSE(file.profiles.empty());
    for (const auto& [name, profile] : file.profiles) {
      const Plan plan = make_plan(file, catalogue, name, machine, std::nullopt);
      EXPECT_FALSE(plan.lines.empty()) << name;
      negative += plan.negative;
      for (const record::PlanLine& line : plan.lines)
        tolerant += line.axes.at("tolerance") != "none";
    }
  }
  EXPECT_GT(negative, 0);
  EXPECT_EQ(tolerant, 3) << "the cases without deterministic algorithms";
}

// The section on expressions uses the axes of the product.
TEST(MatrixDocumentation, EveryExpressionShownIsOne) {
  const Catalogue catalogue = load_catalogue();
  const Scope scope{.axes = &catalogue.axes, .defines = {}};
  const std::string text = document();
  const std::size_t begin = text.find("## Expressions");
  ASSERT_NE(begin, std::string::npos);
  const std::string line = text.substr(begin, text.find("\n-", begin) - begin);
  const std::vector<std::string> shown = between(line, "`", "`");
  EXPECT_GE(shown.size(), 4u);
  for (const std::string& expression : shown)
    EXPECT_NO_THROW(Expression::condition(expression, scope, Origin::option("", expression)))
        << expression;
}

TEST(MatrixDocumentation, EveryKeyOfAMatrixFileAndOfAProfileIsThere) {
  const std::string text = document();
  for (const char* key :
       {"axes",   "define",   "require", "exclude",   "include",  "known_issues", "oracle",
        "perf",   "memory",   "limits",  "extends",   "profiles", "subset_of",    "when",
        "weight", "negative", "cover",   "groups",    "cost",     "steps",        "sample",
        "seed",   "where",    "cases",   "isolation", "budget",   "meaning"})
    EXPECT_NE(text.find(key), std::string::npos) << key;
}

TEST(GuidesDocumentation, EveryCaseHasTheOutcomeOfThePageOnBothDevices) {
  const Catalogue catalogue = load_catalogue();
  const Machine sim{
      .device = "sim", .slots = 4, .stack = {{"torch_version", "2.11.0"}, {"sm", "0"}}},
      gpus{.device = "cuda", .slots = 4, .stack = {{"torch_version", "2.11.0"}, {"sm", "90"}}};
  std::istringstream page(document("guides.md"));
  std::size_t cases = 0;
  for (std::string row; std::getline(page, row);) {
    const std::vector<std::string> named = between(row, " | `", "` | ");
    if (named.empty()) continue;
    ++cases;
    EXPECT_EQ(row.substr(row.rfind("` | ") + 4),
              outcome(catalogue, named[0], sim) + " | " + outcome(catalogue, named[0], gpus) + " |")
        << named[0];
  }
  EXPECT_GE(cases, 40u);
}

}  // namespace
}  // namespace graphproof::matrix
