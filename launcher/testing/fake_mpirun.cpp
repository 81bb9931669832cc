// mpirun for tests that start ranks thousands of times: `mpirun [OPTIONS] PROGRAM BATCH_FILE`
// starts the ranks in process groups of their own, ends the others when one fails, and reports that
// with the sentences of Open MPI. It takes milliseconds, where the real one takes half a second;
// launcher_run_test runs the real one.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

namespace {

volatile sig_atomic_t asked_to_end = 0;

void ask(int) { asked_to_end = 1; }

/// Ends the ranks, also after one has failed, as the real one does: SIGTERM, and SIGKILL a moment
/// later.
void end_all(const std::vector<pid_t>& ranks) {
  for (const int signal : {SIGTERM, SIGKILL}) {
    for (const pid_t rank : ranks) kill(rank, signal);
    for (int look = 0; look < 50; ++look) {
      while (waitpid(-1, nullptr, WNOHANG) > 0) {
      }
      if (waitpid(-1, nullptr, WNOHANG) < 0) return;
      usleep(2000);
    }
  }
}

pid_t start(int rank, int world, char** arguments) {
  const pid_t pid = fork();
  if (pid != 0) return pid;
  setpgid(0, 0);
  setenv("OMPI_COMM_WORLD_RANK", std::to_string(rank).c_str(), 1);
  setenv("OMPI_COMM_WORLD_LOCAL_RANK", std::to_string(rank).c_str(), 1);
  setenv("OMPI_COMM_WORLD_SIZE", std::to_string(world).c_str(), 1);
  signal(SIGTERM, SIG_DFL);
  execv(arguments[0], arguments);
  _exit(127);
}

}  // namespace

int main(int count, char** arguments) {
  int world = 1;
  for (int i = 1; i + 1 < count; ++i)
    if (std::strcmp(arguments[i], "-np") == 0) world = std::atoi(arguments[i + 1]);
  signal(SIGTERM, ask);
  std::vector<pid_t> ranks;
  for (int rank = 0; rank < world; ++rank)
    ranks.push_back(start(rank, world, arguments + count - 2));
  for (int left = world; left > 0; --left) {
    int status = 0;
    pid_t pid = 0;
    while ((pid = waitpid(-1, &status, WNOHANG)) == 0 && !asked_to_end) usleep(1000);
    if (asked_to_end) {
      end_all(ranks);
      return 143;
    }
    if (pid < 0 || (WIFEXITED(status) && WEXITSTATUS(status) == 0)) continue;
    int rank = 0;
    while (rank < world && ranks[static_cast<std::size_t>(rank)] != pid) ++rank;
    end_all(ranks);
    if (WIFSIGNALED(status)) {
      std::fprintf(stderr,
                   "mpirun noticed that process rank %d with PID %d on node here exited on signal "
                   "%d (%s).\n",
                   rank, pid, WTERMSIG(status), strsignal(WTERMSIG(status)));
      return 128 + WTERMSIG(status);
    }
    std::fprintf(stderr, "Process name: [[1,1],%d]\nExit code:    %d\n", rank, WEXITSTATUS(status));
    return WEXITSTATUS(status);
  }
  return 0;
}
