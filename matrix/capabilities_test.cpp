#include "matrix/capabilities.h"

#include <gtest/gtest.h>

#include "matrix/catalogue.h"

namespace graphproof::matrix {
namespace {

class CapabilitiesTest : public testing::Test {
 protected:
  std::vector<std::string> missing(const char* name, const char* device = "sim") const {
    return catalogue_.capabilities.missing(case_from_name(catalogue_.axes, name, ""), {.device = device});
  }
  inline static const Catalogue catalogue_ = load_catalogue();  // read once, never changed
};

TEST_F(CapabilitiesTest, MissingPartIsNamedWithItsValue) {
  EXPECT_EQ(missing("impl=local"), std::vector<std::string>{"impl=local: this engine is not built yet"});
  EXPECT_EQ(missing("precision=bf16,optimizer=adam"), (std::vector<std::string>{"precision=bf16: other precisions are not built yet", "optimizer=adam: this optimizer is not built yet"}));
  EXPECT_EQ(missing("pp=2"), std::vector<std::string>{"pp=2, vpp=1, microbatch_group=0: pipeline schedules are not built yet"});
}

TEST_F(CapabilitiesTest, TodaysCasesMissNothing) {
  for (const char* name : {"default", "impl=full_iteration,tp=2,dp=2,microbatches=2,dropout=true,linear_bias=true,capture_mode=global,autograd_threads=on"})
    EXPECT_TRUE(missing(name).empty()) << name;
}

TEST_F(CapabilitiesTest, DeviceDecidesWhereOnlyOneHasThePart) {
  EXPECT_EQ(missing("nccl_algo=Ring").size(), 1u);
  EXPECT_TRUE(missing("nccl_algo=Ring", "cuda").empty());
  EXPECT_EQ(missing("allocator=expandable").size(), 1u);
  EXPECT_TRUE(missing("allocator=expandable", "cuda").empty());
}

}  // namespace
}  // namespace graphproof::matrix
