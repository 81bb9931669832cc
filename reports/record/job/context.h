// context.json: what the launcher saw of one attempt. Facts only; what they mean is decided by
// reports/outcome.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "reports/record/job/batch.h"
#include "reports/record/job/heartbeat.h"
#include "reports/record/job/plan.h"
#include "reports/record/text/fields.h"
#include "reports/record/verdict/phase.h"

namespace graphproof::record {

inline constexpr std::string_view kContextSchema = "graphproof-context/1";

/// How a process ended. kind: exited (value is the status), signal (it died by signal `value`),
/// killed (the launcher ended it with signal `value`).
struct Exit {
  std::string kind;
  int value = 0;

  bool operator==(const Exit&) const = default;
};

/// A byte range of the batch's log of one rank; `file` is relative to the run folder.
struct LogRange {
  std::string file;
  std::int64_t begin = 0, end = 0;

  bool operator==(const LogRange&) const = default;
};

struct RankContext {
  int rank = 0;
  std::int64_t pid = 0;        // 0: it never said hello
  bool case_ended = false;     // its heartbeat case_end arrived
  std::optional<Phase> phase;  // last heartbeat; nothing: none for this case
  std::string arm;
  std::int64_t step = 0;
  std::optional<Collective> collective;
  std::int64_t silent_ms =
      0;  // since its last heartbeat of another phase, arm or step, when the case ended
  std::optional<Exit> exit;  // nothing: the process went on to another case
  LogRange log;

  bool operator==(const RankContext&) const = default;
};

struct Hang {
  Phase phase = Phase::validate;  // of the missing rank
  std::int64_t limit_ms = 0;
  int missing_rank = 0;
  std::vector<int> waiting_ranks;
  std::optional<Collective> last_collective;  // of the missing rank
  std::string stacks;  // folder in the attempt folder, "" if none could be taken

  bool operator==(const Hang&) const = default;
};

/// The first rank that died before its case ended; the others are its victims.
struct FirstDead {
  int rank = 0;
  Exit exit;
  std::optional<Phase> phase;

  bool operator==(const FirstDead&) const = default;
};

/// Not the product's doing. kind is the second word of a verdict infra.*.
struct Infra {
  std::string kind;
  std::string why;

  bool operator==(const Infra&) const = default;
};

/// What was still there after the case that was not there before, and is the case's fault. Of ranks
/// that were killed or died, the launcher first removes what they could not remove themselves and
/// lists only what would not go.
struct Cleanup {
  std::vector<std::string> processes;  // "4711 graphproof-rank-sim"
  std::vector<std::string> shm, files;
  std::vector<int> ports;
  struct GpuMemory {
    int gpu = 0;
    std::int64_t bytes = 0;
    bool operator==(const GpuMemory&) const = default;
  };
  std::optional<std::vector<GpuMemory>> gpu_memory;  // nothing: not measured

  bool operator==(const Cleanup&) const = default;
};

struct Context {
  std::string run_id, case_id;
  int attempt = 1;
  std::string batch;
  std::string device;     // sim, cuda
  std::string isolation;  // batch, process
  std::string engine;     // local, mpirun, slurm, slurm-array
  std::string start;      // cold, warm
  int world_size = 1;
  double seconds = 0;
  Limits limits_ms;
  Expect expect;
  nlohmann::json axes;
  std::vector<std::string> required_checks;
  std::string ended;  // finished, killed (a limit passed), died (a rank did), interrupted (by the
                      // user or the budget)
  std::vector<RankContext> ranks;
  std::optional<Hang> hang;
  std::optional<FirstDead> first_dead;
  std::optional<Infra> infra;
  Cleanup cleanup;
  std::string again;  // why this is not the first attempt; "" of a first one

  bool operator==(const Context&) const = default;
};

Json to_json(const Context& context);
Context context_from(const nlohmann::json& value, const std::string& where);

}  // namespace graphproof::record
