// A batch that has been started, wherever its ranks are: on this host (batch_run.h), or on a node
// whose agent reports (cluster/remote_batch.h).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "launcher/batch/batches.h"
#include "reports/record/job/batch.h"
#include "reports/record/job/context.h"
#include "reports/record/job/live.h"

namespace graphproof::launcher {

/// No method waits: step() does what is due. For one thread.
class RunningBatch {
 public:
  virtual ~RunningBatch() = default;

  /// One round. Returns the contexts of the cases that have come to their end.
  virtual std::vector<record::Context> step(std::int64_t now_ms) = 0;
  /// Nothing of the batch runs any more; all contexts have been handed out.
  virtual bool over() const = 0;
  /// The cases that have no context: they did not begin, or were given up with stop(). REQUIRES:
  /// over(), or that begin() was never called.
  virtual std::vector<Attempt> not_done() const = 0;
  /// The processes that even SIGKILL did not end, such as "4711 graphproof-rank-sim". While there
  /// are some, the slots of this batch are not free.
  virtual std::vector<std::string> unkillable() const = 0;

  /// For a prestarted batch: its turn has come, and it may begin as soon as its ranks are ready.
  /// Its slots are its own from now on.
  virtual void begin() = 0;
  /// Prestarted ranks ended, or did not get ready in time. That decides no case: stop() the batch,
  /// and start its cases anew.
  virtual bool prestart_failed() const = 0;

  /// Ends the processes now; the case in progress gets no context.
  virtual void stop(std::int64_t now_ms) = 0;
  /// Lets the ranks end by themselves when the case in progress has ended, or the one that they
  /// begin at this moment. It counts like any other. Ranks that begin yet another are ended.
  virtual void stop_after_case() = 0;

  virtual const record::Batch& batch() const = 0;
  /// The process of this host that started the ranks; 0 where there is none.
  virtual int starter_pid() const = 0;
  /// "CASE_NAME replay", for the live block.
  virtual std::string now_doing() const = 0;
  /// The case in progress, rank by rank: for live.json.
  virtual record::LiveCase live(std::int64_t now_ms) const = 0;
};

}  // namespace graphproof::launcher
