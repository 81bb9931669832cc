// Every kind of evidence line. A new kind is a struct in one of these files, with the evidence
// revision that it starts (`static constexpr std::int64_t kSince`), and a place in the list at the
// end of that file.
#pragma once

#include "reports/record/evidence/lines/case_lines.h"
#include "reports/record/evidence/lines/graph_lines.h"
#include "reports/record/evidence/lines/resource_lines.h"
#include "reports/record/evidence/lines/step_lines.h"

namespace graphproof::record {

using LineKinds = Joined<CaseKinds, StepKinds, GraphKinds, ResourceKinds>::Type;

}  // namespace graphproof::record
