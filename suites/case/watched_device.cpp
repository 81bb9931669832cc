#include "suites/case/watched_device.h"

#include <utility>
#include <vector>

namespace graphproof::suites {
namespace {

using Graphs = std::vector<std::unique_ptr<capture::Graph>>;

// M89 stands for a cleanup that forgets one executable: it lives until the process is gone.
Graphs& leaked() {
  static auto* graphs = new Graphs;
  return *graphs;
}

// M71 stands for a graph that a static object holds: it is destroyed behind main, when MPI has been
// finalised.
Graphs& held_by_a_static() {
  static Graphs graphs;
  return graphs;
}

class WatchedGraph final : public capture::Graph {
 public:
  WatchedGraph(std::unique_ptr<capture::Graph> graph, std::shared_ptr<GraphCounts> counts,
               const fixtures::Fault& fault)
      : graph_(std::move(graph)),
        counts_(std::move(counts)),
        keeps_(fault.is("M89") || fault.is("M71")),
        keeper_(fault.is("M71") ? held_by_a_static() : leaked()) {}
  ~WatchedGraph() override {
    if (keeps_) keeper_.push_back(std::move(graph_));
  }

  void register_generator(const at::Generator& generator) override {
    counts_->generators.insert(generator.unsafeGetGeneratorImpl());
    graph_->register_generator(generator);
  }
  void capture_begin(capture::Pool pool, capture::CaptureMode mode) override {
    ++counts_->captures_begun;
    counts_->pools.insert({pool.first, pool.second});
    graph_->capture_begin(pool, mode);
  }
  void capture_end() override {
    graph_->capture_end();
    ++counts_->captures_ended;
    counts_->late_ways += graph_->late_ways();
  }
  void replay() override {
    if (counts_->watch_operands) look_at_operands();
    const std::int64_t before = graph_->replays();
    graph_->replay();
    // The graph's own count, which is kept where the launch happens: a replay() that launches
    // nothing adds nothing.
    counts_->replays += graph_->replays() - before;
  }
  void reset() override {
    if (!keeps_) graph_->reset();
  }
  capture::Census census() const override { return graph_->census(); }
  std::int64_t replays() const override { return graph_->replays(); }
  std::int64_t late_ways() const override { return graph_->late_ways(); }

 private:
  std::unique_ptr<capture::Graph> graph_;
  void look_at_operands() {
    const auto operands = graph_->operands();
    if (!operands) return;
    if (!counts_->operands) counts_->operands = capture::Operands{};
    counts_->operands->blocks += operands->blocks;
    counts_->operands->freed.insert(counts_->operands->freed.end(), operands->freed.begin(),
                                    operands->freed.end());
  }

  std::shared_ptr<GraphCounts> counts_;
  const bool keeps_;  // M71, M89 only
  Graphs& keeper_;
};

}  // namespace

WatchedDevice::WatchedDevice(capture::Device& device, fixtures::Fault fault)
    : device_(device), fault_(std::move(fault)), counts_(std::make_shared<GraphCounts>()) {}

std::unique_ptr<capture::Graph> WatchedDevice::make_graph() {
  return std::make_unique<WatchedGraph>(device_.make_graph(), counts_, fault_);
}

}  // namespace graphproof::suites
