// context.json: the facts that the launcher observed about one attempt. reports/outcome decides
// what they mean.
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

/// How a process ended. `kind` is exited (`value` is the status), signal (it died from signal
/// `value`) or killed (the launcher ended it with signal `value`).
struct Exit {
  std::string kind;
  int value = 0;

  bool operator==(const Exit&) const = default;
};

/// A range of bytes of a rank's log, which is a log of the batch. `file` is relative to the run
/// folder.
struct LogRange {
  std::string file;
  std::int64_t begin = 0, end = 0;

  bool operator==(const LogRange&) const = default;
};

/// One rank's part in the attempt.
struct RankContext {
  int rank = 0;
  std::int64_t pid = 0;        // 0 if its heartbeat hello never came
  bool case_ended = false;     // whether its heartbeat case_end came
  std::optional<Phase> phase;  // of its last heartbeat for this case; nothing if there was none
  std::string arm;
  std::int64_t step = 0;
  std::optional<Collective> collective;
  /// What its device had counted last; nothing if it reported no progress.
  std::optional<CollectiveProgress> progress;
  /// At the end of the case: the time since its phase, arm or step last changed.
  std::int64_t silent_ms = 0;
  std::optional<Exit> exit;  // nothing if the process continued with another case
  LogRange log;

  bool operator==(const RankContext&) const = default;
};

/// A rank that was silent for longer than its limit, and the ranks that waited for it.
struct Hang {
  Phase phase = Phase::validate;  // of the missing rank
  std::int64_t limit_ms = 0;
  int missing_rank = 0;
  std::vector<int> waiting_ranks;
  std::optional<Collective> last_collective;  // that the host of the missing rank issued
  std::string stacks;  // the folder with stack traces in the attempt folder; "" without any
  /// How long it was silent until then, and whether it went on while its stack was taken; nothing
  /// in older records.
  std::optional<std::int64_t> silent_ms;
  std::optional<bool> went_on;

  bool operator==(const Hang&) const = default;
};

/// The first rank that died before its case ended. The deaths of other ranks follow from it.
struct FirstDead {
  int rank = 0;
  Exit exit;
  std::optional<Phase> phase;

  bool operator==(const FirstDead&) const = default;
};

/// A failure of the infrastructure. `kind` is the second word of a verdict infra.*.
struct Infra {
  std::string kind;
  std::string why;

  bool operator==(const Infra&) const = default;
};

/// What the case left behind. After ranks that died or were killed, the launcher first removes what
/// they could not remove themselves, and this lists only what could not be removed.
struct Cleanup {
  std::vector<std::string> processes;  // "4711 graphproof-rank-sim"
  std::vector<std::string> shm, files;
  std::vector<int> ports;
  /// Memory that is still allocated on a GPU.
  struct GpuMemory {
    int gpu = 0;
    std::int64_t bytes = 0;
    bool operator==(const GpuMemory&) const = default;
  };
  std::optional<std::vector<GpuMemory>> gpu_memory;  // nothing if it was not measured

  bool operator==(const Cleanup&) const = default;
};

/// All facts about one attempt.
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
  /// finished, killed (a limit was exceeded), died (a rank did), interrupted (by the user or the
  /// budget).
  std::string ended;
  std::vector<RankContext> ranks;
  std::optional<Hang> hang;
  std::optional<FirstDead> first_dead;
  std::optional<Infra> infra;
  Cleanup cleanup;
  std::string again;  // why this is not the first attempt; "" for a first one

  bool operator==(const Context&) const = default;
};

Json to_json(const Context& context);
Context context_from(const nlohmann::json& value, const std::string& where);

}  // namespace graphproof::record
