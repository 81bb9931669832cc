// One sign of life of a rank: a JSON line into the node-local FIFO. A line is shorter than
// PIPE_BUF, so that lines of several ranks never mix.
#pragma once

#include <climits>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "reports/record/text/fields.h"
#include "reports/record/verdict/phase.h"

namespace graphproof::record {

inline constexpr std::string_view kHeartbeatSchema = "graphproof-heartbeat/1";

/// The last collective that a rank issued; sequence counts from 1 within a case.
struct Collective {
  std::int64_t sequence = 0;
  std::string op;
  std::string group;

  bool operator==(const Collective&) const = default;
};
Json to_json(const Collective& collective);
Collective collective_from(const Fields& in);

struct Heartbeat {
  std::string event;  // hello, ready (of a warm start), case_begin, phase, case_end, bye
  int rank = 0;
  std::int64_t pid = 0;
  std::int64_t t_ms = 0;  // the rank's monotonic clock
  // hello, ready and bye have none of the following.
  std::string case_id;
  int attempt = 0;
  std::optional<std::int64_t>
      log_bytes;  // case_begin, case_end: length of the rank's log at that moment
  // event phase only:
  std::optional<Phase> phase;
  std::string arm;
  std::int64_t step = 0;
  std::optional<Collective> collective;

  bool operator==(const Heartbeat&) const = default;
};

Json to_json(const Heartbeat& heartbeat);
/// With its newline. Throws WriteError if the line would not be shorter than PIPE_BUF.
std::string to_line(const Heartbeat& heartbeat);
/// ReadError if it is not a heartbeat. `where` names the FIFO.
Heartbeat heartbeat_from(std::string_view line, const std::string& where);

}  // namespace graphproof::record
