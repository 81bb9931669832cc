// Which ended cases of a batch may be handed out while its ranks go on, and what each has left
// behind. What is found between two cases may be on its way out, so it is given a moment; the cases
// wait for that.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "launcher/host/leftovers.h"
#include "reports/record/job/context.h"

namespace graphproof::launcher {

/// The ended cases of one batch.
class BetweenCases {
 public:
  // Looking costs milliseconds; cases that are shorter than this share one look.
  static constexpr std::int64_t kLook_ms = 100;
  // What is seen between two cases is given this long to go by itself.
  static constexpr std::int64_t kGrace_ms = 1000;

  /// `leftovers` must outlive it.
  explicit BetweenCases(Leftovers& leftovers) : leftovers_(leftovers) {}

  /// A case that may be handed out, and what it has left behind.
  struct Finished {
    std::size_t case_index = 0;
    record::Cleanup left;
  };
  /// One round while the ranks live. `ended`: the cases that every rank has ended and that were not
  /// handed out, in the order in which they were begun. `rank_pids`: the living ranks.
  std::vector<Finished> step(const std::vector<std::size_t>& ended,
                             const std::vector<int>& rank_pids, std::int64_t now_ms);
  /// The same once the ranks are gone. Nothing that is there now tells which case left it, so only
  /// what was found before counts. `left_behind`: processes that outlived the starter.
  std::vector<Finished> finish(const std::vector<std::size_t>& ended,
                               const std::vector<std::string>& left_behind);

 private:
  /// What was found after a case, and is given time to go.
  struct Suspicion {
    std::size_t case_index = 0;  // the last that had ended
    std::int64_t since_ms = 0;
    record::Cleanup found;
  };
  Leftovers& leftovers_;
  std::optional<Suspicion> suspicion_;
  std::int64_t looked_ms_ = 0;
};

}  // namespace graphproof::launcher
