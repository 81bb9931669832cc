#include "launcher/cli/like.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "matrix/input/input_error.h"
#include "matrix/plan/recipes.h"
#include "reports/record/text/printable.h"

namespace graphproof::cli {
namespace {

using matrix::Mapped;
using matrix::TrainingValues;
using matrix::Value;
using nlohmann::json;
using record::printable;

std::string text_of(const dialect::Configuration& configuration, const char* option) {
  const auto found = configuration.values.find(option);
  if (found == configuration.values.end() ||
      std::holds_alternative<matrix::Absent>(found->second) ||
      std::holds_alternative<matrix::Unknown>(found->second))
    return "";
  const auto* text = std::get_if<std::string>(&found->second);
  return text != nullptr ? *text : matrix::value_text(found->second);
}

/// The published recipe that a command line of the harness names, or null. A tuned recipe (`perf`)
/// is preferred to one of the library.
const matrix::Recipe* recipe_of(const dialect::Configuration& configuration,
                                const std::vector<matrix::Recipe>& recipes) {
  std::string precision = text_of(configuration, "harness_compute_dtype"),
              name = text_of(configuration, "harness_model_recipe_name");
  precision.erase(std::remove(precision.begin(), precision.end(), '_'), precision.end());
  name += "_" + text_of(configuration, "harness_task") + "_" +
          text_of(configuration, "harness_num_gpus") + "gpu_" +
          text_of(configuration, "harness_gpu") + "_" + precision;
  if (const std::string variant = text_of(configuration, "harness_config_variant");
      !variant.empty())
    name += "_" + variant;
  const matrix::Recipe* found = nullptr;
  for (const matrix::Recipe& recipe : recipes)
    if (recipe.name == name && (found == nullptr || recipe.of == "perf")) found = &recipe;
  return found;
}

/// Whether an option exists on this surface. One that exists only on the command line has no
/// meaning in a configuration object, and the other way round.
bool of_surface(const dialect::Option& option, dialect::Surface surface) {
  switch (option.where) {
    case dialect::Where::both:
    case dialect::Where::stack:
      return true;
    case dialect::Where::cli:
      return surface == dialect::Surface::command_line;
    case dialect::Where::config:
      return surface != dialect::Surface::command_line;
    case dialect::Where::harness:
    case dialect::Where::retired:
      return false;
  }
  return false;
}

/// The effective values of the options that exist on this surface or were written. The settings of
/// a recipe count unless a flag or a rule changed them.
TrainingValues values_of(const dialect::Dialect& dialect, const dialect::Configuration& effective,
                         const matrix::Recipe* recipe) {
  TrainingValues values;
  if (recipe != nullptr) values = recipe->values;
  const dialect::Configuration defaults =
      dialect::Configuration::defaults(dialect.options, effective.surface);
  for (const auto& [name, value] : effective.values) {
    const dialect::Option* option = dialect.options.find(name);
    const bool written = effective.places.count(name) != 0;
    if (option != nullptr && !of_surface(*option, effective.surface) &&
        !(written && option->where != dialect::Where::harness))
      continue;
    if (std::holds_alternative<matrix::Unknown>(value) && values.count(name) != 0) continue;
    const auto before = defaults.values.find(name);
    const bool rewritten = before == defaults.values.end() || !(before->second == value);
    if (values.count(name) == 0 || written || rewritten) values[name] = value;
  }
  return values;
}

void show_finding(const char* rule_of, const std::string& rule, const std::string& severity,
                  const std::string& what, const std::string& next, std::ostream& out) {
  out << fmt::format("  {:<9} {} of {}, {}: {}\n", "meets", rule, rule_of, severity,
                     printable(what));
  if (!next.empty()) out << fmt::format("  {:<9} next: {}\n", "", printable(next));
}

}  // namespace

void declare_like(CLI::App& app, LikeOptions& options) {
  app.option_defaults()->group("From a training configuration of Megatron-LM or Megatron Bridge");
  app.add_option_function<std::string>(
         "--like",
         [&options](const std::string& file) {
           options.given = true;
           options.file = file;
         },
         "take the case nearest to this configuration that this machine can run; for a command "
         "line write `--like -- ARGS...`")
      ->expected(0, 1)
      ->type_name("FILE");
  declare_job(app, options);
}

void expect_like(const LikeOptions& options, const Surroundings& surroundings,
                 const std::string& verb) {
  if (!options.given && !surroundings.words.empty())
    throw matrix::InputError({.what = "`" + verb + "` does not take arguments after `--`",
                              .got = surroundings.words.front(),
                              .want = "--like before them",
                              .why = "",
                              .next = "graphproof " + verb + " --like -- ARGS...",
                              .place = {}});
}

Like like(const LikeOptions& options, const matrix::Machine& machine,
          const Surroundings& surroundings) {
  const TrainingConfiguration configuration = read_training_configuration(options, surroundings);
  const auto* upstream = std::get_if<UpstreamConfiguration>(&configuration.value);
  if (upstream == nullptr)
    throw matrix::InputError({.what = "a graphproof case is its own nearest case",
                              .got = options.file,
                              .want = "a configuration of Megatron-LM or Megatron Bridge",
                              .why = "",
                              .next = "graphproof repro CASE",
                              .place = {}});
  Like result;
  result.dialect = upstream->dialect.name + " " + upstream->dialect.version;
  result.verdict = dialect::check(upstream->dialect, upstream->reading);
  const dialect::Configuration& effective = result.verdict.effective;
  std::vector<matrix::Recipe> recipes;
  const matrix::Recipe* recipe = nullptr;
  if (effective.surface == dialect::Surface::harness) {
    recipes = matrix::shipped_recipes();
    recipe = recipe_of(effective, recipes);
    if (recipe != nullptr) result.recipe = recipe->name;
  }
  result.made = matrix::nearest_case(values_of(upstream->dialect, effective, recipe),
                                     surroundings.catalogue, machine);
  for (const auto& [name, place] : effective.places)
    if (result.made.read.count(name) == 0 && !name.starts_with("harness_"))
      result.left_out.push_back(name);
  return result;
}

void show(const Like& like, const Surroundings& surroundings, std::ostream& out) {
  for (const dialect::Finding& finding : like.verdict.findings)
    if (finding.first)
      out << fmt::format("rejected by {}: {}: {}\n  got       {}\n  next      {}\n", like.dialect,
                         finding.rule, printable(finding.what), printable(finding.got),
                         printable(finding.next));
  out << fmt::format("the nearest case to a configuration of {}{}\n", like.dialect,
                     like.recipe.empty() ? "" : ", from the recipe " + like.recipe);
  for (const Mapped& one : like.made.account) {
    const std::string to = one.to.empty() ? "" : " -> " + one.to;
    out << fmt::format("  {:<9} {}{}{}\n", matrix::mapped_text(one.kind), printable(one.from),
                       printable(to), one.why.empty() ? "" : " (" + printable(one.why) + ")");
  }
  if (!like.left_out.empty())
    out << fmt::format("  dropped   {} (no axis for them)\n",
                       printable(fmt::format("{}", fmt::join(like.left_out, ", "))));
  for (const std::string& text : like.made.missing)
    out << fmt::format("  lacks     {}\n", printable(text));
  for (const dialect::Finding& finding : like.verdict.findings)
    if (!finding.unknown && !finding.first)
      show_finding(like.dialect.c_str(), finding.rule, finding.severity, finding.what, finding.next,
                   out);
  for (const matrix::Finding& finding :
       surroundings.catalogue.rules.evaluate(like.made.runnable, {}))
    if (!finding.unknown)
      show_finding("graphproof", finding.rule, finding.severity, finding.what, finding.next, out);
}

json json_of(const Like& like, const Surroundings& surroundings) {
  json account = json::array(), findings = json::array(), own = json::array();
  for (const Mapped& one : like.made.account)
    account.push_back({{"kind", matrix::mapped_text(one.kind)},
                       {"from", one.from},
                       {"to", one.to},
                       {"why", one.why}});
  for (const dialect::Finding& finding : like.verdict.findings) findings.push_back(finding.json());
  for (const matrix::Finding& finding :
       surroundings.catalogue.rules.evaluate(like.made.runnable, {}))
    own.push_back(finding.json());
  return {{"dialect", like.dialect},
          {"recipe", like.recipe},
          {"accepted", like.verdict.accepted},
          {"asked", matrix::case_name(surroundings.catalogue.axes, like.made.asked)},
          {"nearest", matrix::case_name(surroundings.catalogue.axes, like.made.runnable)},
          {"account", account},
          {"left_out", like.left_out},
          {"lacks", like.made.missing},
          {"findings", findings},
          {"rules", own}};
}

}  // namespace graphproof::cli
