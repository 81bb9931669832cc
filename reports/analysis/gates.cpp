#include "reports/analysis/gates.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <span>

#include "matrix/input/input_error.h"
#include "reports/record/text/printable.h"

namespace graphproof::reports {
namespace {

using State = GateResult::State;
using Judge = GateResult (*)(const Gate&, const Comparison&);

/// What may follow the name of a gate.
enum class Limit { none, drift_class, percent };

GateResult failed(std::string why) { return {State::failed, std::move(why)}; }

GateResult no_cases(const ChangeGroup& group, const char* what) {
  if (group.cases.empty()) return {};
  return failed("cases " + std::string(what) + ": " + std::to_string(group.cases.size()) +
                ", first " + group.cases.front().name);
}

GateResult broken(const Gate&, const Comparison& all) {
  return no_cases(all.broke, "acceptable before and failing now");
}
GateResult changed(const Gate&, const Comparison& all) {
  return no_cases(all.changed, "with another failure than before");
}
GateResult lost(const Gate&, const Comparison& all) {
  if (!all.lost.cases.empty()) return no_cases(all.lost, "with a verdict before and none now");
  const int before = all.covered_left.checks_unexercised,
            now = all.covered_right.checks_unexercised;
  if (now > before)
    return failed("checks that found nothing to look at: " + std::to_string(now) + ", before " +
                  std::to_string(before));
  return {};
}

GateResult drifted(const Gate& gate, const Comparison& all) {
  if (!all.no_drift.empty())
    return {State::not_judged, "numbers are not compared: " + all.no_drift};
  const auto beyond = std::count_if(all.drift.begin(), all.drift.end(), [&](const CaseDrift& one) {
    return one.drift.drift_class > gate.allowed;
  });
  if (beyond == 0) return {};
  const CaseDrift& worst = all.drift.front();
  return failed("cases with other numbers: " + std::to_string(beyond) + ", worst " + worst.name +
                ": " + worst.drift.what);
}

std::string per_cent(double ratio) { return record::fixed(100 * (ratio - 1), 1) + " %"; }

/// The changes of the figures with these names.
std::vector<const FigureChange*> figures(const Comparison& all,
                                         std::span<const std::string_view> names) {
  std::vector<const FigureChange*> found;
  for (const FigureChange& one : all.figures)
    if (std::find(names.begin(), names.end(), one.figure) != names.end()) found.push_back(&one);
  return found;
}

GateResult slower(const Gate& gate, const Comparison& all,
                  std::span<const std::string_view> names) {
  if (!all.no_figures.empty())
    return {State::not_judged, "times are not compared: " + all.no_figures};
  GateResult result{State::not_judged, "no time was measured in both runs"};
  for (const FigureChange* one : figures(all, names)) {
    if (!one->interval) {
      if (result.state == State::not_judged)
        result.why = "only " + std::to_string(one->pairs) + " cases have " + one->figure +
                     " in both runs, " + std::to_string(kFewestPairs) + " are needed";
      continue;
    }
    if (one->interval->low > 1 + gate.percent / 100)
      return failed(one->figure + " is " + per_cent(one->ratio) + " higher over " +
                    std::to_string(one->pairs) + " cases (95 % interval " +
                    per_cent(one->interval->low) + " to " + per_cent(one->interval->high) + ")");
    result = {};
  }
  return result;
}

GateResult perf(const Gate& gate, const Comparison& all) {
  constexpr std::array<std::string_view, 2> kNames = {"graph_step_ms", "replay_ms"};
  return slower(gate, all, kNames);
}
GateResult capture(const Gate& gate, const Comparison& all) {
  constexpr std::array<std::string_view, 1> kNames = {"capture_ms"};
  return slower(gate, all, kNames);
}

GateResult memory(const Gate& gate, const Comparison& all) {
  constexpr std::array<std::string_view, 2> kNames = {"pool_bytes", "extra_memory_bytes"};
  if (!all.no_figures.empty())
    return {State::not_judged, "memory is not compared: " + all.no_figures};
  const auto found = figures(all, kNames);
  if (found.empty()) return {State::not_judged, "no memory was measured in both runs"};
  for (const FigureChange* one : found)
    if (one->largest > 1 + gate.percent / 100)
      return failed(one->figure + " is " + per_cent(one->largest) + " higher in " +
                    one->largest_case);
  return {};
}

struct Kind {
  std::string_view name;
  Limit limit;
  Judge judge;
};
constexpr std::array<Kind, 7> kKinds = {{{"broken", Limit::none, broken},
                                         {"lost", Limit::none, lost},
                                         {"changed", Limit::none, changed},
                                         {"drift", Limit::drift_class, drifted},
                                         {"perf", Limit::percent, perf},
                                         {"capture", Limit::percent, capture},
                                         {"memory", Limit::percent, memory}}};

[[noreturn]] void refuse(const std::string& text, const std::string& want) {
  throw matrix::InputError({"--fail-on has a condition that can't be read", "`" + text + "`", want,
                            "a gate that is misread would let a run pass",
                            "for example --fail-on broken,perf>3%,memory>5%"});
}

Gate parse_gate(const std::string& text) {
  const std::size_t sign = text.find('>');
  const std::string word = text.substr(0, sign);
  const auto kind =
      std::find_if(kKinds.begin(), kKinds.end(), [&](const Kind& one) { return one.name == word; });
  if (kind == kKinds.end())
    refuse(text, "broken, lost, changed, drift, perf>P%, capture>P% or memory>P%");
  Gate gate{.text = text, .kind = kind->name};
  const std::string limit = sign == std::string::npos ? "" : text.substr(sign + 1);
  if (kind->limit == Limit::none && sign != std::string::npos)
    refuse(text, word + " without a limit");
  if (kind->limit == Limit::drift_class && sign != std::string::npos) {
    for (const DriftClass one : {DriftClass::bitwise, DriftClass::ulp, DriftClass::tolerance})
      if (name(one) == limit) {
        gate.allowed = one;
        return gate;
      }
    refuse(text, "drift>bitwise, drift>ulp or drift>tolerance");
  }
  if (kind->limit == Limit::percent) {
    const char* end = limit.data() + limit.size();
    const auto read = std::from_chars(limit.data(), end, gate.percent);
    if (read.ec != std::errc() || read.ptr + 1 != end || *read.ptr != '%' || gate.percent < 0)
      refuse(text, word + ">P% with a number P, such as " + word + ">3%");
  }
  return gate;
}

}  // namespace

std::vector<Gate> parse_gates(const std::string& text) {
  std::vector<Gate> gates;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    gates.push_back(parse_gate(text.substr(begin, end - begin)));
    begin = end + 1;
  }
  return gates;
}

GateResult judge(const Gate& gate, const Comparison& comparison) {
  const auto kind = std::find_if(kKinds.begin(), kKinds.end(),
                                 [&](const Kind& one) { return one.name == gate.kind; });
  return kind->judge(gate, comparison);
}

nlohmann::json to_json(const Comparison& comparison, const std::vector<Gate>& gates) {
  constexpr const char* kStates[] = {"held", "failed", "not_judged"};
  nlohmann::json value = to_json(comparison);
  value["gates"] = nlohmann::json::array();
  for (const Gate& gate : gates) {
    const GateResult result = judge(gate, comparison);
    value["gates"].push_back({{"gate", gate.text},
                              {"state", kStates[static_cast<int>(result.state)]},
                              {"why", result.why}});
  }
  if (!gates.empty()) value["exit_code"] = record::value(exit_code(gates, comparison));
  return value;
}

record::ExitCode exit_code(const std::vector<Gate>& gates, const Comparison& comparison) {
  using record::ExitCode;
  ExitCode code = comparison.compared == 0 ? ExitCode::coverage : ExitCode::ok;
  for (const Gate& gate : gates) {
    const State state = judge(gate, comparison).state;
    if (state == State::failed) code = record::stronger(code, ExitCode::product);
    if (state == State::not_judged) code = record::stronger(code, ExitCode::coverage);
  }
  return code;
}

}  // namespace graphproof::reports
