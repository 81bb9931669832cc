#include "suites/arms/second_capture.h"

#include <algorithm>
#include <chrono>
#include <set>
#include <vector>

#include "fixtures/device/nvtx.h"
#include "fixtures/inspect/node_comparison.h"
#include "reports/record/text/file.h"
#include "suites/case/learning_rate.h"
#include "workloads/engine_traits/engine_traits.h"

namespace graphproof::suites {
namespace {

/// Collects the nodes, and lets the ranks vote after each capture that all of them make.
class SecondObserver final : public engines::Observer {
 public:
  SecondObserver(CaseScope& scope, const WatchedDevice& device, const std::string& arm,
                 std::int64_t step)
      : scope_(scope), device_(device), arm_(arm), step_(step) {}

  void before_capture(const std::string& graph,
                      const std::vector<fixtures::NamedTensor>&) override {
    scope_.enter(Phase::capture, arm_, step_);
    if (!engines::of_one_stage(graph)) scope_.boundary(Phase::capture);
  }
  void after_capture(const engines::CaptureReport& report,
                     const std::vector<fixtures::NamedTensor>&) override {
    const bool ok = report.status == "ok";
    if (ok && device_.counts().nodes) graphs_.try_emplace(report.graph, device_.counts().nodes);
    if (!engines::of_one_stage(report.graph) || !ok) {
      scope_.boundary(Phase::capture);
      scope_.vote(ok ? 0 : (report.code != 0 ? report.code : 1));
      scope_.boundary(Phase::replay);
    }
    if (ok) scope_.enter(Phase::replay, arm_, step_);
  }

  /// By name.
  const std::map<std::string, std::shared_ptr<const capture::NodeList>>& graphs() const {
    return graphs_;
  }

 private:
  CaseScope& scope_;
  const WatchedDevice& device_;
  const std::string& arm_;
  const std::int64_t step_;
  std::map<std::string, std::shared_ptr<const capture::NodeList>> graphs_;
};

std::map<std::string, std::int64_t> kinds_of(const capture::NodeList& list) {
  std::map<std::string, std::int64_t> kinds;
  for (const capture::Node& node : list.nodes) ++kinds[node.type];
  return kinds;
}

/// Both captures of one graph.
struct Pair {
  std::string graph;
  std::int64_t step;  // of the first
  const capture::NodeList *first, *second;
  fixtures::NodeComparison compared;
};

std::vector<Pair> pairs_of(
    const FirstCapture& first, std::int64_t index,
    const std::map<std::string, std::shared_ptr<const capture::NodeList>>& second) {
  static const capture::NodeList none;
  std::set<std::string> names;
  for (const auto& [name, captured] : first.graphs) names.insert(name);
  for (const auto& [name, nodes] : second) names.insert(name);
  std::vector<Pair> pairs;
  for (const std::string& name : names) {
    const auto left = first.graphs.find(name);
    const auto right = second.find(name);
    const bool had = left != first.graphs.end(), has = right != second.end();
    const capture::NodeList& of_first = had ? *left->second.nodes : none;
    const capture::NodeList& of_second = has ? *right->second : none;
    pairs.push_back({.graph = name,
                     .step = had ? left->second.step : index,
                     .first = &of_first,
                     .second = &of_second,
                     .compared = fixtures::compare_captures(of_first, of_second)});
  }
  return pairs;
}

record::SecondCaptureLine line_of(const CaseParts& parts, const std::string& arm, const Pair& pair,
                                  std::int64_t index, double ms) {
  const LearningRateSchedule& rates = learning_rate_schedule(parts.config.model.optimizer);
  record::SecondCaptureLine line{.arm = arm,
                                 .graph = pair.graph,
                                 .step = pair.step,
                                 .step_again = index,
                                 .learning_rate = rates.at(pair.step),
                                 .learning_rate_again = rates.at(index),
                                 .nodes = std::ssize(pair.first->nodes),
                                 .nodes_again = std::ssize(pair.second->nodes),
                                 .kinds = kinds_of(*pair.first),
                                 .kinds_again = kinds_of(*pair.second),
                                 .edges = pair.compared.edges_first,
                                 .edges_again = pair.compared.edges_second,
                                 .arguments = pair.compared.arguments,
                                 .values = pair.compared.values,
                                 .unclear = pair.compared.unclear,
                                 .unread = pair.first->unread,
                                 .differing = pair.compared.differing,
                                 .ms = ms,
                                 .found = {}};
  for (const fixtures::NodeDifference& one : pair.compared.found)
    line.found.push_back({.node = one.node,
                          .name = one.name,
                          .what = one.what,
                          .first = one.first,
                          .second = one.second});
  return line;
}

/// The file "rank-0.nodes.txt" next to the evidence "rank-0.evidence.jsonl".
std::filesystem::path dump_file(const CaseParts& parts) {
  const std::filesystem::path& evidence = parts.scope.evidence_file();
  const std::string name = evidence.filename().string();
  return evidence.parent_path() / (name.substr(0, name.find('.')) + ".nodes.txt");
}

void write_dump(const CaseParts& parts, const std::string& arm, std::vector<Pair> pairs) {
  std::stable_sort(pairs.begin(), pairs.end(), [](const Pair& left, const Pair& right) {
    return (left.compared.differing > 0) > (right.compared.differing > 0);
  });
  std::string text;
  for (std::size_t i = 0; i < pairs.size(); ++i)
    text += fixtures::dump(pairs[i].graph, *pairs[i].first, *pairs[i].second,
                           (record::kNodeDumpBytes - text.size()) / (pairs.size() - i));
  const std::filesystem::path file = dump_file(parts);
  record::write_atomically(file, text, record::Survives::kill);
  parts.scope.write(record::NodeDumpLine{.arm = arm,
                                         .file = file.filename().string(),
                                         .reason = parts.scope.doubts(),
                                         .bytes = std::ssize(text)});
}

}  // namespace

void run_second_capture(const CaseParts& parts, const FirstCapture& first, std::int64_t index,
                        const StepInput& input) {
  const fixtures::NvtxRange range("second capture of " + first.arm);
  const c10::StreamGuard guard(parts.stream);
  const auto begin = std::chrono::steady_clock::now();
  WatchedDevice device(parts.device);
  device.keep_nodes();
  SecondObserver observer(parts.scope, device, first.arm, index);
  engines::EngineConfig config = first.engine;
  config.warmup_steps = 0;
  const auto engine = engines::make_engine(config, device, parts.stream, first.step, &observer);
  engine->step(input.batch, learning_rate_schedule(parts.config.model.optimizer).at(index));
  parts.device.synchronize(parts.stream);
  const std::vector<Pair> pairs = pairs_of(first, index, observer.graphs());
  const double ms =
      std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
  for (const Pair& pair : pairs) {
    if (pair.compared.differing > 0)
      parts.scope.doubt("graph " + pair.graph + " was captured otherwise a second time");
    parts.scope.write(line_of(parts, first.arm, pair, index, ms));
  }
  engine->drop_graphs();
  if (!parts.scope.doubts().empty() && !pairs.empty()) write_dump(parts, first.arm, pairs);
}

}  // namespace graphproof::suites
