// The decision that a run ends before every case has its verdict. Several parts of the run loop can
// make it: failures (case_policy.h), time and price (spending.h), an interrupt (interrupts.h).
#pragma once

#include <string>

#include "reports/outcome/run_result.h"

namespace graphproof::launcher {

/// How the run ends, and the notice that tells the user why.
struct RunEnd {
  reports::Ending ending;
  std::string notice;
};

}  // namespace graphproof::launcher
