#include "launcher/host/stacks.h"

#include <algorithm>
#include <fstream>
#include <system_error>
#include <thread>
#include <utility>

#include "launcher/host/processes.h"

namespace graphproof::launcher {
namespace {

std::string first_line(const std::filesystem::path& file) {
  const std::string text = proc_text(file);
  return text.substr(0, text.find('\n'));
}

/// The command of the first debugger that this host has; no arguments if it has none.
std::vector<std::string> debugger(std::int64_t pid, const Environment& environment) {
  const std::string id = std::to_string(pid);
  if (!find_program("eu-stack", environment).empty()) return {"eu-stack", "-n", "64", "-p", id};
  if (!find_program("gdb", environment).empty())
    return {"gdb",
            "-nx",
            "-batch",
            "-iex",
            "set debuginfod enabled off",
            "-p",
            id,
            "-ex",
            "thread apply all backtrace 64"};
  return {};
}

}  // namespace

std::string threads_of(std::int64_t pid) {
  const std::filesystem::path process = "/proc/" + std::to_string(pid);
  std::string text = proc_text(process / "status");
  std::error_code gone;
  for (std::filesystem::directory_iterator task(process / "task", gone), end; !gone && task != end;
       task.increment(gone)) {
    const std::filesystem::path thread = task->path();
    text += "\nthread " + thread.filename().string() + " " + first_line(thread / "comm") + "\n";
    text += "  waits in " + first_line(thread / "wchan") + "\n";
    text += "  system call " + first_line(thread / "syscall") + "\n";
    if (const std::string stack = proc_text(thread / "stack"); !stack.empty()) text += stack;
  }
  return text;
}

StackCollection::StackCollection(std::filesystem::path folder, std::vector<Target> targets,
                                 bool debugger, std::int64_t now_ms)
    : folder_(std::move(folder)), deadline_ms_(now_ms + kDebugger_ms) {
  std::error_code ignored;
  std::filesystem::create_directories(folder_, ignored);
  std::erase_if(targets, [](const Target& target) { return target.pid <= 0; });
  for (const Target& target : targets)
    std::ofstream(folder_ / ("rank-" + std::to_string(target.rank) + ".threads"))
        << threads_of(target.pid);
  if (debugger) waiting_.assign(targets.begin(), targets.end());
}

void StackCollection::start_debugger(const Target& target) {
  const Environment environment = own_environment();
  const std::vector<std::string> arguments = debugger(target.pid, environment);
  if (arguments.empty()) return;
  try {
    debuggers_.emplace_back(Command{arguments, environment},
                            folder_ / ("rank-" + std::to_string(target.rank) + ".stack"));
  } catch (const std::system_error&) {
    // Without a debugger's stacks the states of the threads are still there, and the hang is
    // reported either way.
  }
}

bool StackCollection::step(std::int64_t now_ms) {
  const std::size_t side_by_side = std::max(1u, std::thread::hardware_concurrency());
  std::erase_if(debuggers_, [](Child& child) { return child.poll().has_value(); });
  for (; !waiting_.empty() && debuggers_.size() < side_by_side; waiting_.pop_front())
    start_debugger(waiting_.front());
  if (now_ms >= deadline_ms_) {
    waiting_.clear();
    debuggers_.clear();
  }
  return debuggers_.empty() && waiting_.empty();
}

}  // namespace graphproof::launcher
