#include "suites/checks/harmless.h"

#include <array>

#include "suites/checks/attempt/concat.h"

namespace graphproof::checks {
namespace {

/// M19: LibTorch 2.11 is expected to keep the pool of a failed capture (pytorch#190348); a later
/// version may not.
std::string failed_captures_left_nothing(const Attempt& attempt) {
  std::size_t captures = 0;
  for (const RankFiles& files : attempt.ranks) {
    const auto failed = files.lines<record::FailedCaptureLine>();
    if (failed.empty()) return "";
    for (const record::FailedCaptureLine& line : failed)
      if (line.code == 0 || line.pool_bytes > 0) return "";
    captures += failed.size();
  }
  return captures == 0
             ? ""
             : concat(captures,
                      " captures failed and were undone, and each left 0 bytes in its pool");
}

/// A fault, and the function that returns why it did no harm, or "" if it did.
struct Row {
  std::string_view fault;
  std::string (*evidence)(const Attempt&);
};
constexpr std::array kRows = {Row{"M19", failed_captures_left_nothing}};

}  // namespace

std::string harmless_because(const Attempt& attempt) {
  for (const Row& row : kRows)
    if (attempt.axes.text("fault") == row.fault) return row.evidence(attempt);
  return "";
}

}  // namespace graphproof::checks
