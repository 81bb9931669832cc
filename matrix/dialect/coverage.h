// How each upstream rule is covered here: `graphproof check` decides it from a configuration, a
// check, a fault or a test shows it on an engine, upstream itself ends the rank, or nothing does.
#pragma once

#include <nlohmann/json.hpp>

#include <string>

#include "matrix/dialect/dialect.h"

namespace graphproof::dialect {

/// decided: by `graphproof check`. checked: by a check, a fault or a test. loud: upstream raises,
/// which shows only in that the rank leaves no complete evidence (D21.evidence_complete). fact:
/// there is nothing to decide.
enum class Coverage { decided, checked, loud, fact, not_covered };
std::string_view coverage_text(Coverage coverage);

/// The coverage of a rule. What it names (checks, faults, `test Suite.Name`) is taken to exist;
/// tests of the rules hold that it does.
Coverage coverage_of(const Rule& rule);

/// A row for each rule, in the order of the files: rule, dialect, section, stages, status,
/// severity, versions, what, why, next, source, coverage and covered_by.
nlohmann::json list_upstream_rules(const Dialect& dialect);

}  // namespace graphproof::dialect
