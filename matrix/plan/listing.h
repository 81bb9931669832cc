// What the verbs `list` and `explain` show, as JSON: the tables, and the result of every rule for a
// case.
#pragma once

#include <nlohmann/json.hpp>

#include <string_view>

#include "matrix/catalogue/catalogue.h"

namespace graphproof::matrix {

nlohmann::json list_axes(const Catalogue& catalogue);  // name, type, values, default, meaning, unit
nlohmann::json list_profiles(
    const Catalogue& catalogue);  // profile, meaning, cases (as planned on 4 sim slots)
nlohmann::json list_rules(
    const Catalogue& catalogue);  // id, stage, status, severity, what, when, require, why, ...
nlohmann::json list_checks(
    const Catalogue& catalogue);  // check, detector, states, verdict, required_when, devices
nlohmann::json list_faults(
    const Catalogue& catalogue);  // fault, title, detector, isolation, devices, axes, signature

/// {id, name, axes (effective), ranks, rules: [{rule, result: holds|breaks|unknown|not_applicable,
/// ...finding}],
///  refusal: rule or null, missing: [capabilities], required_checks, fault}
nlohmann::json explain(const Catalogue& catalogue, const Case& test_case, const Machine& machine);

}  // namespace graphproof::matrix
