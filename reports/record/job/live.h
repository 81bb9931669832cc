// live.json: what a running launcher does now. It is rewritten about once a second. A launcher that
// was killed leaves its last one; the run's lock, not this file, shows whether the launcher is
// alive.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "reports/record/text/fields.h"
#include "reports/record/verdict/phase.h"

namespace graphproof::record {

inline constexpr std::string_view kLiveSchema = "graphproof-live/1";

/// How far a rank of a running case is.
struct LiveRank {
  int rank = 0;
  std::int64_t pid = 0;        // 0 before its first heartbeat
  std::optional<Phase> phase;  // nothing if the case has not begun on this rank
  std::string arm;
  std::int64_t step = 0;
  std::int64_t silent_ms = 0;  // since its last heartbeat

  bool operator==(const LiveRank&) const = default;
};

/// A running case.
struct LiveCase {
  std::string case_id, name;
  int attempt = 1;
  std::string batch;
  std::vector<LiveRank> ranks;

  bool operator==(const LiveCase&) const = default;
};

/// The state of a run.
struct Live {
  std::string run_id;
  std::int64_t pid = 0;
  std::string host;
  std::int64_t updated_ms = 0;  // milliseconds since 1970, UTC
  double elapsed_seconds = 0;
  std::optional<double> remaining_seconds;
  int planned = 0, done = 0, failed = 0;
  std::string stopping;  // why no more cases start, as Summary::ending; "" while cases start
  std::vector<LiveCase> running;

  bool operator==(const Live&) const = default;
};

Json to_json(const Live& live);
Live live_from(const nlohmann::json& value, const std::string& where);

}  // namespace graphproof::record
