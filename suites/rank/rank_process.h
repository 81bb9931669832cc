// What the accepted cases of a batch share on one rank: the world, the device and the
// communicators. Nothing of it exists before start(), so that a batch of refused cases initialises
// nothing.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "fixtures/comm/process_groups.h"
#include "fixtures/comm/transport/world.h"
#include "fixtures/device/device.h"
#include "fixtures/process/rank.h"
#include "fixtures/process/store.h"
#include "reports/record/job/batch.h"
#include "suites/rank/batch_run.h"

namespace graphproof::suites {

/// The limit of a wait among ranks. It is longer than the limit of any phase, so that the
/// launcher's hang detector, which sees all ranks, reports a stall first.
std::chrono::milliseconds patience(const record::Limits& limits);

/// Used from one thread.
class RankProcess {
 public:
  /// `digest` is that of the batch file; empty if the ranks may have different ones.
  /// `world` is that of a process that a rank has started; a rank itself makes its own.
  RankProcess(const RankProgram& program, const fixtures::Rank& place, const record::Batch& batch,
              std::string digest, std::unique_ptr<comm::World> world = nullptr);

  /// Makes world, device and transports; only the first call has an effect. Throws
  /// capture::DeviceError, what make_device throws, and record::Error if the ranks have different
  /// batch files.
  void start();
  bool started() const { return groups_ != nullptr; }

  /// REQUIRES for all functions below except world(): started(). vote() needs only the world.
  capture::Device& device() { return *device_; }
  comm::ProcessGroups& groups() { return *groups_; }
  comm::World* world() { return world_.get(); }
  std::vector<int> vote(std::string_view boundary, int code);
  std::chrono::milliseconds limit(record::Phase phase) const;
  std::chrono::milliseconds patience() const { return patience_; }
  /// Whether the launcher wants no other case to begin (reports/record/job/rank_orders.h): the same
  /// answer on all ranks, which wait for each other here.
  bool asked_to_stop();

  /// Destroys the communicators, then the world, as far as they exist.
  void finish();

 private:
  const RankProgram& program_;
  const fixtures::Rank place_;
  const record::Batch& batch_;
  const std::string digest_;
  const std::chrono::milliseconds patience_;
  std::unique_ptr<comm::World> world_;
  std::unique_ptr<fixtures::FileStore> store_;
  std::unique_ptr<capture::Device> device_;
  std::unique_ptr<comm::ProcessGroups> groups_;
};

}  // namespace graphproof::suites
