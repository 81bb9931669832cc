// Where each rule is settled: by `check` from a configuration, by a check, a fault or a test of an
// engine, by upstream itself, which ends the rank, or nowhere yet.
#pragma once

#include <nlohmann/json.hpp>

#include <set>
#include <string>

#include "matrix/dialect/dialect.h"

namespace graphproof::dialect {

/// loud: upstream raises, and all that shows it is that the rank leaves no complete evidence
/// (D21.evidence_complete).
enum class Coverage { decided, checked, loud, fact, planned, not_covered };
std::string_view coverage_text(Coverage coverage);

/// `known` are the ids of the checks, detectors and faults that exist; a test (`test Suite.Name`)
/// exists, which a test of the rows holds. planned: only ids that do not exist yet.
Coverage coverage_of(const Rule& rule, const std::set<std::string>& known);

/// One row a rule in the order of the files: rule, dialect, section, stages, status, severity,
/// versions, what, why, next, source, coverage, covered_by (what exists), planned (what does not
/// yet).
nlohmann::json list_upstream_rules(const Dialect& dialect, const std::set<std::string>& known);

}  // namespace graphproof::dialect
