// The table of error signatures that are searched for in logs.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace graphproof::checks {

/// An error signature. Every line that `pattern` (ECMAScript) matches contains `literal`, which is
/// searched for first, because matching a regular expression against a large log takes longer than
/// the case. `why` is what such a line means. The test uses `example`, which must match, and
/// `benign`, which must not.
struct LogSignature {
  std::string_view name, literal, pattern, why, example, benign;
};

std::span<const LogSignature> log_signatures();

/// A line that matches a signature.
struct LogHit {
  const LogSignature* signature;
  std::size_t line_number;  // from 1, in the rank's part of the log
  std::string line;         // shortened
};

/// The first `limit` lines that match a signature, in order. A line is reported once, for the first
/// signature in the table that it matches.
std::vector<LogHit> scan_log(std::string_view log, std::size_t limit);

}  // namespace graphproof::checks
