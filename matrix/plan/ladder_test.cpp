#include "matrix/plan/ladder.h"

#include <gtest/gtest.h>

#include "matrix/testing/loaded_catalogue.h"

namespace graphproof::matrix {
namespace {

const Machine kMachine{.device = "sim", .slots = 4, .stack = {}};

Ladder ladder(const std::string& name) {
  return ladder_to(case_from_name(catalogue().axes, name, "test"), catalogue(), kMachine);
}
std::string name_of(const Case& one) { return case_name(catalogue().axes, one); }
std::vector<std::string> names(const Ladder& ladder) {
  std::vector<std::string> list = {name_of(ladder.eager), name_of(ladder.narrow.test_case)};
  for (const Rung& rung : ladder.wider) list.push_back(name_of(rung.test_case));
  return list;
}

TEST(Ladder, ModulesAndOverlapComeOneAtATime) {
  EXPECT_EQ(names(ladder("impl=local,modules=[attn,mlp],dp=2,microbatches=2,"
                         "overlap_grad_reduce=true")),
            (std::vector<std::string>{
                "dp=2,microbatches=2,overlap_grad_reduce=true",
                "impl=local,modules=[attn],dp=2,microbatches=2",
                "impl=local,modules=[attn,mlp],dp=2,microbatches=2",
                "impl=local,modules=[attn,mlp],dp=2,microbatches=2,overlap_grad_reduce=true"}));
}

TEST(Ladder, AGraphOfTheWholeIterationBeginsWithOneModuleOfAnEngineThatTakesModules) {
  const Ladder made = ladder("impl=full_iteration,tp=2,optimizer_graph=true");
  EXPECT_EQ(name_of(made.narrow.test_case), "impl=local,modules=[attn],tp=2");
  EXPECT_EQ(made.wider.size(), 1u);
  EXPECT_EQ(name_of(made.eager), "tp=2");
}

TEST(Ladder, TheTargetIsAlwaysTheLastAndOthersAreAllowed) {
  for (const char* name :
       {"impl=local", "impl=manual", "impl=transformer_engine,modules=[attn]",
        "impl=local,modules=[attn,moe_router],model=moe,experts=4,topk=2,dispatch=drop_and_pad,"
        "dispatcher=alltoall",
        "subject=torch,impl=callables,capture_mode=global"}) {
    const Ladder made = ladder(name);
    const Case& last = made.wider.empty() ? made.narrow.test_case : made.wider.back().test_case;
    EXPECT_EQ(last, case_from_name(catalogue().axes, name, "test")) << name;
    for (const Rung& rung : made.wider) {
      const bool allowed = !catalogue().rules.refusal(rung.test_case, kMachine);
      EXPECT_TRUE(allowed || rung.test_case == last) << name;
    }
    EXPECT_FALSE(made.eager.values.contains("impl")) << name;
  }
  EXPECT_TRUE(ladder("impl=local,modules=[attn]").wider.empty());
}

}  // namespace
}  // namespace graphproof::matrix
