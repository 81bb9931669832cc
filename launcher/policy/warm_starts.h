// The batches whose ranks were started before their turn: which of them wait, which were given up
// and still end. Without IO of its own: it steps and stops the batches that it is given.
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "launcher/batch/running_batch.h"

namespace graphproof::launcher {

/// The prestarted batches of one run.
class WarmStarts {
 public:
  using Batch = std::shared_ptr<RunningBatch>;

  /// `enabled`: whether ranks may be started before their turn at all.
  explicit WarmStarts(bool enabled) : enabled_(enabled) {}

  bool enabled() const { return enabled_; }
  /// From now on no ranks are started before their turn: a start that went wrong would go wrong
  /// again and again.
  void disable() { enabled_ = false; }

  /// A batch that was prestarted and waits.
  void add(const std::string& name, Batch batch);
  /// Its turn has come: it is handed over. Null if it was not prestarted.
  Batch take(const std::string& name);
  /// Ends the batch. It is kept until its processes are gone.
  void give_up(Batch batch, std::int64_t now_ms);
  void give_up_all(std::int64_t now_ms);

  /// One round of all batches. Gives up those that wait and are over, because their node was lost,
  /// or that `has_place` no longer places. Returns their names and the batches: their cases have to
  /// start anew under another name, because the folders are in use until the processes are gone.
  std::vector<std::pair<std::string, Batch>> step(
      std::int64_t now_ms, const std::function<bool(const std::string& name)>& has_place);

  /// No batch that was given up still ends.
  bool idle() const { return given_up_.empty(); }
  /// The processes of this host that started the ranks of these batches.
  std::vector<int> starter_pids() const;
  /// Gives up all, and hands over what still ends.
  std::list<Batch> end_all(std::int64_t now_ms);
  /// Forgets all batches: their processes are ended by other means.
  void clear();

 private:
  bool enabled_;
  std::map<std::string, Batch> waiting_;  // by name
  std::list<Batch> given_up_;
};

}  // namespace graphproof::launcher
