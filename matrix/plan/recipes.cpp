#include "matrix/plan/recipes.h"

#include <algorithm>

namespace graphproof::matrix {

std::string_view embedded(std::string_view name);  // generated from the data files of this folder

namespace {

struct RecipePrecision {
  const char* word;
  const char* fp8_recipe;  // null: no fp8
};
constexpr RecipePrecision kPrecisions[] = {{"bf16", nullptr},     {"fp8_cs", "tensorwise"},
                                           {"fp8_ds", "delayed"}, {"fp8_sc", "blockwise"},
                                           {"fp8_mx", "mxfp8"},   {"nvfp4", nullptr}};

std::vector<std::string> words_of(const Located& list) {
  std::vector<std::string> words;
  for (const Located& word : list.items()) words.push_back(word.string());
  return words;
}

void read_precision(Recipe& recipe, const Located& cell) {
  recipe.precision = cell.string();
  const auto* row =
      std::find_if(std::begin(kPrecisions), std::end(kPrecisions),
                   [&](const RecipePrecision& one) { return recipe.precision == one.word; });
  if (row == std::end(kPrecisions))
    cell.fail("an unknown precision", "bf16, fp8_cs, fp8_ds, fp8_sc, fp8_mx or nvfp4", "",
              "correct it");
  recipe.values["bf16"] = true;
  if (row->fp8_recipe != nullptr) {
    recipe.values["fp8"] = std::string("hybrid");
    recipe.values["fp8_recipe"] = std::string(row->fp8_recipe);
  }
  if (recipe.precision == "nvfp4") recipe.values["fp4"] = std::string("e2m1");
}

// selective(mla_up_proj,mlp), or full(uniform,1).
void read_recompute(Recipe& recipe, const Located& cell) {
  const Call call = split_call(cell.string());
  recipe.values["recompute_granularity"] = call.word;
  if (call.word == "selective") {
    recipe.values["recompute_modules"] = call.arguments;
  } else if (call.word == "full" && call.arguments.size() == 2) {
    recipe.values["recompute_method"] = call.arguments[0];
    recipe.values["recompute_num_layers"] = static_cast<std::int64_t>(std::stol(call.arguments[1]));
  } else {
    cell.fail("a recompute that can't be read", "selective(modules) or full(method,n)", "",
              "correct it");
  }
}

void read_environment(Recipe& recipe, const Located& cell) {
  for (const Located& word : cell.items()) {
    if (word.word({"expandable", "register_0"}) == "expandable")
      recipe.values["env.PYTORCH_CUDA_ALLOC_CONF"] = std::string("expandable_segments:True");
    else
      recipe.values["env.NCCL_GRAPH_REGISTER"] = std::string("0");
  }
}

void read_cell(Recipe& recipe, const std::string& column, const Located& cell) {
  const Json& json = cell.json();
  if (json.is_null()) return;
  if (column == "recipe")
    recipe.name = cell.string();
  else if (column == "of")
    recipe.of = cell.word({"perf", "library", "legacy"});
  else if (column == "family")
    recipe.family = cell.string();
  else if (column == "task")
    recipe.task = cell.string();
  else if (column == "gpu")
    recipe.gpu = cell.string();
  else if (column == "gpus")
    recipe.values["world_size"] = recipe.gpus = cell.integer(1, 1 << 20);
  else if (column == "precision")
    read_precision(recipe, cell);
  else if (column == "recompute")
    read_recompute(recipe, cell);
  else if (column == "environment")
    read_environment(recipe, cell);
  else if (column == "moe")
    recipe.values["num_moe_experts"] =
        cell.boolean() ? Value(Unknown{}) : Value(Absent{});  // how many is not said
  else if (column == "on")
    for (const std::string& option : words_of(cell)) recipe.values[option] = true;
  else if (json.is_boolean())
    recipe.values[column] = json.get<bool>();
  else if (json.is_number_integer())
    recipe.values[column] = json.get<std::int64_t>();
  else if (json.is_number())
    recipe.values[column] = json.get<double>();
  else if (json.is_array())
    recipe.values[column] = words_of(cell);
  else
    recipe.values[column] = cell.string();
}

}  // namespace

bool Recipe::uses_graphs() const {
  return values.at("cuda_graph_impl") != Value(std::string("none"));
}

std::vector<Recipe> parse_recipes(const Document& document) {
  const Located root(document);
  root.expect_keys({"schema", "columns", "recipes"}, {});
  root.at("schema").word({"graphproof-recipes/1"});
  const std::vector<std::string> columns = words_of(root.at("columns"));
  std::vector<Recipe> recipes;
  for (const Located& row : root.at("recipes").items()) {
    const std::vector<Located> cells = row.items();
    if (cells.size() != columns.size())
      row.fail("a recipe with " + std::to_string(cells.size()) + " values",
               std::to_string(columns.size()) + ", one for each of `columns`", "",
               "write null for what is not said");
    Recipe recipe;
    for (std::size_t i = 0; i < cells.size(); ++i) read_cell(recipe, columns[i], cells[i]);
    if (recipe.name.empty() || recipe.values.count("cuda_graph_impl") == 0)
      row.fail("a recipe without a name or an implementation", "both", "", "write them");
    // Upstream refuses captured delayed weight gradients without it (R052), and these recipes are
    // published.
    if (recipe.values.count("delay_wgrad_compute") != 0)
      recipe.values["gradient_accumulation_fusion"] = true;
    recipes.push_back(std::move(recipe));
  }
  return recipes;
}

std::vector<Recipe> shipped_recipes() {
  return parse_recipes(parse_document(embedded("tables/megatron_bridge.json"),
                                      "matrix/tables/megatron_bridge.json"));
}

}  // namespace graphproof::matrix
