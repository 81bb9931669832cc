// Every check by name, and the run of all of them over an attempt. The names equal
// matrix/tables/checks.json.
#pragma once

#include <functional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "matrix/catalogue/checks.h"
#include "suites/checks/attempt/judgement.h"

namespace graphproof::checks {

/// A check and its code. The function weighs what it finds in `judgement` and returns its result.
struct Check {
  std::string_view name;
  record::CheckResult (*function)(Judgement& judgement, const Attempt& attempt);
};

/// In the order of the table in matrix/tables/checks.json, from which CMake makes this list: the
/// function of D07.static_addresses is d07::static_addresses (cmake/check_table.cmake).
std::span<const Check> all_checks();

/// Runs one check. A check that the case requires never ends not_applicable: it is then
/// unexercised. A pass states what the table says. `entry` is the check's row.
record::CheckResult run_check(const Check& check, const matrix::CheckEntry& entry,
                              const Attempt& attempt);

/// checks.json of an attempt, in memory: every check but those in `dropped`, which are left out as
/// if nobody had written them. Throws std::invalid_argument for a dropped name that is no check.
record::Checks judge(const Attempt& attempt, const matrix::CheckTable& table,
                     const std::set<std::string>& dropped = {});

}  // namespace graphproof::checks
