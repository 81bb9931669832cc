// The device of a rank as the engine of one arm sees it. It counts captures and graph launches, so
// that the evidence of a replay does not depend on the engine's own counts.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "fixtures/device/forwarding.h"

namespace graphproof::suites {

/// What the engine of an arm did with graphs.
struct GraphCounts {
  std::int64_t captures_begun = 0;
  std::int64_t captures_ended = 0;                                  // successfully
  capture::CaptureMode mode = capture::CaptureMode::thread_local_;  // of the latest capture
  std::int64_t replays = 0;           // launches that the graphs themselves counted
  std::int64_t delayed_branches = 0;  // of all graphs captured
  std::set<std::pair<std::uint64_t, std::uint64_t>> pools;  // that captures went into
  std::set<const void*> generators;                         // that were registered with a graph
  std::int64_t alive = 0, most_alive = 0;  // graphs that hold a capture, now and at most
  /// Updates of executable graphs (Graph::update): those that the device accepted, and the others
  /// by reason.
  std::int64_t updates = 0;
  std::map<std::string, std::int64_t> refused;
  std::int64_t given_up_in_flight = 0;  // executable graphs that were updated, see ExecUpdate
  std::int64_t kept_clusters = 0;       // accepted updates with any, see ExecUpdate
  /// Launches of a graph whose executable graph still had the work of an earlier one.
  std::int64_t stale_launches = 0;
  bool keep_nodes = false;
  std::shared_ptr<const capture::NodeList> nodes;  // of the latest capture; null if not kept
  bool watch_operands = false;
  std::optional<capture::Operands>
      operands;  // of the launches since take_operands(), each inspected just before it
};

/// Passes every call on to `device`, which outlives it; graphs may outlive it.
class WatchedDevice final : public capture::ForwardingDevice {
 public:
  explicit WatchedDevice(capture::Device& device);

  const GraphCounts& counts() const { return *counts_; }
  /// From now on the operands of each graph are inspected before every launch.
  void watch_operands() { counts_->watch_operands = true; }
  /// From now on the nodes of each captured graph are read.
  void keep_nodes() { counts_->keep_nodes = true; }
  std::optional<capture::Operands> take_operands() {
    return std::exchange(counts_->operands, std::nullopt);
  }
  std::unique_ptr<capture::Graph> make_graph() override;
  /// Forgets the pools and generators of graphs that are gone, so that a job that captures again
  /// and again does not grow by them.
  void forget_graphs() {
    counts_->pools.clear();
    counts_->generators.clear();
  }

 private:
  std::shared_ptr<GraphCounts> counts_;
};

}  // namespace graphproof::suites
