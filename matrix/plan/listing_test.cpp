#include "matrix/plan/listing.h"

#include <gtest/gtest.h>

namespace graphproof::matrix {
namespace {

class ListingTest : public testing::Test {
 protected:
  nlohmann::json rule(const nlohmann::json& explained, const std::string& id) const {
    for (const nlohmann::json& row : explained.at("rules"))
      if (row.at("rule") == id) return row;
    ADD_FAILURE() << "no rule " << id;
    return {};
  }
  inline static const Catalogue catalogue_ = load_catalogue();  // read once, never changed
};

TEST_F(ListingTest, ListsHoldEveryRowOfTheirTables) {
  EXPECT_EQ(list_axes(catalogue_).size(), catalogue_.axes.axes().size() + 1);
  EXPECT_EQ(list_rules(catalogue_).size(), catalogue_.rules.rules().size());
  EXPECT_EQ(list_checks(catalogue_).size(), catalogue_.checks.checks().size());
  EXPECT_EQ(list_faults(catalogue_).size(), catalogue_.faults.faults().size());
  const nlohmann::json profiles = list_profiles(catalogue_);
  ASSERT_EQ(profiles.size(), shipped_profiles().size());
  EXPECT_EQ(profiles[0].at("profile"), "smoke");
  EXPECT_EQ(profiles[0].at("cases"), 48);
  EXPECT_EQ(profiles[1].at("profile"), "pairwise");
  EXPECT_TRUE(profiles[1].at("cases").is_null()) << "a covering plan is not made for a list";
  EXPECT_FALSE(profiles[0].at("meaning").get<std::string>().empty());
}

TEST_F(ListingTest, ExplainNamesTheResultOfEachRule) {
  const nlohmann::json explained =
      explain(catalogue_,
              case_from_name(catalogue_.axes,
                             "impl=full_iteration,nan_check_loss=true,overlap_ep_comm=true", ""),
              {});
  EXPECT_EQ(rule(explained, "R035").at("result"), "breaks");
  EXPECT_EQ(rule(explained, "R035").at("next"),
            "set nan_check_loss and nan_check_grad to false, or use another impl");
  EXPECT_EQ(rule(explained, "R033").at("result"), "holds");
  EXPECT_EQ(rule(explained, "R071").at("result"), "not_applicable");
  EXPECT_EQ(rule(explained, "R092").at("result"), "unknown");
  EXPECT_EQ(rule(explained, "R094").at("result"), "breaks");
  EXPECT_EQ(explained.at("refusal").at("rule"), "R035");
  EXPECT_FALSE(explained.at("missing").empty());
  EXPECT_TRUE(explained.at("fault").is_null());
}

TEST_F(ListingTest, ExplainOfAFaultNamesItsDetector) {
  const nlohmann::json explained = explain(
      catalogue_, case_from_name(catalogue_.axes, "impl=manual,microbatches=2,fault=M23", ""), {});
  EXPECT_EQ(explained.at("fault").at("detector"), "D04");
  EXPECT_TRUE(explained.at("refusal").is_null());
  EXPECT_EQ(explained.at("required_checks"), nlohmann::json{"D04.learning_rate"});
}

}  // namespace
}  // namespace graphproof::matrix
