// The examples of docs/reference/matrix.md are matrix files, and each of their profiles can be
// planned.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include "matrix/plan/plan.h"

namespace graphproof::matrix {
namespace {

std::string document() {
  const char* source = std::getenv("GRAPHPROOF_SOURCE");
  std::ifstream in(std::string(source != nullptr ? source : ".") + "/docs/reference/matrix.md");
  return {std::istreambuf_iterator<char>(in), {}};
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

}  // namespace
}  // namespace graphproof::matrix
