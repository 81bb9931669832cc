#include "matrix/catalogue/known_defects.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "matrix/catalogue/catalogue.h"
#include "matrix/testing/thrown.h"

namespace graphproof::matrix {
namespace {

using Rows = std::vector<nlohmann::json>;

KnownDefectTable with(const Rows& rows) {
  return KnownDefectTable::parse(parse_document(
      nlohmann::json({{"schema", "graphproof-known-defects/1"}, {"known_defects", rows}}).dump(),
      "k.json"));
}

std::string refused(const Rows& rows) {
  return thrown([&] { with(rows); }).what;
}

nlohmann::json row(const char* defect, const char* changes = R"({"faults": ["M91"]})") {
  nlohmann::json made = {{"defect", defect}, {"title", "t"}};
  made.merge_patch(nlohmann::json::parse(changes));
  return made;
}

TEST(KnownDefects, ARowHasWhatShowsItOrAReason) {
  EXPECT_EQ(with({row("M02", R"({"why_not": "y"})"), row("M90")}).rows().size(), 2u);
  EXPECT_EQ(with({row("M02", R"({"tests": ["A.B"]})")}).rows()[0].tests,
            std::vector<std::string>{"A.B"});
  for (const char* changes :
       {"{}", R"({"faults": []})", R"({"programs": ["M200"], "why_not": "y"})"})
    EXPECT_EQ(refused({row("M02", changes)}),
              "a defect that nothing shows and that has no reason, or one that has both")
        << changes;
}

TEST(KnownDefects, RowsAreInOrderAndEachNumberIsThereOnce) {
  EXPECT_EQ(refused({row("M03"), row("M02")}), "a row out of order");
  EXPECT_EQ(refused({row("M02"), row("M02")}), "a row out of order");
  for (const char* defect : {"M00", "M2", "M91", "D02"})
    EXPECT_EQ(refused({row(defect)}), "`" + std::string(defect) + "` is no known defect");
}

TEST(KnownDefects, EachOfThemIsPlantedUnderItsOwnNumberOrHasARow) {
  const FaultTable planted = load_catalogue().faults;
  const KnownDefectTable shipped = load_known_defects();
  for (int number = 1; number <= kKnownDefects; ++number) {
    const std::string defect = (number < 10 ? "M0" : "M") + std::to_string(number);
    const bool has_row = std::ranges::count(shipped.rows(), defect, &KnownDefect::defect) > 0;
    EXPECT_NE(planted.find(defect) != nullptr, has_row) << defect;
  }
}

TEST(KnownDefects, TheFaultsThatShowThemArePlanted) {
  const FaultTable planted = load_catalogue().faults;
  const KnownDefectTable shipped = load_known_defects();
  for (const KnownDefect& defect : shipped.rows())
    for (const std::string& fault : defect.faults)
      EXPECT_NE(planted.find(fault), nullptr) << defect.defect << " names " << fault;
}

}  // namespace
}  // namespace graphproof::matrix
