// The profile pairwise has every setting that graphproof's own engines support, with every value,
// or this file says why not. From that follows that each pair of values that can run is in one of
// its cases, because it covers pairs: nobody has to think of a combination.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>

#include "matrix/plan/plan.h"
#include "matrix/testing/loaded_catalogue.h"

namespace graphproof::matrix {
namespace {

/// Axes that the profile does not vary, and why.
const std::map<std::string, std::string> kNotVaried = {
    {"subject", "profile subjects; every package has settings of its own"},
    {"share_io_buffers", "not built, because there is no second behaviour"},
    {"arch", "a property of the machine"},
    {"comm", "PyTorch's process groups need GPUs: profile nightly"},
    {"nccl_graph_register", "a setting of a library that only GPUs have: profile hazards"},
    {"nccl_algo", "a setting of a library that only GPUs have"},
    {"nccl_proto", "a setting of a library that only GPUs have"},
    {"allocator", "expandable segments need GPUs: profile hazards"},
    {"collective", "of model collective: profile hazards"},
    {"collective_bytes", "of model collective: profile hazards"},
    {"layer_spec", "of subject megatron_core"},
    {"optimizer_kernels", "of subject torch"},
    {"checkpoint", "of subject torch"},
    {"graph_trees", "of subject torch_compile"},
    {"graph_partition", "of subject torch_compile"},
    {"compiled_code", "of subject torch_compile"},
    {"layer_calls", "of subject torch"},
    {"earlier_graph", "of subject torch"},
    {"op_fuser", "of subject megatron_core"},
    {"reshard_after_forward", "of subject fsdp2"},
    {"perf_limit", "a demand of the user, which changes no path through the code"},
    {"memory_limit", "a demand of the user, which changes no path through the code"},
    {"soak_steps", "a long job: profile soak"},
    {"tolerance", "a demand of the user, which changes no path through the code"},
    {"deterministic_algorithms", "needs a tolerance: profile nightly"},
    {"sanitizer", "tools that see only GPUs: profile sanitizer"},
    {"attention_kernel", "the other kernels need GPUs: profile nightly"},
    {"fault", "profile faults"},
    {"hidden", "a size that changes no path through the code"},
    {"heads", "a size that changes no path through the code"},
    {"ffn", "a size that changes no path through the code"},
    {"vocab", "a size that changes no path through the code"},
    {"seq_length", "a size that changes no path through the code"},
};

/// Values that it does not have of axes that it varies: they are not built, the default of a dense
/// model, or a workload of its own.
const std::map<std::string, std::set<std::string>> kValuesLeftOut = {
    {"model", {"collective"}},
    {"dispatch", {"none"}},
    {"dispatcher", {"none"}},
};

const MatrixFile& pairwise() {
  static const MatrixFile file = shipped_matrix_file("pairwise", catalogue());
  return file;
}

/// The values of an axis in the profile; of a set or a call each whole value.
std::set<std::string> varied(const std::string& axis) {
  std::set<std::string> values;
  for (const VaryingAxis& one : pairwise().axes)
    if (one.name == axis)
      for (const Value& value : one.values) values.insert(value_text(value));
  return values;
}

TEST(EverySetting, IsVariedByTheProfilePairwiseOrItSaysWhyNot) {
  for (const Axis& axis : catalogue().axes.axes()) {
    const std::size_t values = varied(axis.name).size();
    const bool excused = kNotVaried.contains(axis.name);
    EXPECT_NE(values > 0, excused)
        << axis.name << " has " << values << " values in matrix/profiles/pairwise.json; next: "
        << (excused ? "take it out of kNotVaried" : "add it there, or to kNotVaried with a reason");
  }
  for (const auto& [axis, why] : kNotVaried)
    EXPECT_NE(catalogue().axes.find(axis), nullptr) << axis << " is no axis any more";
}

TEST(EverySetting, HasEveryValueThatIsBuilt) {
  for (const Axis& axis : catalogue().axes.axes()) {
    if (kNotVaried.contains(axis.name)) continue;
    std::vector<std::string> declared;
    if (axis.type == AxisType::choice)
      for (const std::string& value : axis.values) declared.push_back(value);
    if (axis.type == AxisType::boolean) declared = {"false", "true"};
    const std::set<std::string> values = varied(axis.name);
    for (const std::string& value : declared) {
      const auto excused = kValuesLeftOut.find(axis.name);
      EXPECT_NE(values.contains(value),
                excused != kValuesLeftOut.end() && excused->second.contains(value))
          << axis.name << " = " << value
          << "; next: add it to matrix/profiles/pairwise.json, or to kValuesLeftOut";
    }
  }
}

// A profile that covers pairs has every pair that can run (covering_test.cpp). These ran in no
// profile for long.
TEST(EverySetting, MeetsEveryOther) {
  const Machine sim{
      .device = "sim", .slots = 4, .stack = {{"torch_version", "2.11.0"}, {"sm", "0"}}};
  for (const char* pair :
       {"clip_grad and etp > 1", "linear_bias and sequence_parallel", "weight_decay and pp > 1",
        "overlap_param_gather and schedule == \"train-eval-train\"",
        "overlap_param_gather and schedule == \"train-rollout-train\"",
        "dropout and sampling == random"}) {
    const Plan plan =
        make_plan(pairwise(), catalogue(), "pairwise", sim,
                  Expression::condition(pair, pairwise().scope, Origin::option("pair", pair)));
    const auto runs = std::ranges::count_if(
        plan.lines, [](const record::PlanLine& line) { return !line.skip.has_value(); });
    EXPECT_GT(runs, 0) << pair;
  }
}

// Cases of chance look for false alarms, so each of them has to run, and none may be left out
// because it is rare: a value that any case has comes first in every few hundredth draw.
TEST(EverySetting, OccursAmongRandomCasesThatAllRun) {
  const Machine sim{
      .device = "sim", .slots = 4, .stack = {{"torch_version", "2.11.0"}, {"sm", "0"}}};
  MatrixFile file = shipped_matrix_file("random", catalogue());
  file.profiles.at("random").sample = 3000;
  const Plan plan = make_plan(file, catalogue(), "random", sim, std::nullopt);
  EXPECT_EQ(plan.lines.size(), 3000u);
  std::map<std::string, std::set<std::string>> occurred;
  for (const record::PlanLine& line : plan.lines) {
    ASSERT_FALSE(line.skip) << line.name << ": " << line.skip->why;
    ASSERT_EQ(line.expect.kind, "pass") << line.name;
    const Case test_case = case_from_json(catalogue().axes, line.axes, "");
    for (const VaryingAxis& axis : file.axes)
      occurred[axis.name].insert(value_text(value_of(catalogue().axes, test_case, axis.name)));
  }
  for (const VaryingAxis& axis : file.axes)
    for (const Value& value : axis.values)
      EXPECT_TRUE(occurred[axis.name].contains(value_text(value)))
          << axis.name << " = " << value_text(value);
  EXPECT_EQ(plan.lines, make_plan(file, catalogue(), "random", sim, std::nullopt).lines);
}

}  // namespace
}  // namespace graphproof::matrix
