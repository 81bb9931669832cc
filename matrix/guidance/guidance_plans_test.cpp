// What matrix/tables/guidance.json says about cases is true of the plans that users get.
#include "matrix/guidance/guidance_plans.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "matrix/testing/loaded_catalogue.h"

namespace graphproof::matrix {
namespace {

GuidancePlans& plans() {
  static GuidancePlans made(catalogue());
  return made;
}

std::vector<GuidanceRow> rows() {
  const GuidanceTable table = load_guidance(catalogue().axes);
  std::vector<GuidanceRow> all;
  for (const GuidanceDocument& document : table.documents())
    all.insert(all.end(), document.rows.begin(), document.rows.end());
  return all;
}

GuidanceCases cases_with(const std::string& where, const std::string& device) {
  const Scope scope{.axes = &catalogue().axes, .defines = {}};
  return {.where = Expression::condition(where, scope, Origin::option("where", where)),
          .profiles = {},
          .device = device};
}

TEST(GuidancePlansTest, SkippedAndRefusedCasesDoNotRun) {
  EXPECT_TRUE(plans().running(cases_with("subject == torch", "sim"), "subjects").empty());
  EXPECT_FALSE(plans().running(cases_with("subject == torch", "cuda"), "subjects").empty());
  const GuidanceCases checked = cases_with("impl == full_iteration and nan_check_loss", "sim");
  EXPECT_TRUE(plans().running(checked, "constraints").empty());
  EXPECT_EQ(plans().refused(checked.where, "R035").size(), 1u);
  EXPECT_TRUE(plans().refused(checked.where, "R033").empty());
}

TEST(GuidancePlansTest, EveryProfileThatIsNamedHasACaseThatRuns) {
  for (const GuidanceRow& row : rows())
    for (const GuidanceCases& cases : row.cases)
      for (const std::string& profile : cases.profiles)
        EXPECT_FALSE(plans().running(cases, profile).empty())
            << "row " << row.row << ": profile " << profile << " has no case on " << cases.device
            << " with " << cases.where.text();
}

/// The checks that the cases of a condition require.
std::set<std::string> required_of(const GuidanceCases& cases) {
  std::set<std::string> required;
  for (const std::string& profile : cases.profiles)
    for (const record::PlanLine* line : plans().running(cases, profile))
      required.insert(line->required_checks.begin(), line->required_checks.end());
  return required;
}

TEST(GuidancePlansTest, TheChecksThatAreNamedJudgeTheCases) {
  for (const GuidanceRow& row : rows()) {
    std::set<std::string> required;
    for (const GuidanceCases& cases : row.cases) {
      const std::set<std::string> here = required_of(cases);
      EXPECT_TRUE(std::ranges::any_of(
          row.checks, [&](const std::string& check) { return here.contains(check); }))
          << "row " << row.row << ": no case with " << cases.where.text() << " requires a check";
      required.insert(here.begin(), here.end());
    }
    for (const std::string& check : row.checks)
      EXPECT_TRUE(row.cases.empty() || required.contains(check))
          << "row " << row.row << ": no case requires " << check;
  }
}

TEST(GuidancePlansTest, EveryRuleThatIsNamedRefusesOneOfTheCases) {
  for (const GuidanceRow& row : rows())
    for (const std::string& rule : row.rules)
      EXPECT_FALSE(plans().refused(row.refused, rule).empty())
          << "row " << row.row << ": " << rule << " refuses no case of the profiles with "
          << row.refused.text();
}

}  // namespace
}  // namespace graphproof::matrix
