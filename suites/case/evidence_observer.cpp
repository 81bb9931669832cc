#include "suites/case/evidence_observer.h"

#include <sstream>

#include "fixtures/device/rng_tracker.h"
#include "fixtures/inspect/poison.h"
#include "fixtures/inspect/tensor_digest.h"
#include "fixtures/tensors/hash.h"
#include "suites/case/step_config.h"
#include "workloads/engine_traits/engine_traits.h"

namespace graphproof::suites {
namespace {

std::string hex(std::uint64_t address) {
  std::ostringstream text;
  text << "0x" << std::hex << address;
  return text.str();
}

std::optional<record::ModuleRuns> module_runs(const engines::CaptureReport& report) {
  if (!report.module_runs) return std::nullopt;
  return record::ModuleRuns{.forwards = report.module_runs->forwards,
                            .backwards = report.module_runs->backwards};
}

std::optional<std::vector<std::string>> owned_inputs(const engines::CaptureReport& report) {
  if (report.owned_inputs.empty()) return std::nullopt;
  std::vector<std::string> addresses;
  for (const std::uint64_t address : report.owned_inputs) addresses.push_back(hex(address));
  return addresses;
}

}  // namespace

std::vector<std::int64_t> layer_counts(capture::Device& device, workloads::TrainStep& step) {
  device.synchronize();
  const at::Tensor counts = step.layer_counter().cpu();
  const auto* values = counts.const_data_ptr<std::int64_t>();
  return {values, values + counts.numel()};
}

std::string state_digest(const std::vector<fixtures::NamedTensor>& state,
                         fixtures::RngTracker& rng) {
  fixtures::Hash64 hash;
  hash.add(fixtures::digest(state));
  for (const auto& [region, generator_state] : rng.states()) {
    hash.add(region);
    hash.add(generator_state);
  }
  return hash.hex();
}

CaptureObserver::CaptureObserver(CaseScope& scope, const WatchedDevice& device,
                                 workloads::TrainStep& step, std::string arm)
    : scope_(scope), watched_(device), step_(step), arm_(std::move(arm)) {}

void CaptureObserver::before_capture(const std::string& graph,
                                     const std::vector<fixtures::NamedTensor>& state) {
  scope_.enter(Phase::capture, arm_, step_index_);
  if (!engines::of_one_stage(graph)) scope_.boundary(Phase::capture);
  state_before_ = state_digest(state, step_.rng());
}

void CaptureObserver::after_capture(const engines::CaptureReport& report,
                                    const std::vector<fixtures::NamedTensor>& state) {
  const bool ok = report.status == "ok";
  if (ok && watched_.counts().nodes)
    nodes_.try_emplace(report.graph,
                       CapturedNodes{.step = step_index_, .nodes = watched_.counts().nodes});
  scope_.write(record::CaptureLine{.arm = arm_,
                                   .graph = report.graph,
                                   .status = report.status,
                                   .code = report.code,
                                   .site = report.site,
                                   .message = report.message,
                                   .mode = capture_mode_word(watched_.counts().mode),
                                   .ms = report.ms,
                                   .nodes = report.census.total,
                                   .census = report.census.nodes,
                                   .signature = report.census.signature,
                                   .unjoined = report.census.unjoined,
                                   .pool_bytes = report.pool_bytes,
                                   .warmups = report.warmups,
                                   .pools = std::ssize(watched_.counts().pools),
                                   .generators = std::ssize(watched_.counts().generators),
                                   .generators_wanted = std::ssize(step_.rng().generators()),
                                   .counter_before = report.counter_before,
                                   .counter_after = report.counter_after,
                                   .module_runs = module_runs(report),
                                   .owned_inputs = owned_inputs(report)});
  if (ok)
    scope_.write(record::HostWorkLine{.arm = arm_,
                                      .graph = report.graph,
                                      .host_memory = report.census.host_memory,
                                      .host_functions = report.census.host_functions,
                                      .other_threads = report.other_threads,
                                      .unordered = report.census.unordered});
  if (report.pool_offset && !placed_)
    scope_.write(record::PlacementLine{.arm = arm_,
                                       .buffer = "pool",
                                       .bytes = *report.pool_offset,
                                       .offset = *report.pool_offset,
                                       .span_bytes = 0,
                                       .straddles = false});
  placed_ = true;
  // After a failed capture reading the device may fail (pytorch#180395), and that failure would
  // hide the capture's.
  if (ok)
    scope_.write(record::StateLine{.arm = arm_,
                                   .what = "capture",
                                   .before = state_before_,
                                   .after = state_digest(state, step_.rng())});
  if (!engines::of_one_stage(report.graph) || !ok) {
    captured_ = true;
    scope_.boundary(Phase::capture);
    scope_.vote(ok ? 0 : (report.code != 0 ? report.code : 1));
    scope_.boundary(Phase::replay);
  }
  if (ok) scope_.enter(Phase::replay, arm_, step_index_);
}

void CaptureObserver::failed_capture(const engines::CaptureReport& report) {
  scope_.write(record::FailedCaptureLine{.arm = arm_,
                                         .graph = report.graph,
                                         .code = report.code,
                                         .site = report.site,
                                         .message = report.message,
                                         .pool_bytes = report.pool_bytes});
}

ReplayObserver::ReplayObserver(CaseScope& scope, WatchedDevice& device, workloads::TrainStep& step,
                               std::string arm)
    : CaptureObserver(scope, device, step, std::move(arm)), device_(device), addresses_(device) {}

std::vector<record::MovedTensor> ReplayObserver::moved(
    const std::string& graph, const std::vector<fixtures::NamedTensor>& statics) {
  // Before its first replay the engine passes the tensors of the capture that has just ended.
  if (registered_.insert(graph).second) addresses_.capture(graph, statics);
  std::vector<record::MovedTensor> moved;
  for (const auto& tensor : addresses_.moved(graph, statics))
    moved.push_back(
        {.tensor = tensor.tensor, .captured = hex(tensor.captured), .now = hex(tensor.now)});
  return moved;
}

void ReplayObserver::write_addresses(const std::string& graph,
                                     std::vector<record::MovedTensor> moved) {
  if (!moved.empty()) scope_.doubt("a tensor of graph " + graph + " of arm " + arm_ + " moved");
  scope_.write(record::AddressLine{.arm = arm_,
                                   .step = step_index_,
                                   .graph = graph,
                                   .registered = addresses_.registered(graph),
                                   .moved = std::move(moved)});
}

void ReplayObserver::begin(const std::string& graph,
                           const std::vector<fixtures::NamedTensor>& statics,
                           const std::vector<fixtures::NamedTensor>& outputs) {
  write_addresses(graph, moved(graph, statics));
  Replay replay;
  for (const auto& held : statics) replay.registered.insert(device_.address(held.tensor));
  for (const auto& output : outputs) replay.poisoned.insert(device_.address(output.tensor));
  replay.poisoned_bytes = fixtures::total_bytes(outputs);
  replay.counter_before = layer_counts(device_, step_);
  fixtures::poison(outputs);
  replay_ = std::move(replay);
}

void ReplayObserver::before_step(const std::vector<fixtures::NamedTensor>& statics,
                                 const std::vector<fixtures::NamedTensor>& outputs) {
  in_step_ = true;
  begin("step", statics, outputs);
}

void ReplayObserver::after_step(const std::vector<fixtures::NamedTensor>& outputs) {
  in_step_ = false;
  if (replay_) replay_->canary_words += fixtures::canary_words(outputs);
}

void ReplayObserver::before_replay(const std::string& graph,
                                   const std::vector<fixtures::NamedTensor>& statics,
                                   const std::vector<fixtures::NamedTensor>& outputs) {
  if (!in_step_ && !replay_) {
    begin(graph, statics, outputs);
    ++replay_->announced;
    return;
  }
  // One of several replays in a step. The step has an `address` line already, so this replay gets
  // one only if a tensor has moved. A replay outside before_step() and after_step(), such as the
  // optimizer's graph, always gets one.
  std::vector<record::MovedTensor> elsewhere = moved(graph, statics);
  if (!in_step_ || !elsewhere.empty()) write_addresses(graph, std::move(elsewhere));
  ++replay_->announced;
  if (outputs.empty()) return;
  replay_->poisoned_bytes += fixtures::total_bytes(outputs);
  fixtures::poison(outputs);
}

void ReplayObserver::after_replay(const std::string&,
                                  const std::vector<fixtures::NamedTensor>& outputs) {
  if (!replay_) return;
  ++replay_->inspected;
  if (!outputs.empty()) replay_->canary_words += fixtures::canary_words(outputs);
}

std::optional<ReplayObserver::Replay> ReplayObserver::take() {
  auto taken = std::move(replay_);
  replay_.reset();
  return taken;
}

}  // namespace graphproof::suites
