// Which differences between two runs fail a release: --fail-on of the verb compare.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "reports/analysis/compare.h"

namespace graphproof::reports {

/// A condition under which a comparison fails.
/// - broken: a case that was acceptable fails.
/// - lost: a case that had a verdict has none, or a check that saw something sees nothing.
/// - changed: a case fails in another way.
/// - drift[>CLASS]: a case computes numbers beyond CLASS (default bitwise).
/// - perf>P%, capture>P%: the interval of the step time, or of the time of captures, lies above P
///   per cent over the earlier run.
/// - memory>P%: the graphs of a case hold more than P per cent more memory. Memory is counted, not
///   timed, so one case is enough.
struct Gate {
  std::string text;  // as it was written
  std::string_view kind;
  DriftClass allowed = DriftClass::bitwise;  // for drift
  double percent = 0;                        // for perf, capture and memory
};

/// Reads "broken,perf>3%". Throws matrix::InputError.
std::vector<Gate> parse_gates(const std::string& text);

/// What one gate says.
struct GateResult {
  enum class State { held, failed, not_judged } state = State::held;
  std::string why;  // a sentence; empty if it held
};
GateResult judge(const Gate& gate, const Comparison& comparison);

/// The comparison with what each gate says, and with the exit code of all of them.
nlohmann::json to_json(const Comparison& comparison, const std::vector<Gate>& gates);

/// 1 if a gate failed; otherwise 4 if one could not be judged, because what was not measured is no
/// pass; otherwise 0.
record::ExitCode exit_code(const std::vector<Gate>& gates, const Comparison& comparison);

}  // namespace graphproof::reports
