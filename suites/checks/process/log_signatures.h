// The error signatures that a log may hold, as a table: what each line means, and for the test one
// line that it must find and one that it must leave alone.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace graphproof::checks {

/// `literal` is in every line that `pattern` (ECMAScript) matches: it is looked for first, because
/// a regular expression over a large log costs more than the case.
struct LogSignature {
  std::string_view name, literal, pattern, why, example, benign;
};

std::span<const LogSignature> log_signatures();

struct LogHit {
  const LogSignature* signature;
  std::size_t line_number;  // in the slice, from 1
  std::string line;         // shortened
};

/// Every line that some signature finds, in order; a line counts once, for the first signature. At
/// most `limit`.
std::vector<LogHit> scan_log(std::string_view log, std::size_t limit);

}  // namespace graphproof::checks
