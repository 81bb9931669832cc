// Planted faults whose prediction a stack may contradict: the fault was there, and what it was
// planted to spoil is in order. Said only with evidence of both, because a fault that was never
// there would look the same.
#pragma once

#include <string>

#include "suites/checks/attempt/attempt.h"

namespace graphproof::checks {

/// Why the attempt's planted fault bites nothing on this stack; "" where it does, where that is not
/// known, and without a fault. One row a fault: harmless.cpp.
std::string harmless_because(const Attempt& attempt);

}  // namespace graphproof::checks
