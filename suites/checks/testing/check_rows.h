// For tests: one table of changes to a clean attempt for each check. Every row is also a mutation
// test: it lists the other checks that may flip, and any further one is an error.
#pragma once

#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "suites/checks/check_table.h"
#include "suites/checks/testing/clean_attempt.h"

namespace graphproof::checks {

/// A change of the clean attempt, and the result that `check` has then.
struct Row {
  std::string name;
  std::function<void(Attempt&)> change;
  record::Result want = record::Result::fail;
  std::optional<int> rank;            // the rank in the result
  std::vector<std::string> mentions;  // parts of the message, in any of its fields
  std::set<std::string> also = {};    // checks that may flip too; "*": any
};

/// Sets a value in the `config` line of a rank; null removes it. `part` is asked or effective.
std::function<void(Attempt&)> with_setting(std::size_t rank, const char* part, const char* name,
                                           nlohmann::json value);

/// A row in which a rank died before it wrote the first line that `where` selects; the result is
/// unexercised.
Row rank_died(const Where& where);

/// Judges every row against the clean attempt of `axes` on `device`, with evidence of `revision`.
/// The clean attempt must pass `check`, and at least one row must fail `check` and no other check.
void judge_rows(const std::string& check, const nlohmann::json& axes, const std::vector<Row>& rows,
                const std::string& device = "sim",
                std::int64_t revision = record::kEvidenceRevision);

/// The result of `check` after one change of a clean attempt.
record::CheckResult judge_one(const std::string& check, const nlohmann::json& axes,
                              const std::function<void(Attempt&)>& change,
                              const std::string& device = "sim");

}  // namespace graphproof::checks
