// A rank that ends in the middle of a case, as an exit handler, a signal or an out-of-memory killer
// ends it: asked for by the axis value env.GRAPHPROOF_EXIT=PHASE,RANK, so that it is part of the
// case's name and can't be left on unseen. What the launcher, the judge and the verdict make of it
// is what is under test.
#pragma once

#include <optional>
#include <string_view>

#include "reports/record/verdict/phase.h"

namespace graphproof::suites {

inline constexpr const char* kEarlyExitVariable = "GRAPHPROOF_EXIT";

/// The phase in which `rank` has to end; nothing where `text` (the variable's value) is empty or
/// "unset" or means another rank. record::Error for a text that is no PHASE,RANK.
std::optional<record::Phase> early_exit(std::string_view text, int rank);

}  // namespace graphproof::suites
