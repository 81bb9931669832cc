// The ranks of this program, started by graphproof-start or mpirun, and the layouts that they stand
// in one after the other. A layout of fewer ranks than there are leaves the last ones out; they
// wait for the others at the next gather().
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

/// "tp2 pp2", in Megatron's order of ranks, 1F1B where there are stages.
struct LayoutName {
  int tp = 1, dp = 1, pp = 1;

  int ranks() const { return tp * dp * pp; }
  std::string text() const;
};

/// From "tp2dp2", any of tp, dp and pp with its number, each once. std::invalid_argument for
/// anything else.
LayoutName layout_name(const std::string& text);

class Ranks {
 public:
  /// `store`: a fresh folder that all ranks see; not needed by one rank alone. Nothing waits longer
  /// than `limit`. std::invalid_argument for several ranks without a store.
  Ranks(const fixtures::Rank& place, capture::Device& device, const std::string& store,
        comm::Milliseconds limit);

  int size() const { return place_.world_size; }
  int rank() const { return place_.rank; }
  /// Collective: the groups of a layout, and where this rank stands in it. Not a member where
  /// rank() >= name.ranks().
  workloads::Layout use(const LayoutName& name);
  /// Waits until all members of the layout are here and their devices idle.
  void meet(const workloads::Layout& layout);
  /// Collective: what each rank says, by rank.
  std::vector<std::vector<double>> gather(const std::string& purpose,
                                          const std::vector<double>& own);
  /// Collective. REQUIRES: no graph is left.
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
