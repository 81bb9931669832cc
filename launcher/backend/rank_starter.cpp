// graphproof-start RANKS PROGRAM [ARGUMENTS...]: starts the ranks of a batch on this host, without
// MPI. Each gets its place from GRAPHPROOF_WORLD_SIZE, GRAPHPROOF_RANK and GRAPHPROOF_LOCAL_RANK;
// output and everything else is inherited from this process.
//
// When a rank fails, the others are ended, and the first failure is reported on standard error with
// the sentence that starter_log.cpp reads. The exit code is that rank's, or 128 and the number of
// its signal, or 0 when all ended well. A rank never outlives this process. SIGTERM and SIGINT end
// the ranks, and then this process with their default action.
#include <errno.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

namespace {

// The time between SIGTERM and SIGKILL. A rank has its evidence on the disk already and needs no
// longer.
constexpr timespec kGrace{.tv_sec = 1, .tv_nsec = 0};
// A process inside a driver call dies only when the call returns. The launcher sees that it does
// not.
constexpr timespec kLast{.tv_sec = 5, .tv_nsec = 0};
constexpr int kCannotStart = 127, kUsage = 2;

sigset_t signals() {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : {SIGCHLD, SIGTERM, SIGINT}) sigaddset(&set, signal);
  return set;
}

pid_t start(int rank, int ranks, char** arguments, const sigset_t& before) {
  const pid_t parent = getpid(), pid = fork();
  if (pid != 0) return pid;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(kCannotStart);
  sigprocmask(SIG_SETMASK, &before, nullptr);
  setenv("GRAPHPROOF_WORLD_SIZE", std::to_string(ranks).c_str(), 1);
  setenv("GRAPHPROOF_RANK", std::to_string(rank).c_str(), 1);
  setenv("GRAPHPROOF_LOCAL_RANK", std::to_string(rank).c_str(), 1);
  execv(arguments[0], arguments);
  std::fprintf(stderr, "graphproof-start could not start %s: %s\n", arguments[0],
               std::strerror(errno));
  _exit(kCannotStart);
}

/// The processes of the ranks.
class Ranks {
 public:
  explicit Ranks(std::vector<pid_t> pids) : pids_(std::move(pids)) {}

  /// Collects the ranks that have ended; true when none is left. `report`: print the first failure.
  bool collect(bool report = true) {
    int status = 0;
    for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0;)
      for (std::size_t rank = 0; rank < pids_.size(); ++rank)
        if (pids_[rank] == pid) ended(rank, status, report);
    return left_ == 0;
  }
  void send(int signal) const {
    for (const pid_t pid : pids_)
      if (pid > 0) kill(pid, signal);
  }
  /// The exit code of the first rank that failed; 0 if none has.
  int code() const { return code_; }

 private:
  void ended(std::size_t rank, int status, bool report) {
    const pid_t pid = std::exchange(pids_[rank], 0);
    --left_;
    if (!report || code_ != 0 || status == 0) return;
    const int number = static_cast<int>(rank);
    if (WIFSIGNALED(status)) {
      code_ = 128 + WTERMSIG(status);
      std::fprintf(stderr, "graphproof-start: rank %d with PID %d ended by signal %d (%s)\n",
                   number, pid, WTERMSIG(status), strsignal(WTERMSIG(status)));
    } else {
      code_ = WEXITSTATUS(status);
      std::fprintf(stderr, "graphproof-start: rank %d with PID %d ended with exit code %d\n",
                   number, pid, code_);
    }
  }

  std::vector<pid_t> pids_;  // 0: ended
  std::size_t left_ = pids_.size();
  int code_ = 0;
};

/// Waits for ranks that this process ends, `limit` at most between two of them.
bool gone_within(Ranks& ranks, const sigset_t& set, const timespec& limit) {
  while (!ranks.collect(false))
    if (sigtimedwait(&set, nullptr, &limit) < 0 && errno == EAGAIN) return ranks.collect(false);
  return true;
}

void end_by(int signal) {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, signal);
  raise(signal);
  sigprocmask(SIG_UNBLOCK, &set, nullptr);
}

}  // namespace

int main(int count, char** arguments) {
  int ranks = 0;
  const char* const text = count > 2 ? arguments[1] : "";
  std::from_chars(text, text + std::strlen(text), ranks);
  if (ranks < 1) {
    std::fprintf(stderr, "usage: graphproof-start RANKS PROGRAM [ARGUMENTS...]\n");
    return kUsage;
  }
  const sigset_t set = signals();
  sigset_t before;
  sigprocmask(SIG_BLOCK, &set, &before);
  std::vector<pid_t> pids;
  for (int rank = 0; rank < ranks; ++rank) {
    pids.push_back(start(rank, ranks, arguments + 2, before));
    if (pids.back() > 0) continue;
    std::fprintf(stderr, "graphproof-start could not start rank %d: %s\n", rank,
                 std::strerror(errno));
    pids.pop_back();
    Ranks(pids).send(SIGKILL);
    return kCannotStart;
  }
  Ranks all(std::move(pids));
  int asked = 0;
  while (!all.collect() && all.code() == 0 && asked == 0)
    if (const int signal = sigwaitinfo(&set, nullptr); signal == SIGTERM || signal == SIGINT)
      asked = signal;
  all.send(SIGTERM);
  if (!gone_within(all, set, kGrace)) {
    all.send(SIGKILL);
    gone_within(all, set, kLast);
  }
  if (asked != 0) end_by(asked);
  return all.code();
}
