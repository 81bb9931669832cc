// A batch that has been started, wherever its ranks are: on this host (batch_run.h), or on a node
// whose agent reports (cluster/remote_batch.h). Never waits: step() does what is due.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "launcher/batch/batches.h"
#include "reports/record/job/batch.h"
#include "reports/record/job/context.h"
#include "reports/record/job/live.h"

namespace graphproof::launcher {

class RunningBatch {
 public:
  virtual ~RunningBatch() = default;

  /// One round. Returns the cases that came to their end.
  virtual std::vector<record::Context> step(std::int64_t now_ms) = 0;
  /// Nothing of the batch runs any more; all contexts have been handed out.
  virtual bool over() const = 0;
  /// REQUIRES: over(), or that begin() was never said. The cases that have no context: not begun,
  /// or given up with stop().
  virtual std::vector<Attempt> not_done() const = 0;
  /// "4711 graphproof-rank-sim": what even SIGKILL did not end. The slots of this batch are not
  /// free.
  virtual std::vector<std::string> unkillable() const = 0;

  /// Of a batch that was started ahead of its turn: it may begin as soon as its ranks are ready,
  /// its slots are its own.
  virtual void begin() = 0;
  /// Ranks started ahead that ended, or did not get ready in time. That is no verdict: stop() it,
  /// and start the cases anew.
  virtual bool prestart_failed() const = 0;

  /// Ends the processes now; the case in progress gets no context.
  virtual void stop(std::int64_t now_ms) = 0;
  /// Ends the processes when the case in progress has ended; one that the ranks begin meanwhile is
  /// given up.
  virtual void stop_after_case() = 0;

  virtual const record::Batch& batch() const = 0;
  /// Of this host; 0 where there is none.
  virtual int starter_pid() const = 0;
  /// "CASE_NAME replay 3": for the progress line.
  virtual std::string now_doing() const = 0;
  /// The case in progress, rank by rank: for live.json.
  virtual record::LiveCase live(std::int64_t now_ms) const = 0;
};

}  // namespace graphproof::launcher
