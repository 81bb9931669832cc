// The ranks of this program, which graphproof-start or mpirun has started, and the layouts that
// they form one after another. A layout with fewer ranks leaves out the last ones, which wait for
// the others at the next gather().
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "fixtures/comm/process_groups.h"
#include "fixtures/comm/transport/world.h"
#include "fixtures/device/device.h"
#include "fixtures/process/rank.h"
#include "fixtures/process/store.h"
#include "workloads/config/model_config.h"

namespace graphproof::speed {

/// A layout in Megatron-LM's order of ranks, with the 1F1B schedule if it has stages; text() is
/// "tp2 pp2".
struct LayoutName {
  int tp = 1, dp = 1, pp = 1;

  int ranks() const { return tp * dp * pp; }
  std::string text() const;
};

/// Parses text such as "tp2dp2": any of tp, dp and pp followed by a number, each at most once.
/// Throws std::invalid_argument for anything else.
LayoutName layout_name(const std::string& text);

/// This rank and its connections to the others. Used by one thread.
class Ranks {
 public:
  /// `store` is a new folder that all ranks see; a single rank needs none. Nothing waits longer
  /// than `limit`. Throws std::invalid_argument for several ranks without a store.
  Ranks(const fixtures::Rank& place, capture::Device& device, const std::string& store,
        comm::Milliseconds limit);

  int size() const { return place_.world_size; }
  int rank() const { return place_.rank; }
  /// Collective. Makes the groups of a layout and returns this rank's place in it. The ranks from
  /// name.ranks() on are not members.
  workloads::Layout use(const LayoutName& name);
  /// Waits until all members of the layout have called it and their devices are idle.
  void meet(const workloads::Layout& layout);
  /// Collective. Returns the values of all ranks, by rank.
  std::vector<std::vector<double>> gather(const std::string& purpose,
                                          const std::vector<double>& own);
  /// Collective; ends the communication. REQUIRES: no graph exists any more.
  void finish();

 private:
  fixtures::Rank place_;
  capture::Device& device_;
  comm::Milliseconds limit_;
  std::unique_ptr<fixtures::FileStore> store_;
  std::unique_ptr<comm::World> world_;
  std::unique_ptr<comm::ProcessGroups> groups_;
};

}  // namespace graphproof::speed
