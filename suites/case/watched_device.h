// The rank's device as an engine sees it in one arm, with a counter at the only door to a graph:
// captures begun and ended, launches. So the evidence of a replay does not rest on what an engine
// says of itself.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <utility>

#include "fixtures/device/device.h"
#include "fixtures/process/fault.h"

namespace graphproof::suites {

struct GraphCounts {
  std::int64_t captures_begun = 0;
  std::int64_t captures_ended = 0;  // successfully
  std::int64_t replays = 0;         // launches that the graphs themselves counted
  std::int64_t late_ways = 0;       // of all graphs captured
  std::set<std::pair<std::uint64_t, std::uint64_t>> pools;  // that captures went into
  std::set<const void*> generators;                         // that were registered with a graph
  bool watch_operands = false;
  std::optional<capture::Operands>
      operands;  // of the launches since take_operands(), each looked at just before it
};

/// Passes every call on to `device`, which outlives it; graphs may outlive it.
class WatchedDevice final : public capture::Device {
 public:
  explicit WatchedDevice(capture::Device& device, fixtures::Fault fault = {});

  const GraphCounts& counts() const { return *counts_; }
  /// From now on every launch looks first at the memory that its graph will touch.
  void watch_operands() { counts_->watch_operands = true; }
  std::optional<capture::Operands> take_operands() {
    return std::exchange(counts_->operands, std::nullopt);
  }

  std::string name() const override { return device_.name(); }
  at::Device torch_device() const override { return device_.torch_device(); }
  std::unique_ptr<capture::Graph> make_graph() override;
  capture::Pool make_pool() override { return device_.make_pool(); }
  c10::Stream stream_from_pool() override { return device_.stream_from_pool(); }
  c10::Stream default_stream() const override { return device_.default_stream(); }
  c10::Stream current_stream() const override { return device_.current_stream(); }
  void synchronize() override { device_.synchronize(); }
  void synchronize(const c10::Stream& stream) override { device_.synchronize(stream); }
  bool capturing(const c10::Stream& stream) const override { return device_.capturing(stream); }
  at::Generator make_generator(std::uint64_t seed) override { return device_.make_generator(seed); }
  std::string generator_state(const at::Generator& generator) override {
    return device_.generator_state(generator);
  }
  capture::MemoryUse memory() override { return device_.memory(); }
  void empty_cache() override { device_.empty_cache(); }
  std::int64_t overwrite_free_memory() override { return device_.overwrite_free_memory(); }
  std::optional<double> busy_ms(double head_start_ms, const std::function<void()>& work) override {
    return device_.busy_ms(head_start_ms, work);
  }
  std::int64_t hold_back(capture::Late late, double ms) override {
    return device_.hold_back(late, ms);
  }
  void make_late_graphs(bool late) override { device_.make_late_graphs(late); }
  std::uint64_t address(const at::Tensor& tensor) const override { return device_.address(tensor); }
  std::optional<capture::Races> take_races() override { return device_.take_races(); }
  capture::PhysicalSpan physical_span(std::uint64_t address) const override {
    return device_.physical_span(address);
  }
  void autograd_threads(bool on) override { device_.autograd_threads(on); }
  std::map<std::string, std::string> configuration() const override {
    return device_.configuration();
  }

 private:
  capture::Device& device_;
  const fixtures::Fault fault_;
  std::shared_ptr<GraphCounts> counts_;
};

}  // namespace graphproof::suites
