// The exit codes of every program and verb, and which one wins when several apply.
#pragma once

#include <array>
#include <span>
#include <string_view>

namespace graphproof::record {

enum class ExitCode {
  ok = 0,              // all acceptable and coverage held
  product = 1,         // a product failure
  usage = 2,           // usage or matrix error; nothing ran
  infrastructure = 3,  // only infrastructure missing
  coverage = 4,        // nothing selected, coverage lost, or unexercised
  interrupted = 5,     // interrupted; resumable
  own_fault = 6,       // a fault of graphproof itself
};

/// Strongest first.
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

/// The stronger of two.
constexpr ExitCode stronger(ExitCode left, ExitCode right) {
  for (const ExitCode code : kExitPrecedence)
    if (left == code || right == code) return code;
  return ExitCode::own_fault;
}

/// The strongest of `codes`; ok if there are none.
constexpr ExitCode strongest(std::span<const ExitCode> codes) {
  ExitCode result = ExitCode::ok;
  for (const ExitCode code : codes) result = stronger(result, code);
  return result;
}

}  // namespace graphproof::record
