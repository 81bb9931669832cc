// What matrix/tables/known_defects.json and guidance.json name outside of matrix/catalogue exists:
// tests, programs of watched runs, and rules of users' configurations.
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <set>
#include <string>
#include <vector>

#include "matrix/catalogue/catalogue.h"
#include "matrix/catalogue/guidance.h"
#include "matrix/catalogue/known_defects.h"
#include "structure/tree.h"

namespace graphproof::structure {
namespace {

std::string without_spaces(std::string text) {
  std::erase_if(text, [](unsigned char letter) { return std::isspace(letter) != 0; });
  return text;
}

/// Every SUITE.NAME of a text of C++.
void add_tests_of(const std::string& source, std::set<std::string>& tests) {
  const std::string text = without_spaces(source);
  for (const std::string macro : {"TEST(", "TEST_F(", "TEST_P("})
    for (std::size_t at = text.find(macro); at != std::string::npos;
         at = text.find(macro, at + 1)) {
      const std::size_t suite = at + macro.size(), comma = text.find(',', suite),
                        end = text.find(')', suite);
      if (comma == std::string::npos || comma > end) continue;
      tests.insert(text.substr(suite, comma - suite) + "." +
                   text.substr(comma + 1, end - comma - 1));
    }
}

class TablesTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    for (const std::string& file : sources())
      if (file.ends_with("_test.cpp")) add_tests_of(text_of(root() / file), tests_);
    programs_ = without_spaces(text_of(root() / "suites/watch/programs.json"));
  }
  static void expect_shown(const std::string& row, const std::vector<std::string>& tests,
                           const std::vector<std::string>& programs) {
    for (const std::string& test : tests)
      EXPECT_TRUE(tests_.contains(test)) << row << " names the test " << test;
    for (const std::string& program : programs)
      EXPECT_NE(programs_.find("\"fault\":\"" + program + "\""), std::string::npos)
          << row << " names the program " << program;
  }

 private:
  inline static std::set<std::string> tests_;
  inline static std::string programs_;
};

TEST_F(TablesTest, TestsAreFoundInSources) {
  std::set<std::string> tests;
  add_tests_of(
      "TEST(A, First) {}\nTEST_F(B,\n       Second) {}\nTEST_P(C, Third) {}\n"
      "TEST_TABLE(D) {}",
      tests);
  EXPECT_EQ(tests, (std::set<std::string>{"A.First", "B.Second", "C.Third"}));
}

TEST_F(TablesTest, TheTestsAndProgramsThatShowKnownDefectsExist) {
  const matrix::KnownDefectTable shipped = matrix::load_known_defects();
  for (const matrix::KnownDefect& defect : shipped.rows())
    expect_shown(defect.defect, defect.tests, defect.programs);
}

TEST_F(TablesTest, TheTestsProgramsAndConfigurationRulesThatAnswerGuidesExist) {
  std::set<std::string> rules;  // of all dialects, as "megatron-lm R036"
  for (const std::string& file :
       files([](const std::filesystem::path& path) { return path.extension() == ".json"; })) {
    if (!file.starts_with("matrix/rules/")) continue;
    const std::string dialect = std::filesystem::path(file).parent_path().filename();
    const std::string text = without_spaces(text_of(root() / file)), key = "{\"id\":\"";
    for (std::size_t at = text.find(key); at != std::string::npos; at = text.find(key, at)) {
      at += key.size();
      rules.insert(dialect + " " + text.substr(at, text.find('"', at) - at));
    }
  }
  const matrix::GuidanceTable shipped = matrix::load_guidance(matrix::load_axes());
  for (const matrix::GuidanceDocument& document : shipped.documents())
    for (const matrix::GuidanceRow& row : document.rows) {
      const std::string name = "row " + std::to_string(row.row) + " of guidance.json";
      expect_shown(name, row.tests, row.programs);
      for (const std::string& rule : row.configuration_rules)
        EXPECT_TRUE(rules.contains(rule)) << name << " names the rule " << rule;
    }
}

}  // namespace
}  // namespace graphproof::structure
