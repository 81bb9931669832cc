// Ends a rank in the middle of a case, as an exit handler, a signal or an out-of-memory killer
// would, to test the launcher, the judge and the verdict. The axis value
// env.GRAPHPROOF_EXIT=PHASE,RANK asks for it, so it is part of the case's name and cannot be left
// on unnoticed.
#pragma once

#include <optional>
#include <string_view>

#include "reports/record/verdict/phase.h"

namespace graphproof::suites {

inline constexpr const char* kEarlyExitVariable = "GRAPHPROOF_EXIT";

/// The phase in which `rank` must end. `text` is the value of the variable. Nothing if it is empty
/// or "unset" or names another rank. record::Error if it is not PHASE,RANK.
std::optional<record::Phase> early_exit(std::string_view text, int rank);

}  // namespace graphproof::suites
