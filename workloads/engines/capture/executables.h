// The executable graphs of dropped graphs, for the captures that update them (axis recapture). A
// program that captures a graph again instantiates it anew, or updates the executable graph of the
// capture before (cudaGraphExecUpdate), which is cheaper where only shapes, addresses and numbers
// have changed. The update is checked: where the device refuses it, the graph is instantiated.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "workloads/engines/capture/engine.h"

namespace graphproof::engines {

/// By the name of the graph. Used by the engine's thread. Destroyed before the communicators whose
/// collectives the graphs hold.
class Executables {
 public:
  /// `executable` may be null.
  void keep(const std::string& graph, std::unique_ptr<capture::Executable> executable) {
    if (executable) kept_[graph].push_back(std::move(executable));
  }
  /// Null if there is none of this name.
  std::unique_ptr<capture::Executable> take(const std::string& graph) {
    auto& of_name = kept_[graph];
    if (of_name.empty()) return nullptr;
    auto executable = std::move(of_name.back());
    of_name.pop_back();
    return executable;
  }

 private:
  std::map<std::string, std::vector<std::unique_ptr<capture::Executable>>> kept_;
};

/// Destroys `graph`, whose name is `name`, but for the executable graph if the engine keeps it.
/// REQUIRES: the device has finished.
inline void drop(const EngineConfig& config, const std::string& name,
                 std::unique_ptr<capture::Graph>& graph) {
  if (!config.executables)
    graph->reset();
  else
    config.executables->keep(name, graph->give_up_executable());
  graph.reset();
}

}  // namespace graphproof::engines
