// What matrix/tables/known_defects.json names exists: programs of watched runs, and tests. That its
// faults exist is a test of matrix/catalogue.
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <set>
#include <string>

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

TEST(KnownDefects, TestsAreFoundInSources) {
  std::set<std::string> tests;
  add_tests_of(
      "TEST(A, First) {}\nTEST_F(B,\n       Second) {}\nTEST_P(C, Third) {}\n"
      "TEST_TABLE(D) {}",
      tests);
  EXPECT_EQ(tests, (std::set<std::string>{"A.First", "B.Second", "C.Third"}));
}

TEST(KnownDefects, TheTestsAndProgramsThatShowThemExist) {
  std::set<std::string> tests;
  for (const std::string& file : sources())
    if (file.ends_with("_test.cpp")) add_tests_of(text_of(root() / file), tests);
  const std::string programs = without_spaces(text_of(root() / "suites/watch/programs.json"));
  const matrix::KnownDefectTable shipped = matrix::load_known_defects();
  for (const matrix::KnownDefect& defect : shipped.rows()) {
    for (const std::string& test : defect.tests)
      EXPECT_TRUE(tests.contains(test)) << defect.defect << " names the test " << test;
    for (const std::string& program : defect.programs)
      EXPECT_NE(programs.find("\"fault\":\"" + program + "\""), std::string::npos)
          << defect.defect << " names the program " << program;
  }
}

}  // namespace
}  // namespace graphproof::structure
