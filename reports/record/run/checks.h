// checks.json: what the judge found in the evidence of one attempt. A verdict depends on evidence
// only by way of this file, so it also has the facts about ranks that reports/outcome needs: which
// ranks finished, refused the case, or had an error.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "reports/record/text/fields.h"
#include "reports/record/text/message.h"
#include "reports/record/verdict/phase.h"

namespace graphproof::record {

inline constexpr std::string_view kChecksSchema = "graphproof-checks/1";

/// The result of a check.
enum class Result { pass, fail, unexercised, not_applicable };
std::string_view name(Result result);
std::optional<Result> result_from(std::string_view text);

/// One check of an attempt.
struct CheckResult {
  std::string check;  // for example D07.static_addresses
  Result result = Result::unexercised;
  std::optional<int> rank;  // the rank that shows the failure, if one does
  Message message;          // after a pass only what and got are set

  bool operator==(const CheckResult&) const = default;
};

/// The evidence line `refused`: why a rank refused the case.
struct Refusal {
  std::string rule;
  Phase phase = Phase::validate;
  bool device_initialised = false;
  Message message;

  bool operator==(const Refusal&) const = default;
};

/// The first evidence line `error` of a rank.
struct RankError {
  Phase phase = Phase::validate;
  std::string arm;
  std::string type;  // cuda, nccl, mpi, exception
  std::int64_t code = 0;
  std::string call, message;

  bool operator==(const RankError&) const = default;
};

/// How far one rank came, by its evidence. Every rank has one, also a rank without evidence.
struct RankEvidence {
  int rank = 0;
  bool complete = false;            // whether the evidence has its last line
  std::optional<Phase> last_phase;  // nothing without evidence
  std::optional<Refusal> refused;
  std::optional<RankError> error;

  bool operator==(const RankEvidence&) const = default;
};

/// Everything that the judge found in one attempt.
struct Checks {
  std::string case_id;
  int attempt = 1;
  std::vector<RankEvidence> ranks;        // by rank, without gaps
  std::map<std::string, double> figures;  // measurements: eager_ms, replay_ms, capture_ms, ...
  std::vector<CheckResult> checks;
  /// Why the planted fault, which was present, has no effect with this software stack; ""
  /// otherwise, and without a fault.
  std::string harmless_because = {};

  bool operator==(const Checks&) const = default;
};

Json to_json(const CheckResult& result);
CheckResult check_result_from(const Fields& in);
Json to_json(const Checks& checks);
Checks checks_from(const nlohmann::json& value, const std::string& where);

/// The result of every check in the text of a checks.json, and nothing else of it: for a run of ten
/// thousand cases, whose messages are long. A text that it does not understand is read with
/// checks_from(), which throws ReadError with the place of the mistake.
std::map<std::string, Result> check_results_from(std::string_view text, const std::string& where);

}  // namespace graphproof::record
