// Heartbeats: a rank writes JSON lines to a FIFO of its node to show how far it is. A line is
// shorter than PIPE_BUF, so that lines of several ranks never mix.
#pragma once

#include <climits>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "reports/record/job/collective_progress.h"
#include "reports/record/text/fields.h"
#include "reports/record/verdict/phase.h"

namespace graphproof::record {

inline constexpr std::string_view kHeartbeatSchema = "graphproof-heartbeat/1";

/// A heartbeat. Its event determines which members are set.
struct Heartbeat {
  std::string event;  // hello, ready (if started ahead), case_begin, phase, progress, case_end, bye
  int rank = 0;
  std::int64_t pid = 0;
  std::int64_t t_ms = 0;  // the rank's monotonic clock
  // Members of events about a case:
  std::string case_id;
  int attempt = 0;
  /// The length of the rank's log at this moment, for case_begin and case_end.
  std::optional<std::int64_t> log_bytes;
  // Members of the event phase:
  std::optional<Phase> phase;
  std::string arm;
  std::int64_t step = 0;
  std::optional<Collective> collective;
  // A member of the event progress, which says nothing about phase, arm and step:
  CollectiveProgress progress;

  bool operator==(const Heartbeat&) const = default;
};

Json to_json(const Heartbeat& heartbeat);
/// The line with its newline. Throws WriteError if it would not be shorter than PIPE_BUF.
std::string to_line(const Heartbeat& heartbeat);
/// Throws ReadError if the line is not a heartbeat. Messages name the FIFO `where`.
Heartbeat heartbeat_from(std::string_view line, const std::string& where);

}  // namespace graphproof::record
