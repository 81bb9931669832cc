// The list of all checks, and how they are run over an attempt.
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

/// A check and its code. The function collects what it finds in `judgement` and returns its result.
struct Check {
  std::string_view name;
  record::CheckResult (*function)(Judgement& judgement, const Attempt& attempt);
};

/// The checks in the order of matrix/tables/checks.json, from which CMake generates this list: the
/// function of D07.static_addresses is d07::static_addresses (cmake/checks.cmake).
std::span<const Check> all_checks();

/// Runs one check; `entry` is its row of the table. A check that the case requires ends unexercised
/// where it would end not_applicable. The message of a pass is the statement in the table.
record::CheckResult run_check(const Check& check, const matrix::CheckEntry& entry,
                              const Attempt& attempt);

/// The content of an attempt's checks.json: the results of all checks but those in `dropped`, which
/// are left out as if they did not exist. Throws std::invalid_argument if a name in `dropped` is no
/// check.
record::Checks judge(const Attempt& attempt, const matrix::CheckTable& table,
                     const std::set<std::string>& dropped = {});

}  // namespace graphproof::checks
