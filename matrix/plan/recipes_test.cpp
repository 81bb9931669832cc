// The published recipes and the profile made of them: no combination of graphs and layout is lost.
#include "matrix/plan/recipes.h"
#include "matrix/testing/loaded_catalogue.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "matrix/plan/matrix_file.h"
#include "matrix/plan/plan.h"

namespace graphproof::matrix {
namespace {

const std::vector<Recipe>& recipes() {
  static const std::vector<Recipe> shipped = shipped_recipes();
  return shipped;
}
// A machine with room for every shrunk layout.
const Machine kMachine{.device = "sim", .slots = 16, .stack = {}};

std::string option_text(const Recipe& recipe, const std::string& option) {
  const auto found = recipe.values.find(option);
  return found == recipe.values.end() || std::holds_alternative<Absent>(found->second) ||
                 std::holds_alternative<Unknown>(found->second)
             ? ""
             : value_text(found->second);
}
bool several(const Recipe& recipe, const char* option) {
  const std::string size = option_text(recipe, option);
  return !size.empty() && size != "1";
}

// The graph settings, the parallel dimensions above one, and the token dispatcher of a recipe.
std::string shape(const Recipe& recipe) {
  std::string text =
      option_text(recipe, "cuda_graph_impl") + " " + option_text(recipe, "cuda_graph_modules");
  text += !several(recipe, "pipeline_model_parallel_size")          ? " PP1"
          : several(recipe, "virtual_pipeline_model_parallel_size") ? " PP+VPP"
                                                                    : " PP";
  for (const char* option :
       {"tensor_model_parallel_size", "context_parallel_size", "expert_model_parallel_size"})
    text += several(recipe, option) ? " yes" : " no";
  return text + " " + option_text(recipe, "moe_token_dispatcher_type") + "/" +
         option_text(recipe, "moe_flex_dispatcher_backend");
}

TEST(RecipesTest, AllPublishedRowsAreThere) {
  std::map<std::string, int> rows, with_graphs;
  std::set<std::string> names;
  for (const Recipe& recipe : recipes()) {
    ++rows[recipe.of];
    with_graphs[recipe.of] += recipe.uses_graphs();
    EXPECT_TRUE(names.insert(recipe.of + " " + recipe.name).second) << recipe.name;
  }
  EXPECT_EQ(recipes().size(), 1152u);
  EXPECT_EQ(rows, (std::map<std::string, int>{{"perf", 430}, {"library", 308}, {"legacy", 414}}));
  EXPECT_EQ(with_graphs,
            (std::map<std::string, int>{{"perf", 232}, {"library", 11}, {"legacy", 204}}));
}

TEST(RecipesTest, EveryShapeBecomesACaseThatKeepsWhatMakesIt) {
  std::set<std::string> shapes;
  for (const Recipe& recipe : recipes()) {
    if (!recipe.uses_graphs()) continue;
    if (recipe.of == "perf") shapes.insert(shape(recipe));
    const NearestCase made = nearest_case(recipe.values, catalogue(), kMachine);
    const AxisTable& axes = catalogue().axes;
    EXPECT_EQ(text_of(axes, made.asked, "impl"), option_text(recipe, "cuda_graph_impl"))
        << recipe.name;
    auto modules = std::get<std::vector<std::string>>(value_of(axes, made.asked, "modules"));
    auto named = std::get<std::vector<std::string>>(recipe.values.at("cuda_graph_modules"));
    std::sort(modules.begin(), modules.end());
    std::sort(named.begin(), named.end());
    EXPECT_EQ(modules, named) << recipe.name;
    for (const auto& [option, axis] : {std::pair{"tensor_model_parallel_size", "tp"},
                                       {"pipeline_model_parallel_size", "pp"},
                                       {"virtual_pipeline_model_parallel_size", "vpp"},
                                       {"context_parallel_size", "cp"},
                                       {"expert_model_parallel_size", "ep"},
                                       {"expert_tensor_parallel_size", "etp"}})
      EXPECT_EQ(integer_of(axes, made.asked, axis), several(recipe, option) ? 2 : 1)
          << recipe.name << " " << axis;
    if (!option_text(recipe, "moe_token_dispatcher_type").empty()) {
      EXPECT_EQ(text_of(axes, made.asked, "dispatcher"),
                option_text(recipe, "moe_token_dispatcher_type"))
          << recipe.name;
    }
    EXPECT_TRUE(made.missing.empty())
        << recipe.name
        << " has no case that runs: " << (made.missing.empty() ? "" : made.missing.front());
    // Every difference between the two cases is reported.
    EXPECT_EQ(made.runnable == made.asked,
              std::none_of(made.account.begin(), made.account.end(),
                           [](const Mapped& one) { return one.kind == Mapped::Kind::replaced; }))
        << recipe.name;
  }
  EXPECT_EQ(shapes.size(), 33u);
}

TEST(RecipesTest, TheProfileHasALineForEverySettingAndOneThatRuns) {
  const Plan plan = make_plan(shipped_matrix_file("recipes", catalogue()), catalogue(), "recipes",
                              kMachine, std::nullopt);
  EXPECT_EQ(plan.raw.rows, static_cast<long double>(recipes().size()));
  std::map<std::string, const record::PlanLine*> lines;
  for (const record::PlanLine& line : plan.lines) lines[line.id] = &line;
  int to_run = 0;
  for (const Recipe& recipe : recipes()) {
    if (!recipe.uses_graphs()) continue;
    const NearestCase made = nearest_case(recipe.values, catalogue(), kMachine);
    ASSERT_TRUE(lines.count(case_id(made.asked))) << recipe.name;
    const record::PlanLine& asked = *lines.at(case_id(made.asked));
    if (asked.expect.kind == "rejected") continue;
    ASSERT_EQ(!asked.skip, made.lacking.empty()) << recipe.name;
    if (asked.skip) {
      EXPECT_EQ(asked.skip->verdict.text(), "skipped.capability") << recipe.name;
      EXPECT_NE(asked.skip->why, "") << recipe.name;
    }
    ASSERT_TRUE(lines.count(case_id(made.runnable))) << recipe.name;
    EXPECT_FALSE(lines.at(case_id(made.runnable))->skip) << recipe.name;
  }
  for (const record::PlanLine& line : plan.lines) to_run += line.skip ? 0 : 1;
  EXPECT_GT(to_run, 0);
  EXPECT_NE(plan.lines.front().why.find("asked for by"), std::string::npos);
}

// Cases by subject that the machine runs, and those of Megatron-Core with what only it has here.
struct Counts {
  std::map<std::string, int> run;
  std::set<std::string> ids;  // of Megatron-Core, run or not
  int in_fp8 = 0;
};
Counts counts_of(const Machine& machine) {
  Counts result;
  for (const record::PlanLine& line : make_plan(shipped_matrix_file("recipes", catalogue()),
                                                catalogue(), "recipes", machine, std::nullopt)
                                          .lines) {
    const std::string subject = line.axes.at("subject");
    if (!line.skip && line.expect.kind == "pass") ++result.run[subject];
    if (subject != "megatron_core") continue;
    result.ids.insert(line.id);
    result.in_fp8 += line.axes.at("precision").get<std::string>().starts_with("fp8");
    EXPECT_EQ(line.axes.at("layer_spec"), "transformer_engine") << line.name;
    EXPECT_NE(line.why.find("of Megatron-Core to"), std::string::npos) << line.why;
    EXPECT_EQ(line.expect.kind, "pass") << line.name;
  }
  return result;
}

TEST(RecipesTest, EverySettingRunsThroughMegatronCoreTooWhereItIsInstalled) {
  Machine machine{.device = "cuda", .slots = 4, .stack = {{"sm", "90"}}};
  const Counts installed = counts_of(machine);
  EXPECT_EQ(installed.run,
            (std::map<std::string, int>{{"megatron_core", 125}, {"reference", 139}}));
  EXPECT_EQ(installed.ids.size(), 125u);
  EXPECT_EQ(installed.in_fp8, 38);
  machine.unavailable["megatron_core"] = "megatron-core is not installed";
  const Counts bare = counts_of(machine);
  EXPECT_EQ(bare.ids, installed.ids);
  EXPECT_FALSE(bare.run.contains("megatron_core"));
}

TEST(RecipesTest, ASmallMachineSkipsWhatNeedsMoreRanksAndRunsTheNearest) {
  const Machine small{.device = "sim", .slots = 2, .stack = {}};
  const Plan plan = make_plan(shipped_matrix_file("recipes", catalogue()), catalogue(), "recipes",
                              small, std::nullopt);
  for (const record::PlanLine& line : plan.lines)
    EXPECT_EQ(line.ranks > 2, line.skip && line.skip->verdict.text() == "skipped.gpus")
        << line.name;
  EXPECT_GT(plan.skipped.at("skipped.gpus"), 0);
}

TEST(RecipesTest, ABrokenTableIsAnErrorWithItsPlace) {
  const auto message = [](const std::string& text) {
    try {
      parse_recipes(parse_document(text, "r"));
    } catch (const InputError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_NE(message(
                R"({"schema": "graphproof-recipes/1", "columns": ["recipe", "cuda_graph_impl"],
              "recipes": [["a"]]})")
                .find("a recipe with 1 values"),
            std::string::npos);
  EXPECT_NE(message(
                R"({"schema": "graphproof-recipes/1", "columns": ["recipe", "cuda_graph_impl"],
              "recipes": [["a", null]]})")
                .find("without a name or an implementation"),
            std::string::npos);
  EXPECT_NE(
      message(
          R"({"schema": "graphproof-recipes/1", "columns": ["precision"], "recipes": [["fp7"]]})")
          .find("an unknown precision"),
      std::string::npos);
  EXPECT_NE(
      message(
          R"({"schema": "graphproof-recipes/1", "columns": ["recompute"], "recipes": [["some"]]})")
          .find("a recompute setting that can't be read"),
      std::string::npos);
}

}  // namespace
}  // namespace graphproof::matrix
