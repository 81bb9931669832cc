#include "suites/watched_device.h"

namespace graphproof::suites {
namespace {

class WatchedGraph final : public capture::Graph {
 public:
  WatchedGraph(std::unique_ptr<capture::Graph> graph, std::shared_ptr<GraphCounts> counts)
      : graph_(std::move(graph)), counts_(std::move(counts)) {}

  void register_generator(const at::Generator& generator) override { graph_->register_generator(generator); }
  void capture_begin(capture::Pool pool, capture::CaptureMode mode) override {
    ++counts_->captures_begun;
    graph_->capture_begin(pool, mode);
  }
  void capture_end() override {
    graph_->capture_end();
    ++counts_->captures_ended;
  }
  void replay() override {
    const std::int64_t before = graph_->replays();
    graph_->replay();
    // The graph's own count, which is kept where the launch happens: a replay() that launches nothing adds nothing.
    counts_->replays += graph_->replays() - before;
  }
  void reset() override { graph_->reset(); }
  capture::Census census() const override { return graph_->census(); }
  std::int64_t replays() const override { return graph_->replays(); }

 private:
  std::unique_ptr<capture::Graph> graph_;
  std::shared_ptr<GraphCounts> counts_;
};

}  // namespace

WatchedDevice::WatchedDevice(capture::Device& device) : device_(device), counts_(std::make_shared<GraphCounts>()) {}

std::unique_ptr<capture::Graph> WatchedDevice::make_graph() {
  return std::make_unique<WatchedGraph>(device_.make_graph(), counts_);
}

}  // namespace graphproof::suites
