#include "suites/case/watched_device.h"

#include <algorithm>
#include <utility>

namespace graphproof::suites {
namespace {

class WatchedGraph final : public capture::ForwardingGraph {
 public:
  WatchedGraph(std::unique_ptr<capture::Graph> graph, std::shared_ptr<GraphCounts> counts)
      : ForwardingGraph(std::move(graph)), counts_(std::move(counts)) {}
  ~WatchedGraph() override { ends(); }

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
  void reuse(std::unique_ptr<capture::Executable> executable) override {
    graph_->reuse(std::move(executable));
    stale_ = true;
  }
  void capture_end() override {
    graph_->capture_end();
    ++counts_->captures_ended;
    alive_ = true;
    counts_->most_alive = std::max(counts_->most_alive, ++counts_->alive);
    counts_->delayed_branches += graph_->delayed_branches();
    if (!counts_->keep_nodes) return;
    const auto nodes = graph_->nodes();
    counts_->nodes = nodes ? std::make_shared<capture::NodeList>(*nodes) : nullptr;
  }
  capture::ExecUpdate update() override {
    const capture::ExecUpdate update = graph_->update();
    if (update.given_up_in_flight) ++counts_->given_up_in_flight;
    if (update.kept_clusters > 0) ++counts_->kept_clusters;
    stale_ = !update.refused.empty() || update.kept_clusters > 0;
    ++(update.refused.empty() ? counts_->updates : counts_->refused[update.refused]);
    return update;
  }
  void instantiate() override {
    graph_->instantiate();
    stale_ = false;
  }
  void replay() override {
    if (stale_) ++counts_->stale_launches;
    if (counts_->watch_operands) look_at_operands();
    const std::int64_t before = graph_->replays();
    graph_->replay();
    // The graph's own count, which is kept where the launch happens: a replay() that launches
    // nothing adds nothing.
    counts_->replays += graph_->replays() - before;
  }
  std::unique_ptr<capture::Executable> give_up_executable() override {
    ends();
    return graph_->give_up_executable();
  }
  void reset() override {
    ends();
    graph_->reset();
  }

 private:
  void ends() {
    if (std::exchange(alive_, false)) --counts_->alive;
  }
  void look_at_operands() {
    const auto operands = graph_->operands();
    if (!operands) return;
    if (!counts_->operands) counts_->operands = capture::Operands{};
    counts_->operands->blocks += operands->blocks;
    counts_->operands->freed.insert(counts_->operands->freed.end(), operands->freed.begin(),
                                    operands->freed.end());
  }

  std::shared_ptr<GraphCounts> counts_;
  bool alive_ = false;
  bool stale_ = false;  // the executable graph has the work of an earlier graph
};

}  // namespace

WatchedDevice::WatchedDevice(capture::Device& device)
    : ForwardingDevice(device), counts_(std::make_shared<GraphCounts>()) {}

std::unique_ptr<capture::Graph> WatchedDevice::make_graph() {
  return std::make_unique<WatchedGraph>(device_.make_graph(), counts_);
}

}  // namespace graphproof::suites
