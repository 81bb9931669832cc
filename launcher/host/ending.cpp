#include "launcher/host/ending.h"

#include <signal.h>

#include <utility>

namespace graphproof::launcher {
Ending::Ending(const ProcessTable& processes, int session, std::string mark, bool by_itself,
               std::int64_t now_ms, std::uint64_t looks_before)
    : processes_(processes),
      session_(session),
      mark_(std::move(mark)),
      looks_before_(looks_before),
      stage_(by_itself ? Stage::settle : Stage::ask),
      deadline_ms_(now_ms + kSettle_ms),
      left_(processes.of(session, mark_, looks_before)) {}

void Ending::send(const std::vector<Process>& processes, int signal) const {
  for (const Process& process : processes) processes_.send(process.pid, signal);
}

bool Ending::step(std::int64_t now_ms) {
  if (stage_ == Stage::done) return true;
  if (!std::exchange(looked_, false)) left_ = processes_.of(session_, mark_, looks_before_);
  if (left_.empty()) {
    stage_ = Stage::done;
  } else if (stage_ == Stage::settle && now_ms >= deadline_ms_) {
    left_behind_ = left_;
    stage_ = Stage::ask;
  }
  if (stage_ == Stage::ask) {
    send(left_, signal_ = SIGTERM);
    stage_ = Stage::term;
    deadline_ms_ = now_ms + kTerm_ms;
  } else if (stage_ == Stage::term && now_ms >= deadline_ms_) {
    send(left_, signal_ = SIGKILL);
    processes_.kill_group(mark_);
    stage_ = Stage::kill;
    deadline_ms_ = now_ms + kKill_ms;
  } else if (stage_ == Stage::kill) {
    // Sent again each time, because a process may have been started between the last look and the
    // last signal.
    send(left_, SIGKILL);
    processes_.kill_group(mark_);
    if (now_ms >= deadline_ms_) {
      unkillable_ = left_;
      stage_ = Stage::done;
    }
  }
  return stage_ == Stage::done;
}

}  // namespace graphproof::launcher
