#include "reports/analysis/compare.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <map>
#include <set>
#include <utility>

#include "reports/outcome/standing.h"

namespace graphproof::reports {
namespace {

using nlohmann::json;
using record::ExitCode;

}  // namespace

std::map<std::string, std::string> stack_parts(const record::Run& run) {
  const record::Stack& stack = run.stack;
  std::map<std::string, std::string> all = {{"torch", stack.torch_version},
                                            {"CUDA", stack.cuda_version},
                                            {"NCCL", stack.nccl_version},
                                            {"driver", stack.driver},
                                            {"cuDNN", stack.cudnn_version},
                                            {"MPI", stack.mpi},
                                            {"kernel", stack.kernel},
                                            {"device", run.device},
                                            {"launcher", run.engine},
                                            {"seed", std::to_string(run.seed)},
                                            {"GPUs", ""}};
  for (const std::string& gpu : stack.gpus) all["GPUs"] += (all["GPUs"].empty() ? "" : ", ") + gpu;
  for (const auto& [name, value] : stack.environment) all["environment " + name] = value;
  for (const auto& [name, state] : stack.subjects)
    all["subject " + name] = state.available ? state.version : state.why;
  return all;
}

std::vector<StackChange> stack_changes(const std::map<std::string, std::string>& of_left,
                                       const std::map<std::string, std::string>& of_right) {
  std::set<std::string> names;
  for (const auto& all : {of_left, of_right})
    for (const auto& [name, value] : all) names.insert(name);
  const auto value = [](const auto& all, const std::string& name) {
    const auto found = all.find(name);
    return found == all.end() ? std::string("unset") : found->second;
  };
  std::vector<StackChange> changes;
  for (const std::string& name : names)
    if (value(of_left, name) != value(of_right, name))
      changes.push_back({name, value(of_left, name), value(of_right, name)});
  return changes;
}

namespace {

/// The compared cases, whose axis values are only read if a group has cases.
class Compared {
 public:
  explicit Compared(std::vector<const CaseResult*> cases) : cases_(std::move(cases)) {}

  Explanation explain(const std::set<std::string>& ids) {
    if (!values_) values_.emplace(cases_);
    std::vector<std::size_t> inside, others;
    for (std::size_t i = 0; i < cases_.size(); ++i)
      (ids.contains(cases_[i]->plan.id) ? inside : others).push_back(i);
    return values_->explain(inside, others, HoldsFor::most);
  }

 private:
  std::vector<const CaseResult*> cases_;
  std::optional<AxisValues> values_;
};

/// Collects the cases of a group.
struct Grouping {
  std::vector<CaseChange> changes;
  std::set<std::string> ids;

  void add(CaseChange change) {
    ids.insert(change.case_id);
    changes.push_back(std::move(change));
  }
};

std::string shown(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.4g", value);
  return text;
}

Covered covered(const RunResult& run) {
  Covered result{.planned = static_cast<int>(run.cases.size())};
  for (const CaseResult& one : run.cases) {
    if (standing(one.record) != Standing::not_shown) ++result.shown;
    result.checks_unexercised += one.record.checks.unexercised;
  }
  return result;
}

/// Why times and memory of the two runs say nothing about each other; empty if they do.
std::string why_no_figures(const record::Run& left, const record::Run& right) {
  if (left.stack.gpus != right.stack.gpus) return "the GPUs differ";
  if (left.options.sharing != right.options.sharing) return "the ranks or cases per GPU differ";
  if (left.device == "sim" && left.stack.cpus != right.stack.cpus)
    return "the simulated device ran on another number of CPU cores";
  return "";
}

/// The logarithms of right / left of one figure over the cases, and the case with the largest.
struct Ratios {
  std::vector<double> logarithms;
  double largest = 0;
  std::string largest_case;

  FigureChange change(const std::string& figure) const {
    FigureChange result{.figure = figure,
                        .pairs = static_cast<int>(logarithms.size()),
                        .ratio = std::exp(mean(logarithms)),
                        .interval = {},
                        .largest = largest,
                        .largest_case = largest_case};
    if (result.pairs >= kFewestPairs) {
      const ConfidenceInterval of_logarithm = bootstrap_mean(logarithms);
      result.interval = ConfidenceInterval{std::exp(of_logarithm.low), std::exp(of_logarithm.high)};
    }
    return result;
  }
};

}  // namespace

bool is_time(const std::string& figure) { return figure.ends_with("_ms"); }
bool is_memory(const std::string& figure) { return figure.ends_with("_bytes"); }

std::optional<NotComparable> not_comparable(const RunResult& left, const RunResult& right) {
  if (left.run.device != right.run.device)
    return NotComparable{left.run.device + " and " + right.run.device,
                         "a simulated device and GPUs differ in what they can show, in numbers and "
                         "in times",
                         "compare two runs of one device"};
  if (left.run.matrix.axes_version != right.run.matrix.axes_version)
    return NotComparable{"version " + std::to_string(left.run.matrix.axes_version) +
                             " and version " + std::to_string(right.run.matrix.axes_version) +
                             " of the axes",
                         "a case of one name is not the same configuration in both",
                         "run the earlier matrix again with this version"};
  std::set<std::string> ids;
  for (const CaseResult& one : left.cases) ids.insert(one.plan.id);
  if (std::none_of(right.cases.begin(), right.cases.end(),
                   [&](const CaseResult& one) { return ids.contains(one.plan.id); }))
    return NotComparable{"profiles " + left.run.profile + " and " + right.run.profile,
                         "no case is in both runs", "compare two runs of one profile"};
  return std::nullopt;
}

Comparison compare(const RunResult& left, const RunResult& right,
                   const std::map<std::string, Drift>& drifts) {
  Comparison result{.left = left.run_name,
                    .right = right.run_name,
                    .stack = stack_changes(stack_parts(left.run), stack_parts(right.run)),
                    .covered_left = covered(left),
                    .covered_right = covered(right),
                    .no_figures = why_no_figures(left.run, right.run)};
  if (left.run.seed != right.run.seed)
    result.no_drift = "the seeds differ";
  else if (drifts.empty())
    result.no_drift = "no case left evidence in both runs";
  std::map<std::string, Ratios> ratios;
  std::map<std::string, const CaseResult*> of_left;
  for (const CaseResult& one : left.cases) of_left.emplace(one.plan.id, &one);
  std::vector<const CaseResult*> compared;
  Grouping broke, healed, changed, lost, slower, faster, grew, shrank;
  for (const CaseResult& now : right.cases) {
    const auto found = of_left.find(now.plan.id);
    if (found == of_left.end()) {
      result.only_right.push_back(now.plan.name);
      continue;
    }
    const CaseResult& before = *found->second;
    of_left.erase(found);
    const Standing was = standing(before.record), is = standing(now.record);
    const CaseChange change{.case_id = now.plan.id,
                            .name = now.plan.name,
                            .left = std::string(before.record.verdict.text()),
                            .right = std::string(now.record.verdict.text())};
    if (was != Standing::not_shown && is == Standing::not_shown) lost.add(change);
    if (was == Standing::not_shown || is == Standing::not_shown) continue;
    compared.push_back(&now);
    if (was == Standing::acceptable && is == Standing::failed)
      broke.add(change);
    else if (was == Standing::failed && is == Standing::acceptable)
      healed.add(change);
    else if (before.record.verdict != now.record.verdict)
      changed.add(change);
    if (was != Standing::acceptable || is != Standing::acceptable)
      continue;  // the numbers and figures of a failure are not comparable
    if (const auto drift = drifts.find(now.plan.id);
        drift != drifts.end() && result.no_drift.empty()) {
      ++result.drift_counts[drift->second.drift_class];
      if (drift->second.drift_class != DriftClass::bitwise)
        result.drift.push_back({now.plan.id, now.plan.name, drift->second});
    }
    if (!result.no_figures.empty()) continue;
    for (const auto& [figure, value] : now.record.figures) {
      const auto old = before.record.figures.find(figure);
      if (old == before.record.figures.end() || !(old->second > 0) || !(value > 0)) continue;
      CaseChange of_figure{.case_id = now.plan.id,
                           .name = now.plan.name,
                           .left = shown(old->second),
                           .right = shown(value),
                           .figure = figure,
                           .ratio = value / old->second};
      Ratios& all = ratios[figure];
      all.logarithms.push_back(std::log(of_figure.ratio));
      if (of_figure.ratio > all.largest) {
        all.largest = of_figure.ratio;
        all.largest_case = now.plan.name;
      }
      const bool more = of_figure.ratio >= kNotable, less = of_figure.ratio <= 1 / kNotable;
      if (is_time(figure) && more) slower.add(of_figure);
      if (is_time(figure) && less) faster.add(of_figure);
      if (is_memory(figure) && more) grew.add(of_figure);
      if (is_memory(figure) && less) shrank.add(of_figure);
    }
  }
  for (const CaseResult& one : left.cases)
    if (of_left.contains(one.plan.id)) result.only_left.push_back(one.plan.name);
  result.compared = static_cast<int>(compared.size());
  for (const auto& [figure, all] : ratios)
    if (is_time(figure) || is_memory(figure)) result.figures.push_back(all.change(figure));
  std::stable_sort(result.drift.begin(), result.drift.end(),
                   [](const CaseDrift& one, const CaseDrift& other) {
                     return one.drift.drift_class > other.drift.drift_class;
                   });
  Compared explained(compared);
  const auto done = [&](const Grouping& group) -> ChangeGroup {
    if (group.changes.empty()) return {};
    return {group.changes, explained.explain(group.ids)};
  };
  result.broke = done(broke);
  result.healed = done(healed);
  result.changed = done(changed);
  result.slower = done(slower);
  result.faster = done(faster);
  result.grew = done(grew);
  result.shrank = done(shrank);
  if (!lost.changes.empty()) {
    std::vector<const CaseResult*> with_lost = compared;
    for (const CaseResult& one : right.cases)
      if (lost.ids.contains(one.plan.id)) with_lost.push_back(&one);
    result.lost = {lost.changes, Compared(with_lost).explain(lost.ids)};
  }
  return result;
}

ExitCode exit_code(const Comparison& comparison) {
  if (!comparison.broke.cases.empty()) return ExitCode::product;
  return !comparison.lost.cases.empty() || comparison.compared == 0 ? ExitCode::coverage
                                                                    : ExitCode::ok;
}

namespace {

constexpr std::array<NamedGroup, 8> kGroups = {{
    {"broke", "acceptable before, failing now", &Comparison::broke},
    {"lost", "shown before, not shown now", &Comparison::lost},
    {"changed", "another verdict of the same kind", &Comparison::changed},
    {"healed", "failing before, acceptable now", &Comparison::healed},
    {"slower", "time, ratio of right to left", &Comparison::slower},
    {"faster", "time, ratio of right to left", &Comparison::faster},
    {"grew", "memory, ratio of right to left", &Comparison::grew},
    {"shrank", "memory, ratio of right to left", &Comparison::shrank},
}};

json to_json(const Covered& covered) {
  return {{"planned", covered.planned},
          {"shown", covered.shown},
          {"checks_unexercised", covered.checks_unexercised}};
}

json to_json(const FigureChange& one) {
  json value = {{"figure", one.figure},   {"pairs", one.pairs},
                {"ratio", one.ratio},     {"interval", nullptr},
                {"largest", one.largest}, {"largest_case", one.largest_case}};
  if (one.interval) value["interval"] = {one.interval->low, one.interval->high};
  return value;
}

json to_json(const ChangeGroup& group) {
  json cases = json::array(), explained = json::array();
  for (const CaseChange& one : group.cases) {
    json value = {
        {"case", one.case_id}, {"name", one.name}, {"left", one.left}, {"right", one.right}};
    if (!one.figure.empty()) {
      value["figure"] = one.figure;
      value["ratio"] = one.ratio;
    }
    cases.push_back(value);
  }
  if (const Explanation& one = group.explained_by; !one.expression.empty())
    explained.push_back(
        {{"expression", one.expression}, {"inside", one.inside}, {"outside", one.outside}});
  return {{"cases", cases}, {"explained_by", explained}};
}

}  // namespace

std::span<const NamedGroup> change_groups() { return kGroups; }

json to_json(const Comparison& comparison) {
  json stack = json::array();
  for (const StackChange& one : comparison.stack)
    stack.push_back({{"part", one.part}, {"left", one.left}, {"right", one.right}});
  json value = {
      {"schema", kCompareSchema},
      {"left", comparison.left},
      {"right", comparison.right},
      {"compared", comparison.compared},
      {"coverage",
       {{"left", to_json(comparison.covered_left)}, {"right", to_json(comparison.covered_right)}}},
      {"no_figures", comparison.no_figures},
      {"no_drift", comparison.no_drift},
      {"figures", json::array()},
      {"drift", {{"counts", json::object()}, {"cases", json::array()}}},
      {"stack", stack},
      {"only_left", comparison.only_left},
      {"only_right", comparison.only_right},
      {"exit_code", record::value(exit_code(comparison))}};
  for (const FigureChange& one : comparison.figures) value["figures"].push_back(to_json(one));
  for (const DriftClass drift :
       {DriftClass::bitwise, DriftClass::ulp, DriftClass::tolerance, DriftClass::beyond}) {
    const auto found = comparison.drift_counts.find(drift);
    value["drift"]["counts"][std::string(name(drift))] =
        found == comparison.drift_counts.end() ? 0 : found->second;
  }
  for (const CaseDrift& one : comparison.drift)
    value["drift"]["cases"].push_back({{"case", one.case_id},
                                       {"name", one.name},
                                       {"class", name(one.drift.drift_class)},
                                       {"what", one.drift.what}});
  for (const NamedGroup& one : kGroups) value[one.name] = to_json(comparison.*one.group);
  return value;
}

}  // namespace graphproof::reports
