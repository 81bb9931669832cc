#include "matrix/case/axes.h"

#include <gtest/gtest.h>

#include "matrix/catalogue/catalogue.h"
#include "matrix/testing/thrown.h"

namespace graphproof::matrix {
namespace {

class AxesTest : public testing::Test {
 protected:
  Value read(const char* axis, const char* json) const {
    return parse_value(catalogue_.axes.at(axis, {}), axis, Json::parse(json), {});
  }
  Problem refused(const char* axis, const char* json) const {
    return thrown([&] { read(axis, json); });
  }
  inline static const Catalogue catalogue_ = load_catalogue();  // read once, never changed
};

TEST_F(AxesTest, ShippedTableHasTheDefaultsOfAPlainEagerModel) {
  const std::pair<const char*, const char*> rows[] = {{"impl", "none"},
                                                      {"modules", "[]"},
                                                      {"tp", "1"},
                                                      {"microbatches", "1"},
                                                      {"model", "gpt"},
                                                      {"precision", "fp32"},
                                                      {"dropout", "false"},
                                                      {"optimizer", "sgd"},
                                                      {"rng_tracker", "graph_safe"},
                                                      {"capture_mode", "thread_local"},
                                                      {"autograd_threads", "off"},
                                                      {"allocator", "default"},
                                                      {"placement", "symmetric"},
                                                      {"teardown", "graph_first"},
                                                      {"pool", "single"},
                                                      {"fault", "none"},
                                                      {"arch", "any"},
                                                      {"recompute", "none"}};
  for (const auto& [axis, text] : rows)
    EXPECT_EQ(value_text(catalogue_.axes.at(axis, {}).default_value), text) << axis;
  EXPECT_EQ(value_text(catalogue_.axes.at("env.NCCL_DEBUG", {}).default_value), "unset");
  EXPECT_EQ(catalogue_.axes.version(), 1);
}

TEST_F(AxesTest, EveryBooleanIsOffByDefault) {
  for (const Axis& axis : catalogue_.axes.axes()) {
    if (axis.type == AxisType::boolean) {
      EXPECT_EQ(axis.default_value, Value(false)) << axis.name;
    }
  }
}

TEST_F(AxesTest, FaultTakesTheIdsOfTheFaultTable) {
  std::vector<std::string> want{"none"};
  for (const FaultEntry& fault : catalogue_.faults.faults()) want.push_back(fault.fault);
  EXPECT_EQ(catalogue_.axes.at("fault", {}).values, want);
}

TEST_F(AxesTest, SetsAndListsOfACallComeInTableOrder) {
  EXPECT_EQ(value_text(read("modules", "[\"mlp\", \"attn\"]")), "[attn,mlp]");
  EXPECT_EQ(value_text(read("recompute", "\"selective(mlp, core_attn)\"")),
            "selective(core_attn,mlp)");
  EXPECT_EQ(value_text(read("recompute", "\"full(block,02)\"")), "full(block,2)");
}

TEST_F(AxesTest, EveryWrongValueIsRefusedWithWhatWouldBeRight) {
  const struct {
    const char *axis, *json, *what, *want, *next;
  } rows[] = {
      {"teardown", "\"graph_frist\"", "`graph_frist` is no value of axis `teardown`",
       "one of graph_first, comm_first", "did you mean `graph_first`?"},
      {"teardown", "1", "a value of the wrong type for axis `teardown`",
       "a text, one of graph_first, comm_first", "write a text, one of graph_first, comm_first"},
      {"tp", "\"4\"", "a value of the wrong type for axis `tp`", "an integer", "write an integer"},
      {"tp", "2.0", "a value of the wrong type for axis `tp`", "an integer", "write an integer"},
      {"tp", "0", "`0` is no value of axis `tp`", "1 to 64 ranks", "choose a number in the range"},
      {"tp", "18446744073709551615", "`18446744073709551615` is no value of axis `tp`",
       "1 to 64 ranks", "choose a number in the range"},
      {"dropout", "0", "a value of the wrong type for axis `dropout`", "true or false",
       "write true or false"},
      {"modules", "[\"attn\", \"attn\"]", "`attn twice` is no value of axis `modules`",
       "each value at most once", "remove one of them"},
      {"modules", "\"attn\"", "a value of the wrong type for axis `modules`",
       "an array of attn, mlp, moe, moe_router, moe_preprocess, mamba",
       "write an array of attn, mlp, moe, moe_router, moe_preprocess, mamba"},
      {"recompute", "\"full\"", "`full` is no value of axis `recompute`", "full(uniform|block,n)",
       "write it as full(uniform|block,n)"},
      {"recompute", "\"full(block,0)\"", "`full(block,0)` is no value of axis `recompute`",
       "full(uniform|block,n) with n from 1 to 4096", "write a number for n"},
      {"recompute", "\"full(blok,1)\"", "`full(blok,1)` is no value of axis `recompute`",
       "full(uniform|block,n)", "did you mean `block`?"},
      {"recompute", "\"selective()\"", "`selective()` is no value of axis `recompute`",
       "selective(core_attn|mlp|moe|moe_act|layernorm|shared_experts|mla_up_proj)",
       "name at least one of core_attn, mlp, moe, moe_act, layernorm, shared_experts, mla_up_proj"},
      {"recompute", "\"selectiv(mlp)\"", "`selectiv(mlp)` is no value of axis `recompute`",
       "one of none, selective(core_attn|mlp|moe|moe_act|layernorm|shared_experts|mla_up_proj), "
       "full(uniform|block,n)",
       "did you mean `selective`?"},
      {"env.X", "4", "a value of the wrong type for axis `env.X`", "a text", "write a text"},
  };
  for (const auto& row : rows) {
    const Problem problem = refused(row.axis, row.json);
    EXPECT_EQ(problem.what, row.what);
    EXPECT_EQ(problem.want, row.want) << row.json;
    EXPECT_EQ(problem.next, row.next) << row.json;
  }
}

TEST_F(AxesTest, UnknownAxisSuggestsTheNearest) {
  const Problem problem = thrown(
      [&] { catalogue_.axes.at("microbatchs", {.source = "a.json", .line = 3, .column = 5}); });
  EXPECT_EQ(problem.what, "unknown axis `microbatchs`");
  EXPECT_EQ(problem.next, "did you mean `microbatches`?");
  EXPECT_EQ(at(problem), "3:5");
}

TEST_F(AxesTest, EnvironmentVariableOfAnAxisIsRefused) {
  for (const auto& [variable, axis] :
       {std::pair<const char*, const char*>{"env.NCCL_ALGO", "nccl_algo"},
        {"env.NCCL_PROTO", "nccl_proto"},
        {"env.NCCL_GRAPH_REGISTER", "nccl_graph_register"},
        {"env.PYTORCH_CUDA_ALLOC_CONF", "allocator"},
        {"env.PYTORCH_ALLOC_CONF", "allocator"}}) {
    EXPECT_EQ(catalogue_.axes.find(variable), nullptr);
    EXPECT_EQ(thrown([&] { catalogue_.axes.at(variable, {}); }).next,
              std::string("use `") + axis + "`");
  }
  EXPECT_NE(catalogue_.axes.find("env.NCCL_MAX_NCHANNELS"), nullptr);
  for (const char* name : {"env.", "env.A-B", "env.1A", "env.A B", "env"})
    EXPECT_EQ(catalogue_.axes.find(name), nullptr) << name;
}

TEST_F(AxesTest, OpenAxesSortAfterTheTable) {
  EXPECT_TRUE(catalogue_.axes.before("impl", "tp"));
  EXPECT_TRUE(catalogue_.axes.before("fault", "env.A"));
  EXPECT_TRUE(catalogue_.axes.before("env.A", "env.B"));
}

}  // namespace
}  // namespace graphproof::matrix
