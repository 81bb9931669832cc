#include "suites/step_config.h"

#include <gtest/gtest.h>

#include "matrix/catalogue.h"

namespace graphproof::suites {
namespace {

class StepConfigTest : public testing::Test {
 protected:
  StepConfig config_of(const char* name, fixtures::Rank place) {
    return step_config(catalogue_.axes, matrix::case_from_name(catalogue_.axes, name, "test"), place, 7);
  }
  std::string refusal(const char* name, fixtures::Rank place) {
    try {
      config_of(name, place);
    } catch (const std::runtime_error& error) {
      return error.what();
    }
    return "";
  }
  const matrix::Catalogue catalogue_ = matrix::load_catalogue();
};

TEST_F(StepConfigTest, TakesEverySizeFromItsAxis) {
  const StepConfig config = config_of("impl=manual,tp=2,dp=2,microbatches=3,layers=4,hidden=128,dropout=true,fault=M23",
                                      {.world_size = 4, .rank = 3, .local_rank = 3, .from = "test"});
  EXPECT_EQ(config.engine.impl, "manual");
  EXPECT_EQ(config.engine.fault.id, "M23");
  EXPECT_EQ(config.model.layers, 4);
  EXPECT_EQ(config.model.hidden, 128);
  EXPECT_EQ(config.model.ffn, 4 * 128);
  EXPECT_EQ(config.model.kv_groups, config.model.heads);
  EXPECT_DOUBLE_EQ(config.model.dropout, 0.1);
  EXPECT_EQ(config.seed, 7u);
  EXPECT_TRUE(config.graphs());
}

TEST_F(StepConfigTest, PutsTensorParallelRanksNextToEachOther) {
  for (int rank = 0; rank < 4; ++rank) {
    const auto layout = config_of("tp=2,dp=2", {.world_size = 4, .rank = rank, .local_rank = rank, .from = "test"}).layout;
    EXPECT_EQ(layout.dp_rank * 2 + layout.tp_rank, rank);
    EXPECT_EQ(layout.tp_rank, rank % 2);
  }
}

TEST_F(StepConfigTest, OfTheSingleRankReferenceCoversTheGlobalBatchWithoutFaultOrDropout) {
  const StepConfig single = single_rank(
      config_of("impl=full_iteration,tp=2,dp=2,microbatches=3,dropout=true,fault=M26", {.world_size = 4, .rank = 1, .local_rank = 1, .from = "test"}));
  EXPECT_EQ(single.model.microbatches, 6);
  EXPECT_EQ(single.layout.tp * single.layout.dp, 1);
  EXPECT_EQ(single.model.dropout, 0);
  EXPECT_EQ(single.engine.fault.id, "none");
  EXPECT_FALSE(single.graphs());
}

TEST_F(StepConfigTest, RefusesAWorldThatIsNotTheLayouts) {
  const std::string message = refusal("tp=2", {});
  EXPECT_NE(message.find("got 1 ranks; want tp * dp = 2"), std::string::npos) << message;
  EXPECT_NE(message.find("next: "), std::string::npos);
}

TEST_F(StepConfigTest, RefusesAnAxisThatItWouldIgnore) {
  const std::string message = refusal("precision=bf16", {});
  EXPECT_NE(message.find("axis precision; got bf16; want its default"), std::string::npos) << message;
}

TEST_F(StepConfigTest, RefusesAnEngineThatItDoesNotHave) {
  const std::string message = refusal("impl=callables", {});
  EXPECT_NE(message.find("impl; got callables; want none, manual or full_iteration"), std::string::npos) << message;
}

}  // namespace
}  // namespace graphproof::suites
