// D07: what a graph captured by address still lies there.
#include <algorithm>
#include <map>
#include <set>

#include "suites/checks/attempt/arms.h"
#include "suites/checks/attempt/concat.h"
#include "suites/checks/attempt/detectors.h"
#include "suites/checks/attempt/judgement.h"

namespace graphproof::checks {
namespace {

std::string moved_part(const nlohmann::json& moved, const char* key) {
  if (moved.is_string())
    return std::string_view(key) == "tensor" ? moved.get<std::string>()
                                             : std::string("another address");
  const auto found = moved.is_object() ? moved.find(key) : moved.end();
  if (!moved.is_object() || found == moved.end()) return "unknown";
  return found->is_string() ? found->get<std::string>() : found->dump();
}

}  // namespace

record::CheckResult static_addresses(const Attempt& attempt) {
  Judgement judgement("D07.static_addresses", attempt);
  if (!judgement.for_graph_cases()) return judgement.result("", "");
  for (const RankFiles& files : attempt.ranks) {
    std::map<std::string, std::set<std::string>>
        graphs;  // by arm: those launched in each step, which evaluation's is not
    for (const Line* line : files.find("address"))
      if (!is(*line, "graph", "validation"))
        graphs[text(*line, "arm")].insert(text(*line, "graph"));
    for (const auto& [arm, step] : watched_replays(attempt, judgement.expected())) {
      const auto lines = files.find("address", arm, step);
      if (lines.empty()) judgement.absent(files, concat("`address` line of arm ", arm), step);
      for (const std::string& graph : graphs[std::string(arm)])
        if (std::ranges::none_of(lines,
                                 [&](const Line* line) { return is(*line, "graph", graph); }))
          judgement.absent(files, concat("`address` line of graph ", graph, " of arm ", arm), step);
    }
    std::map<std::string, std::int64_t> registered_at_first;  // by arm and graph
    for (const Line* line : files.find("address")) {
      const auto step = integer(*line, "step");
      const std::string arm = text(*line, "arm"), graph = text(*line, "graph");
      const std::int64_t registered = integer(*line, "registered").value_or(0);
      const std::int64_t first =
          registered_at_first.try_emplace(arm + "/" + graph, registered).first->second;
      const nlohmann::json& moved = field(*line, "moved");
      if (moved.is_array() && !moved.empty()) {
        judgement.defect(
            {.rank = files.rank,
             .step = step,
             .what = concat("`", moved_part(moved.front(), "tensor"), "` of graph ", graph,
                            " moved after capture, as ", moved.size() - 1, " others did"),
             .got = concat("address ", moved_part(moved.front(), "now"),
                           " before the replay of step ", step.value_or(-1), " in arm ", arm),
             .want = concat(moved_part(moved.front(), "captured"), ", as captured"),
             .why = "a replay reads the captured address, so the step ran on stale data"});
      } else if (!moved.is_array() || registered <= 0 || registered != first) {
        judgement.defect(
            {.rank = files.rank,
             .step = step,
             .what = concat("the address registry of graph ", graph, " changed in arm ", arm),
             .got = concat(registered, " tensors registered at step ", step.value_or(-1)),
             .want = concat(first, ", as before the first replay, and at least one"),
             .why = "an address that nobody registered is not watched"});
      } else {
        judgement.saw(files.rank);
      }
    }
  }
  return judgement.result(
      concat("nothing moved before ", watched_replays(attempt, judgement.expected()).size(),
             " replays on ", attempt.ranks.size(), " ranks"),
      "every address as captured");
}

record::CheckResult outputs_registered(const Attempt& attempt) {
  Judgement judgement("D07.outputs_registered", attempt);
  if (!judgement.for_training_cases() || !judgement.for_graph_cases())
    return judgement.result("", "");
  for (const RankFiles& files : attempt.ranks) {
    for (const auto& [arm, step] : watched_replays(attempt, judgement.expected()))
      if (!files.first("poison", arm, step))
        judgement.absent(files, concat("`poison` line of arm ", arm), step);
    for (const Line* line : files.find("poison")) {
      const nlohmann::json& unregistered = field(*line, "unregistered");
      if (unregistered.is_array() && unregistered.empty()) {
        judgement.saw(files.rank);
        continue;
      }
      judgement.defect(
          {.rank = files.rank,
           .step = integer(*line, "step"),
           .what = concat("nobody watched the address of what a step of arm ", text(*line, "arm"),
                          " hands out"),
           .got = concat("unregistered: ", unregistered.dump()),
           .want = "none: losses, gradients, parameters and optimizer state all registered",
           .why = "an address that nobody registered may move unseen, and the replay reads or "
                  "writes the old one"});
    }
  }
  return judgement.result(
      concat("everything handed out in ", watched_replays(attempt, judgement.expected()).size(),
             " replays on ", attempt.ranks.size(), " ranks"),
      "every address registered");
}

}  // namespace graphproof::checks
