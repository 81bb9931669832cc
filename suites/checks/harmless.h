// Injected faults that a version of CUDA, NCCL or LibTorch may tolerate: the fault was there, and
// what it should have damaged is in order. This is reported only with evidence of both, because a
// case in which the fault was never injected looks the same.
#pragma once

#include <string>

#include "suites/checks/attempt/attempt.h"

namespace graphproof::checks {

/// Why the attempt's fault damages nothing with these versions. "" if it does, if that is not
/// known, and without a fault. harmless.cpp has a table with one row for each such fault.
std::string harmless_because(const Attempt& attempt);

}  // namespace graphproof::checks
