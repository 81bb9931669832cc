#include "matrix/catalogue/checks.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "matrix/catalogue/catalogue.h"
#include "matrix/testing/thrown.h"

namespace graphproof::matrix {
namespace {

class ChecksTest : public testing::Test {
 protected:
  bool required(const char* check, const char* name, const char* device = "sim") const {
    const auto names =
        catalogue_.checks.required(case_from_name(catalogue_.axes, name, ""), device);
    return std::find(names.begin(), names.end(), check) != names.end();
  }
  Problem refused(const std::string& changes) const {
    nlohmann::json row = {{"check", "D01.a"},           {"states", "s"},
                          {"verdict", "fail.numerics"}, {"required_when", "true"},
                          {"devices", {"sim"}},         {"code", "numerics/a.cpp"}};
    row.update(nlohmann::json::parse(changes));
    const Document document = parse_document(
        nlohmann::json({{"schema", "graphproof-check-table/1"}, {"checks", {row, row}}}).dump(),
        "c.json");
    return thrown([&] { CheckTable::parse(document, catalogue_.axes); });
  }
  inline static const Catalogue catalogue_ = load_catalogue();  // read once, never changed
};

TEST_F(ChecksTest, CaseRequiresWhatItsAxesAskFor) {
  EXPECT_TRUE(required("D01.lockstep", "impl=manual"));
  EXPECT_FALSE(required("D01.lockstep", "default"));
  EXPECT_TRUE(required("D02.eager_repeats", "default"));
  EXPECT_TRUE(required("D08.masks", "impl=manual,dropout=true"));
  EXPECT_FALSE(required("D08.masks", "impl=manual"));
  EXPECT_TRUE(required("D53.layout_reference", "dp=2"));
  EXPECT_FALSE(required("D53.layout_reference", "default"));
}

TEST_F(ChecksTest, CheckThatADeviceCannotShowIsNotRequiredThere) {
  EXPECT_TRUE(required("D28.one_libnccl", "default", "cuda"));
  EXPECT_FALSE(required("D28.one_libnccl", "default", "sim"));
}

TEST_F(ChecksTest, DetectorsGroupChecks) {
  ASSERT_EQ(catalogue_.checks.of_detector("D08").size(), 2u);
  EXPECT_EQ(catalogue_.checks.of_detector("D08")[0]->check, "D08.masks");
  EXPECT_TRUE(catalogue_.checks.of_detector("D99").empty());
}

TEST_F(ChecksTest, BrokenRowsAreRefused) {
  EXPECT_EQ(refused(R"({"check": "lockstep"})").what, "a check without its detector");
  EXPECT_EQ(refused(R"({"verdict": "pass"})").what, "a failing check needs a failing verdict");
  EXPECT_EQ(refused(R"({"required_when": "impl != nono"})").what,
            "`nono` is no value of axis `impl`");
  EXPECT_EQ(refused(R"({"devices": ["cpu"]})").what, "unknown value `cpu`");
  EXPECT_EQ(refused(R"({"since": 0})").got, "0");
  EXPECT_EQ(refused(R"({})").what, "the check `D01.a` appears twice");
  EXPECT_EQ(refused(R"({"watched": {"code": "a.cpp", "needs": []}})").what,
            "the key `sees` is missing");
}

TEST_F(ChecksTest, ARowForWatchedRunsAloneIsOfNoCase) {
  const Document document = parse_document(
      R"({"schema": "graphproof-check-table/1", "checks": [
        {"check": "D60.a", "states": "s", "verdict": "fail.numerics",
         "watched": {"code": "capture/a.cpp", "needs": ["driver_calls"], "sees": "all"}}]})",
      "c.json");
  const CheckTable table = CheckTable::parse(document, catalogue_.axes);
  ASSERT_TRUE(table.find("D60.a")->watched);
  EXPECT_FALSE(table.find("D60.a")->of_cases());
  EXPECT_EQ(table.find("D60.a")->watched->needs, std::vector<std::string>{"driver_calls"});
  const Case test_case = case_from_name(catalogue_.axes, "impl=manual", "");
  EXPECT_TRUE(table.judged(test_case).empty());
  EXPECT_TRUE(table.required(test_case, "cuda").empty());
}

}  // namespace
}  // namespace graphproof::matrix
