#include "reports/analysis/compare.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <map>
#include <set>
#include <utility>

#include "reports/outcome/outcome.h"
#include "reports/record/text/printable.h"

namespace graphproof::reports {
namespace {

using nlohmann::json;
using record::ExitCode;

enum class Standing { acceptable, failed, not_shown };

Standing standing(const record::Record& record) {
  if (record.verdict.in("skipped") || record.verdict.text() == "not_run")
    return Standing::not_shown;
  switch (exit_code(record.verdict, record.rule)) {
    case ExitCode::ok:
      return Standing::acceptable;
    case ExitCode::product:
      return Standing::failed;
    default:
      return Standing::not_shown;
  }
}

std::map<std::string, std::string> parts(const record::Run& run) {
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

std::vector<StackChange> stack_changes(const record::Run& left, const record::Run& right) {
  const auto of_left = parts(left), of_right = parts(right);
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

std::string spelled(const json& value) {
  return value.is_string() ? value.get<std::string>() : value.dump();
}

using Value = std::pair<std::string, std::string>;  // axis, value

std::set<Value> values_of(const CaseResult& one) {
  std::set<Value> values;
  for (const auto& [axis, value] : one.plan.axes.items()) values.emplace(axis, spelled(value));
  return values;
}

std::string equation(const Value& value) { return value.first + " == " + value.second; }

/// Single axis values and pairs of them, the one that distinguishes `inside` from `outside` best
/// first. A value that all compared cases have distinguishes nothing.
std::vector<Explanation> explain(const std::vector<std::set<Value>>& inside,
                                 const std::vector<std::set<Value>>& outside) {
  constexpr std::size_t kShown = 3;
  if (inside.empty() || outside.empty()) return {};
  std::map<Value, int> counts;
  for (const auto& one : inside)
    for (const Value& value : one) ++counts[value];
  const auto holding = [](const std::vector<std::set<Value>>& cases,
                          const std::vector<Value>& values) {
    return static_cast<int>(
        std::count_if(cases.begin(), cases.end(), [&](const std::set<Value>& one) {
          return std::all_of(values.begin(), values.end(),
                             [&](const Value& value) { return one.contains(value); });
        }));
  };
  std::vector<Value> distinguishing;
  for (const auto& [value, count] : counts)
    if (holding(outside, {value}) < static_cast<int>(outside.size()))
      distinguishing.push_back(value);

  std::vector<Explanation> found;
  const auto add = [&](const std::vector<Value>& values) {
    Explanation one{.expression = equation(values[0]),
                    .inside = holding(inside, values),
                    .outside = holding(outside, values)};
    if (values.size() > 1) one.expression += " and " + equation(values[1]);
    // It explains something only if it is more common inside than outside.
    const double share_inside = one.inside / static_cast<double>(inside.size());
    const double share_outside = one.outside / static_cast<double>(outside.size());
    if (share_inside > share_outside) found.push_back(std::move(one));
  };
  for (const Value& value : distinguishing) add({value});
  for (std::size_t i = 0; i < distinguishing.size(); ++i)
    for (std::size_t j = i + 1; j < distinguishing.size(); ++j)
      if (distinguishing[i].first != distinguishing[j].first)
        add({distinguishing[i], distinguishing[j]});
  // First those that are right about the most cases, then the shortest, then by name, so that the
  // same input gives the same order.
  const auto wrong = [&](const Explanation& one) {
    return static_cast<int>(inside.size()) - one.inside + one.outside;
  };
  std::stable_sort(found.begin(), found.end(),
                   [&](const Explanation& left, const Explanation& right) {
                     return std::pair(wrong(left), left.expression.size()) <
                            std::pair(wrong(right), right.expression.size());
                   });
  // An expression that is wrong about as many cases as changed explains nothing.
  std::erase_if(
      found, [&](const Explanation& one) { return wrong(one) >= static_cast<int>(inside.size()); });
  if (found.size() > kShown) found.resize(kShown);
  return found;
}

/// Collects the cases of a group and finds at the end what explains them among all compared cases.
struct Grouping {
  std::vector<CaseChange> changes;
  std::set<std::string> ids;

  void add(CaseChange change) {
    ids.insert(change.case_id);
    changes.push_back(std::move(change));
  }
  ChangeGroup done(const std::vector<const CaseResult*>& compared) const {
    std::vector<std::set<Value>> inside, outside;
    for (const CaseResult* one : compared)
      (ids.contains(one->plan.id) ? inside : outside).push_back(values_of(*one));
    return {changes, explain(inside, outside)};
  }
};

std::string shown(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.4g", value);
  return text;
}

/// The names of times end in _ms, those of memory in _bytes.
bool is_time(const std::string& figure) { return figure.ends_with("_ms"); }
bool is_memory(const std::string& figure) { return figure.ends_with("_bytes"); }

}  // namespace

Comparison compare(const RunResult& left, const RunResult& right) {
  Comparison result{
      .left = left.run_name, .right = right.run_name, .stack = stack_changes(left.run, right.run)};
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
      continue;  // the figures of a failure are not comparable
    for (const auto& [figure, value] : now.record.figures) {
      const auto old = before.record.figures.find(figure);
      if (old == before.record.figures.end() || !(old->second > 0) || !(value > 0)) continue;
      CaseChange of_figure{.case_id = now.plan.id,
                           .name = now.plan.name,
                           .left = shown(old->second),
                           .right = shown(value),
                           .figure = figure,
                           .ratio = value / old->second};
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
  result.broke = broke.done(compared);
  result.healed = healed.done(compared);
  result.changed = changed.done(compared);
  std::vector<const CaseResult*> with_lost = compared;
  for (const CaseResult& one : right.cases)
    if (lost.ids.contains(one.plan.id)) with_lost.push_back(&one);
  result.lost = lost.done(with_lost);
  result.slower = slower.done(compared);
  result.faster = faster.done(compared);
  result.grew = grew.done(compared);
  result.shrank = shrank.done(compared);
  return result;
}

ExitCode exit_code(const Comparison& comparison) {
  if (!comparison.broke.cases.empty()) return ExitCode::product;
  return !comparison.lost.cases.empty() || comparison.compared == 0 ? ExitCode::coverage
                                                                    : ExitCode::ok;
}

namespace {

struct NamedGroup {
  const char* name;
  const char* meaning;
  ChangeGroup Comparison::* group;
};
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
  for (const Explanation& one : group.explained_by)
    explained.push_back(
        {{"expression", one.expression}, {"inside", one.inside}, {"outside", one.outside}});
  return {{"cases", cases}, {"explained_by", explained}};
}

}  // namespace

json to_json(const Comparison& comparison) {
  json stack = json::array();
  for (const StackChange& one : comparison.stack)
    stack.push_back({{"part", one.part}, {"left", one.left}, {"right", one.right}});
  json value = {{"schema", kCompareSchema},
                {"left", comparison.left},
                {"right", comparison.right},
                {"compared", comparison.compared},
                {"stack", stack},
                {"only_left", comparison.only_left},
                {"only_right", comparison.only_right},
                {"exit_code", record::value(exit_code(comparison))}};
  for (const NamedGroup& one : kGroups) value[one.name] = to_json(comparison.*one.group);
  return value;
}

std::string text(const Comparison& comparison) {
  constexpr std::size_t kShownCases = 20;
  std::string out = comparison.left + " -> " + comparison.right + ": " +
                    std::to_string(comparison.compared) + " cases compared\n";
  out += comparison.stack.empty() ? "stack: the same\n" : "stack:\n";
  for (const StackChange& one : comparison.stack)
    out += "  " + record::printable(one.part) + ": " + record::printable(one.left) + " -> " +
           record::printable(one.right) + "\n";
  for (const NamedGroup& named : kGroups) {
    const ChangeGroup& group = comparison.*named.group;
    if (group.cases.empty()) continue;
    out += std::string(named.name) + " (" + named.meaning +
           "): " + std::to_string(group.cases.size()) + "\n";
    for (const Explanation& one : group.explained_by)
      out += "  distinguished by " + record::printable(one.expression) + ": true for " +
             std::to_string(one.inside) + " of them and " + std::to_string(one.outside) +
             " others\n";
    for (std::size_t i = 0; i < std::min(group.cases.size(), kShownCases); ++i) {
      const CaseChange& one = group.cases[i];
      out += "  " + one.case_id + " " + record::printable(one.name) + ": ";
      if (!one.figure.empty()) out += one.figure + " ";
      out += one.left + " -> " + one.right;
      if (!one.figure.empty()) out += " (x " + shown(one.ratio) + ")";
      out += "\n";
    }
    if (group.cases.size() > kShownCases)
      out +=
          "  and " + std::to_string(group.cases.size() - kShownCases) + " more; --json has all\n";
  }
  if (!comparison.only_left.empty())
    out += "only in the first run: " + std::to_string(comparison.only_left.size()) + " cases\n";
  if (!comparison.only_right.empty())
    out += "only in the second run: " + std::to_string(comparison.only_right.size()) + " cases\n";
  return out;
}

}  // namespace graphproof::reports
