#include "matrix/case/machine.h"

#include <gtest/gtest.h>

#include "matrix/testing/thrown.h"

namespace graphproof::matrix {
namespace {

TEST(MachineTest, StackVariablesComeFromTheFingerprint) {
  const auto stack = stack_variables(nlohmann::json::parse(
      R"({"torch_version": "2.11.0", "cuda_version": "none", "sm": 90, "gpus": [],
          "te_version": null})"));
  EXPECT_EQ(stack, (std::map<std::string, std::string>{
                       {"torch_version", "2.11.0"}, {"cuda_version", "none"}, {"sm", "90"}}));
}

TEST(MachineTest, APackageThatASubjectCanDoWithoutIsInItsState) {
  const auto of = [](const char* version) {
    return stack_variables({{"subjects", {{"megatron_core", {{"version", version}}}}}});
  };
  using Variables = std::map<std::string, std::string>;
  EXPECT_EQ(of("megatron-core 0.19.2, hybrid-ep 1.2.1+9e7ec5c, torch 2.11.0"),
            (Variables{{"hybrid_ep", "1.2.1+9e7ec5c"}}));
  EXPECT_EQ(of("torch 2.11.0, megatron-core 0.19.2"), (Variables{{"hybrid_ep", "none"}}));
  EXPECT_EQ(stack_variables({{"subjects", {{"torch", {{"version", "torch 2.11.0, apex 0.1"}}}}}}),
            (Variables{{"apex", "0.1"}}));
  EXPECT_EQ(stack_variables({{"subjects", nlohmann::json::object()}}), Variables{});
}

TEST(MachineTest, MissingIsUnknownAndNoneIsAbsent) {
  const Machine machine{
      .device = "cuda",
      .slots = 8,
      .stack = {{"torch_version", "2.11.0+cu130"}, {"cuda_version", "none"}, {"sm", "90"}}};
  EXPECT_EQ(variable_value(machine, "te_version"), Value(Unknown{}));
  EXPECT_EQ(variable_value(machine, "cuda_version"), Value(Absent{}));
  EXPECT_EQ(variable_value(machine, "torch_version"), Value(*parse_version("2.11.0")));
  EXPECT_EQ(variable_value(machine, "sm"), Value(std::int64_t{90}));
  EXPECT_EQ(variable_value(machine, "slots"), Value(std::int64_t{8}));
  EXPECT_EQ(variable_value(machine, "device"), Value(std::string("cuda")));
  EXPECT_FALSE(variable_type("impl"));
}

TEST(MachineTest, UnreadableStackValueIsNamed) {
  const Machine machine{.stack = {{"torch_version", "two"}, {"sm", "sm_90"}}};
  EXPECT_EQ(thrown([&] { variable_value(machine, "torch_version"); }).what,
            "the stack variable `torch_version` can't be read");
  EXPECT_EQ(thrown([&] { variable_value(machine, "sm"); }).want, "an integer");
}

}  // namespace
}  // namespace graphproof::matrix
