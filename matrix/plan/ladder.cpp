#include "matrix/plan/ladder.h"

#include <array>
#include <span>
#include <string_view>

namespace graphproof::matrix {
namespace {

/// Axes that only say how graphs are made; an eager case has their defaults.
constexpr std::array<std::string_view, 9> kOfGraphs = {
    "impl",          "modules",     "inference_scope", "optimizer_graph", "pool",
    "shape_buckets", "graph_trees", "graph_partition", "capture_mode"};
/// Axes that let work overlap; they come last.
constexpr std::array<std::string_view, 5> kOfOverlap = {"delay_wgrad", "overlap_grad_reduce",
                                                        "overlap_param_gather", "overlap_ep_comm",
                                                        "shared_expert_overlap"};
/// A case whose graphs hold one module of a layer each; every engine that takes modules takes it.
constexpr const char* kNarrow = "impl=local,modules=[attn]";

Case without(Case test_case, std::span<const std::string_view> axes) {
  for (const std::string_view axis : axes) test_case.values.erase(std::string(axis));
  return test_case;
}

Case with(Case test_case, const Case& values) {
  for (const auto& [axis, value] : values.values) test_case.values[axis] = value;
  return test_case;
}

}  // namespace

Ladder ladder_to(const Case& target, const Catalogue& catalogue, const Machine& machine) {
  const AxisTable& axes = catalogue.axes;
  const auto allowed = [&](const Case& one) { return !catalogue.rules.refusal(one, machine); };
  Ladder ladder{.eager = without(target, kOfGraphs), .narrow = {}, .wider = {}};
  const Case alone = without(target, kOfOverlap);  // the scope of the target, nothing overlaps

  const Case narrow_values = case_from_name(axes, kNarrow, "ladder");
  Case narrow = alone;
  narrow.values["modules"] = narrow_values.values.at("modules");
  if (!allowed(narrow)) narrow = with(without(alone, kOfGraphs), narrow_values);
  std::vector<Rung> all;
  const auto add = [&](std::string what, const Case& one) {
    const bool last = one == target;
    if ((last || allowed(one)) && (all.empty() || !(all.back().test_case == one)))
      all.push_back({std::move(what), one});
  };
  add("attention alone is captured", narrow);
  // The modules of the target, one more at a time.
  if (const auto modules = target.values.find("modules"); modules != target.values.end()) {
    std::vector<std::string> some;
    for (const std::string& module : std::get<std::vector<std::string>>(modules->second)) {
      some.push_back(module);
      Case captured = alone;
      set_value(axes, captured, "modules", some);
      add(module + (some.size() > 1 ? " too" : " alone") + " is captured", captured);
    }
  }
  add("the whole scope, nothing overlaps", alone);
  Case overlapping = alone;
  for (const std::string_view axis : kOfOverlap) {
    const auto value = target.values.find(std::string(axis));
    if (value == target.values.end()) continue;
    overlapping.values[value->first] = value->second;
    add("with " + value->first, overlapping);
  }
  add("the target", target);
  ladder.narrow = all.front();
  ladder.wider.assign(all.begin() + 1, all.end());
  return ladder;
}

}  // namespace graphproof::matrix
