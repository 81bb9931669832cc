#include "suites/checks/watched/job/watched_job.h"

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>

#include "suites/checks/attempt/concat.h"

namespace graphproof::checks::watched {
namespace {

bool has(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

/// Whether a line of a stack is one of PyTorch, of Python's own library, or of the probe.
bool of_a_library(std::string_view line) {
  if (has(line, "graphproof probe") || has(line, "<frozen ")) return true;
  if (has(line, "/site-packages/") || has(line, "/dist-packages/"))
    return has(line, "-packages/torch/");
  return has(line, "/lib/python3") || has(line, "/torch/cuda/");
}

std::int64_t work(const JobProcess& process) {
  std::int64_t sum = process.eager_kernels() + process.graph_launches();
  for (const record::WatchedThread& thread : process.line().threads) sum += thread.kernels_captured;
  return sum;
}

template <class Line, class Key>
std::unordered_map<Key, const Line*> by(std::span<const Line> lines, Key Line::* key) {
  std::unordered_map<Key, const Line*> found;
  for (const Line& line : lines) found.emplace(line.*key, &line);
  return found;
}

template <class Line, class Key>
const Line* find(const std::unordered_map<Key, const Line*>& lines, const Key& key) {
  const auto found = lines.find(key);
  return found == lines.end() ? nullptr : found->second;
}

}  // namespace

std::string JobProcess::title() const {
  const std::string id = concat(line().host, ".", line().pid);
  return line().rank ? concat("rank ", *line().rank, " (", id, ")") : concat("process ", id);
}

bool JobProcess::has_graphs() const {
  return line().captures > 0 || line().executables > 0 ||
         !of<record::WatchedCaptureLine>().empty() || !of<record::ExecutableGraphLine>().empty();
}

std::int64_t JobProcess::eager_kernels() const {
  std::int64_t sum = 0;
  for (const record::WatchedThread& thread : line().threads) sum += thread.kernels;
  return sum;
}

std::int64_t JobProcess::graph_launches() const {
  std::int64_t sum = 0;
  for (const record::WatchedThread& thread : line().threads) sum += thread.graph_launches;
  return sum;
}

std::string JobProcess::stopped_inside() const {
  if (line().state != "cut_short") return "";
  for (const record::WatchedThread& thread : line().threads)
    if (!thread.inside.empty()) return thread.inside;
  return "";
}

std::optional<std::string> JobProcess::unseen(std::string_view part) const {
  for (const record::UnseenPart& unseen : line().unseen)
    if (unseen.what == part || unseen.what == "lines" || unseen.what.starts_with("everything"))
      return concat(unseen.what, ": ", unseen.why);
  if (!evidence.dropped.empty()) return concat("lines: ", evidence.dropped.front());
  return std::nullopt;
}

std::optional<std::string> JobProcess::calls_unseen() const {
  for (const record::UnseenPart& unseen : line().unseen)
    if (unseen.what == "driver_calls") return unseen.why;
  return std::nullopt;
}

std::string JobProcess::setting(std::string_view name) const {
  const auto found = line().settings.find(std::string(name));
  return found == line().settings.end() ? std::string() : found->second;
}

std::int64_t JobProcess::library_version(std::string_view name) const {
  std::int64_t version = 0;
  for (const record::LoadedLibrary& library : line().libraries)
    if (library.name == name) version = std::max(version, library.version);
  return version;
}

bool Executable::communicates() const {
  return made->nccl_kernels > 0 || (graph && graph->nccl_kernels > 0) ||
         (capture && capture->collectives > 0);
}

std::string Executable::title() const {
  return concat("graph ", number(), capture ? captured_at(*capture) : "");
}

std::vector<Executable> executables(const JobProcess& process) {
  const auto captures =
      by(process.of<record::WatchedCaptureLine>(), &record::WatchedCaptureLine::capture);
  const auto graphs =
      by(process.of<record::WatchedGraphLine>(), &record::WatchedGraphLine::signature);
  const auto replays = by(process.of<record::ReplaysLine>(), &record::ReplaysLine::executable);
  std::vector<Executable> all;
  for (const record::ExecutableGraphLine& made : process.of<record::ExecutableGraphLine>())
    all.push_back({.made = &made,
                   .capture = find(captures, made.capture),
                   .graph = find(graphs, made.graph),
                   .replays = find(replays, made.executable)});
  std::ranges::sort(all, {}, &Executable::number);
  return all;
}

std::string Executable::nodes_unread() const {
  if (graph == nullptr) return concat("the nodes of ", title(), ", have no line");
  if (!graph->failure.empty())
    return concat("the nodes of ", title(), ", were not read whole: ", graph->failure);
  if (graph->conditional_bodies_unknown > 0)
    return concat("of ", title(), ", the bodies of ", graph->conditional_bodies_unknown,
                  " conditional nodes were not seen");
  return "";
}

std::string Executable::operands_unread() const {
  if (std::string nodes = nodes_unread(); !nodes.empty()) return nodes;
  if (const std::int64_t count = graph->without_layout + graph->without_parameters; count > 0)
    return concat("of ", title(), ", the parameters of ", count, " of ", graph->kernel_nodes,
                  " kernels cannot be read");
  return "";
}

const Executable* launched_with(const JobProcess& process, const std::vector<Executable>& all,
                                std::int64_t capture) {
  bool made = false;
  for (const Executable& one : all) {
    if (one.made->capture != capture) continue;
    if (one.launches() > 0) return &one;
    made = true;
  }
  if (made) return nullptr;
  for (const auto& update : process.of<record::GraphUpdateLine>()) {
    if (update.result != 0 || !update.function.starts_with("cuGraphExecUpdate")) continue;
    const auto of = std::ranges::find(all, update.executable, &Executable::number);
    if (of != all.end() && of->launches() > update.launches.value_or(0)) return &*of;
  }
  return nullptr;
}

std::string unread_update(const JobProcess& process, const Executable& one) {
  for (const auto& update : process.of<record::GraphUpdateLine>())
    if (update.executable == one.number() && update.result == 0 && !update.operands_read &&
        !update.operands_kept.value_or(update.function == "cuGraphNodeSetEnabled") &&
        one.launches() > update.launches.value_or(0))
      return concat("what ", one.title(), ", points to since ", update.function,
                    " was not read again");
  return "";
}

std::string program_line(const std::vector<std::string>& stack) {
  const auto found = std::ranges::find_if_not(stack, of_a_library);
  if (found != stack.end()) return *found;
  return stack.empty() ? std::string() : stack.front();
}

std::string captured_at(const record::WatchedCaptureLine& capture) {
  const std::string line = program_line(capture.stack);
  return line.empty() ? line : ", captured at " + line;
}

std::string rank_lost_early(const WatchedJob& job) {
  std::map<std::int64_t, const JobProcess*> busiest;
  std::set<std::int64_t> with_graphs;
  for (const JobProcess& process : job.processes) {
    if (!process.line().rank) continue;
    if (process.has_graphs()) with_graphs.insert(*process.line().rank);
    const JobProcess*& kept = busiest[*process.line().rank];
    if (kept == nullptr || work(process) > work(*kept)) kept = &process;
  }
  if (with_graphs.empty()) return "";
  for (const auto& [rank, process] : busiest)
    if (!with_graphs.contains(rank) && process->line().state == "cut_short")
      return process->title();
  return "";
}

std::vector<const JobProcess*> ranks(const WatchedJob& job) {
  std::map<std::int64_t, const JobProcess*> found;
  for (const JobProcess& process : job.processes) {
    if (!process.line().rank || work(process) == 0) continue;
    const JobProcess*& kept = found[*process.line().rank];
    if (kept == nullptr || work(process) > work(*kept)) kept = &process;
  }
  std::vector<const JobProcess*> ranks;
  for (const auto& [rank, process] : found) ranks.push_back(process);
  return ranks;
}

}  // namespace graphproof::checks::watched
