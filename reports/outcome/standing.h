// What a record says about its case when runs are put side by side: it was acceptable, it failed,
// or nothing was shown.
#pragma once

#include "reports/record/run/record.h"

namespace graphproof::reports {

enum class Standing { acceptable, failed, not_shown };

/// Skipped, not run, let down by infrastructure and unexercised cases show nothing.
Standing standing(const record::Record& record);

}  // namespace graphproof::reports
