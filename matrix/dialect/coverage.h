// Where each rule is settled: by `check` from a configuration, by a check or fault of a run, or nowhere yet.
#pragma once

#include <nlohmann/json.hpp>

#include <set>
#include <string>

#include "matrix/dialect/dialect.h"

namespace graphproof::dialect {

enum class Coverage { decided, checked, fact, planned, not_covered };
std::string_view coverage_text(Coverage coverage);

/// `known` are the ids of the checks, detectors and faults that exist. planned: only ids that do not exist yet.
Coverage coverage_of(const Rule& rule, const std::set<std::string>& known);

/// One row a rule in the order of the files: rule, dialect, section, stages, status, severity, versions, what, why, next,
/// source, coverage, covered_by.
nlohmann::json list_upstream_rules(const Dialect& dialect, const std::set<std::string>& known);

}  // namespace graphproof::dialect
