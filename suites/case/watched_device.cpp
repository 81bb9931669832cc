#include "suites/case/watched_device.h"

#include <utility>

namespace graphproof::suites {
namespace {

class WatchedGraph final : public capture::ForwardingGraph {
 public:
  WatchedGraph(std::unique_ptr<capture::Graph> graph, std::shared_ptr<GraphCounts> counts)
      : ForwardingGraph(std::move(graph)), counts_(std::move(counts)) {}

  void register_generator(const at::Generator& generator) override {
    counts_->generators.insert(generator.unsafeGetGeneratorImpl());
    graph_->register_generator(generator);
  }
  void capture_begin(capture::Pool pool, capture::CaptureMode mode) override {
    ++counts_->captures_begun;
    counts_->pools.insert({pool.first, pool.second});
    counts_->mode = mode;
    graph_->capture_begin(pool, mode);
  }
  void capture_end() override {
    graph_->capture_end();
    ++counts_->captures_ended;
    counts_->delayed_branches += graph_->delayed_branches();
    if (!counts_->keep_nodes) return;
    const auto nodes = graph_->nodes();
    counts_->nodes = nodes ? std::make_shared<capture::NodeList>(*nodes) : nullptr;
  }
  void replay() override {
    if (counts_->watch_operands) look_at_operands();
    const std::int64_t before = graph_->replays();
    graph_->replay();
    // The graph's own count, which is kept where the launch happens: a replay() that launches
    // nothing adds nothing.
    counts_->replays += graph_->replays() - before;
  }

 private:
  void look_at_operands() {
    const auto operands = graph_->operands();
    if (!operands) return;
    if (!counts_->operands) counts_->operands = capture::Operands{};
    counts_->operands->blocks += operands->blocks;
    counts_->operands->freed.insert(counts_->operands->freed.end(), operands->freed.begin(),
                                    operands->freed.end());
  }

  std::shared_ptr<GraphCounts> counts_;
};

}  // namespace

WatchedDevice::WatchedDevice(capture::Device& device)
    : ForwardingDevice(device), counts_(std::make_shared<GraphCounts>()) {}

std::unique_ptr<capture::Graph> WatchedDevice::make_graph() {
  return std::make_unique<WatchedGraph>(device_.make_graph(), counts_);
}

}  // namespace graphproof::suites
