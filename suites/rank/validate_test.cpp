#include "suites/rank/validate.h"

#include <gtest/gtest.h>

#include <stdexcept>

namespace graphproof::suites {
namespace {

class Validate : public testing::Test {
 protected:
  record::Batch batch_of(const std::vector<std::string>& names) {
    record::Batch batch;
    batch.batch = "b001";
    batch.device = "sim";
    for (const std::string& name : names) {
      const auto test_case = matrix::case_from_name(catalogue_.axes, name, "test");
      batch.cases.push_back({.id = matrix::case_id(test_case),
                             .name = name,
                             .attempt = 1,
                             .axes = matrix::effective_values(catalogue_.axes, test_case),
                             .evidence_folder = "unused"});
    }
    return batch;
  }
  std::string contradiction(const record::Batch& batch, int world_size = 1) {
    try {
      validate(batch, catalogue_, machine_, world_size);
    } catch (const std::runtime_error& error) {
      return error.what();
    }
    return "";
  }
  const matrix::Catalogue catalogue_ = matrix::load_catalogue();
  const matrix::Machine machine_{
      .device = "sim", .slots = 1, .stack = {{"torch_version", "2.11.0"}}};
};

TEST_F(Validate, RefusesEachForbiddenCombinationByItsRuleWithAWholeMessage) {
  const std::pair<const char*, const char*> rows[] = {
      {"impl=full_iteration,nan_check_loss=true", "R035"},
      {"impl=full_iteration,rng_tracker=plain", "B08"},
      {"hidden=66", "G001"},
  };
  for (const auto& [name, rule] : rows) {
    SCOPED_TRACE(name);
    const auto cases = validate(batch_of({name}), catalogue_, machine_, 1);
    ASSERT_EQ(cases.size(), 1u);
    ASSERT_TRUE(cases[0].refusal.has_value());
    const matrix::Finding& refusal = *cases[0].refusal;
    EXPECT_EQ(refusal.rule, rule);
    for (const std::string& part :
         {refusal.what, refusal.got, refusal.want, refusal.why, refusal.next})
      EXPECT_FALSE(part.empty());
  }
}

TEST_F(Validate, AcceptsTheCasesThatTheEnginesAreMadeFor) {
  for (const auto& validated :
       validate(batch_of({"microbatches=2", "impl=manual,dropout=true", "impl=full_iteration"}),
                catalogue_, machine_, 1))
    EXPECT_FALSE(validated.refusal.has_value()) << validated.listed.name;
}

TEST_F(Validate, KeepsRefusedAndAcceptedCasesOfOneBatchApart) {
  const auto cases = validate(batch_of({"impl=manual", "impl=full_iteration,nan_check_loss=true"}),
                              catalogue_, machine_, 1);
  EXPECT_FALSE(cases[0].refusal.has_value());
  EXPECT_TRUE(cases[1].refusal.has_value());
}

TEST_F(Validate, RejectsAnIdThatIsNotTheAxes) {
  auto batch = batch_of({"impl=manual"});
  batch.cases[0].id = "0000000000000000";
  const std::string message = contradiction(batch);
  EXPECT_NE(message.find("id of case impl=manual; got 0000000000000000"), std::string::npos)
      << message;
  EXPECT_NE(message.find("next: "), std::string::npos);
}

TEST_F(Validate, RejectsABatchForAnotherDeviceOrWorld) {
  auto batch = batch_of({"impl=manual"});
  EXPECT_NE(contradiction(batch, 2).find("got 1; want 2, the number of ranks that were started"),
            std::string::npos);
  batch.device = "cuda";
  EXPECT_NE(contradiction(batch).find("device of batch b001; got cuda; want sim"),
            std::string::npos);
}

TEST_F(Validate, RejectsAnUnknownAxis) {
  auto batch = batch_of({"impl=manual"});
  batch.cases[0].axes["impll"] = "manual";
  EXPECT_NE(contradiction(batch).find("impl"), std::string::npos);
}

}  // namespace
}  // namespace graphproof::suites
