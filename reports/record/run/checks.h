// checks.json: what the judge found in an attempt folder. It is also the only way from evidence to
// a verdict, so it carries the facts of the ranks that reports/outcome needs: who finished, who
// refused, who met an error.
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

enum class Result { pass, fail, unexercised, not_applicable };
std::string_view name(Result result);
std::optional<Result> result_from(std::string_view text);

struct CheckResult {
  std::string check;  // D07.static_addresses
  Result result = Result::unexercised;
  std::optional<int> rank;  // the rank that shows it, where one does
  Message message;          // of a pass: what and got are filled, next may be empty

  bool operator==(const CheckResult&) const = default;
};

/// The evidence line `refused` of a rank.
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

/// What one rank's evidence says of its way; one for every rank of the world, also for one that
/// left none.
struct RankEvidence {
  int rank = 0;
  bool complete = false;            // Evidence::complete()
  std::optional<Phase> last_phase;  // nothing: no evidence
  std::optional<Refusal> refused;
  std::optional<RankError> error;

  bool operator==(const RankEvidence&) const = default;
};

struct Checks {
  std::string case_id;
  int attempt = 1;
  std::vector<RankEvidence> ranks;        // by rank, without gaps
  std::map<std::string, double> figures;  // for the record: eager_ms, replay_ms, capture_ms, ...
  std::vector<CheckResult> checks;
  /// Evidence that the planted fault was there and bites nothing on this stack; "" otherwise, and
  /// without a fault.
  std::string harmless_because = {};

  bool operator==(const Checks&) const = default;
};

Json to_json(const CheckResult& result);
CheckResult check_result_from(const Fields& in);
Json to_json(const Checks& checks);
Checks checks_from(const nlohmann::json& value, const std::string& where);

}  // namespace graphproof::record
