// How each upstream rule is covered here: `graphproof check` decides it from a configuration, a
// check, a fault or a test shows it on an engine, upstream itself ends the rank, or nothing does
// yet.
#pragma once

#include <nlohmann/json.hpp>

#include <set>
#include <string>

#include "matrix/dialect/dialect.h"

namespace graphproof::dialect {

/// decided: by `graphproof check`. checked: by a check, a detector, a fault or a test. loud:
/// upstream raises, which shows only in that the rank leaves no complete evidence
/// (D21.evidence_complete). fact: there is nothing to decide. planned: by checks or faults that do
/// not exist yet.
enum class Coverage { decided, checked, loud, fact, planned, not_covered };
std::string_view coverage_text(Coverage coverage);

/// The coverage of a rule. `known` has the ids of the checks, detectors and faults that exist.
/// Tests that a rule names (`test Suite.Name`) are taken to exist; a test of the rules holds that
/// they do.
Coverage coverage_of(const Rule& rule, const std::set<std::string>& known);

/// A row for each rule, in the order of the files: rule, dialect, section, stages, status,
/// severity, versions, what, why, next, source, coverage, covered_by (what exists) and planned
/// (what does not exist yet).
nlohmann::json list_upstream_rules(const Dialect& dialect, const std::set<std::string>& known);

}  // namespace graphproof::dialect
