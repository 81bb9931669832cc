// The exit codes of all programs and verbs, and which one is used if several apply.
#pragma once

#include <array>
#include <span>
#include <string_view>

namespace graphproof::record {

/// An exit code.
enum class ExitCode {
  ok = 0,              // all verdicts are acceptable, and coverage is complete
  product = 1,         // the product failed
  usage = 2,           // an error in the command line or a matrix file; nothing ran
  infrastructure = 3,  // only the infrastructure failed
  coverage = 4,        // nothing was selected, or coverage is incomplete
  interrupted = 5,     // the run was interrupted and can be resumed
  own_fault = 6,       // graphproof itself has a defect
};

/// The exit codes in order of precedence: of several, the first one in this list is used.
inline constexpr std::array<ExitCode, 7> kExitPrecedence = {
    ExitCode::own_fault, ExitCode::usage,          ExitCode::interrupted, ExitCode::product,
    ExitCode::coverage,  ExitCode::infrastructure, ExitCode::ok};

constexpr int value(ExitCode code) { return static_cast<int>(code); }

constexpr std::string_view meaning(ExitCode code) {
  constexpr std::array<std::string_view, 7> kMeanings = {
      "all acceptable and coverage held",
      "product failure",
      "usage or matrix error, nothing ran",
      "only infrastructure missing",
      "nothing selected, coverage lost or unexercised",
      "interrupted, resumable",
      "fault of graphproof itself"};
  return kMeanings[static_cast<std::size_t>(code)];
}

/// The one of two exit codes that has precedence.
constexpr ExitCode stronger(ExitCode left, ExitCode right) {
  for (const ExitCode code : kExitPrecedence)
    if (left == code || right == code) return code;
  return ExitCode::own_fault;
}

/// The one of `codes` that has precedence; ok if there are none.
constexpr ExitCode strongest(std::span<const ExitCode> codes) {
  ExitCode result = ExitCode::ok;
  for (const ExitCode code : codes) result = stronger(result, code);
  return result;
}

}  // namespace graphproof::record
