// The plan: one line per case (reports/record/schema/examples/plan.jsonl) with everything that the launcher needs to
// run it and the reports need to judge it. Pure: the same file, machine and catalogue give the same plan.
#pragma once

#include <nlohmann/json.hpp>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "matrix/covering.h"
#include "matrix/expand.h"

namespace graphproof::matrix {

struct Plan {
  std::string profile;
  std::int64_t seed = 1;
  std::int64_t budget_ms = 0;                  // 0: none
  std::string matrix_source, matrix_sha256;
  int axes_version = 0;
  std::vector<nlohmann::json> lines;           // in running order as planned; skipped ones included
  std::int64_t raw = 0, valid = 0, filtered = 0, negative = 0, faults = 0;
  std::vector<Removed> removed;
  std::map<std::string, std::int64_t> skipped; // verdict -> lines
  std::vector<std::string> unknown_rules, not_isolated;
  std::optional<Covering> covering;            // of a profile with `cover`; its rows are in `lines`

  /// GPUs times expected time of what is to run.
  double gpu_minutes() const;

  /// The counts, for `plan` and run.json.
  nlohmann::json summary() const;
};

/// `where`: a further filter from the command line; when it leaves nothing, the plan has no lines (exit code 4). Throws
/// InputError: unknown profile, no valid row (naming the rules that removed them), a part of the language that this
/// version can't carry out.
Plan make_plan(const MatrixFile& file, const Catalogue& catalogue, std::string_view profile, const Machine& machine,
               const std::optional<Expression>& where);

/// The line of one case that is not part of a profile (`case`, `repro`).
nlohmann::json plan_case(const Catalogue& catalogue, const Case& test_case, const Machine& machine, std::string why);

/// Cases with the same key may share processes: world size, device, isolation, limits and every environment variable
/// read at process start. A planted fault has a key of its own; so has a case with isolation process.
std::string batch_key(const nlohmann::json& plan_line, std::string_view device);

/// The environment variables that a case's axes set in its ranks.
std::map<std::string, std::string> case_environment(const AxisTable& axes, const Case& test_case);

}  // namespace graphproof::matrix
