#include "launcher/host/child.h"

#include <fcntl.h>
#include <linux/sched.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <system_error>
#include <utility>

#include "launcher/host/memory_file.h"

extern char** environ;

namespace graphproof::launcher {

#if defined(__x86_64__)
/// clone3 for a child that shares this process's memory until it begins its program, as with vfork.
/// It returns first in the child, on the same stack, so the return address is kept in a register
/// meanwhile. Returns a negative errno where it fails.
extern "C" [[gnu::returns_twice]] long graphproof_clone3_vfork(const clone_args* arguments,
                                                               std::size_t size);
asm(R"(
  .pushsection .text
  .type graphproof_clone3_vfork, @function
graphproof_clone3_vfork:
  popq %rdx
  movl $435, %eax
  syscall
  pushq %rdx
  ret
  .size graphproof_clone3_vfork, . - graphproof_clone3_vfork
  .popsection
)");
static_assert(SYS_clone3 == 435);
#else
inline long graphproof_clone3_vfork(const clone_args*, std::size_t) { return -ENOSYS; }
#endif

namespace {

[[noreturn]] void fail(int code, const std::string& what) {
  throw std::system_error(code, std::generic_category(), what);
}

constexpr int kKept = -1;

struct Beginning {
  const char* program;
  char* const* arguments;
  char* const* environment;
  // An output of kKept: the standard streams stay as they are, but for standard output, which goes
  // to the descriptor `errors` unless that is kKept too.
  int output, errors;
  int members;  // of the control group that it is to enter by itself; -1: none
  int parent, error_pipe;
};

/// Everything between fork and exec, in the launcher's own memory: it may make only
/// async-signal-safe calls, and no signal handler of the launcher may run here. Reports errno
/// through its pipe.
[[noreturn, gnu::noinline]] void become(const Beginning& child) {
  setsid();
  if (child.members >= 0) [[maybe_unused]]
    const auto entered = write(child.members, "0", 1);
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  // The launcher may have died between the fork and the line above. Then no process would ever send
  // the signal.
  if (getppid() != child.parent) _exit(127);
  for (int number = 1; number < NSIG; ++number) {
    struct sigaction action;
    if (sigaction(number, nullptr, &action) == 0 && action.sa_handler != SIG_IGN &&
        action.sa_handler != SIG_DFL)
      signal(number, SIG_DFL);
  }
  signal(SIGPIPE, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  const auto redirect = [&child] {
    const int nothing = open("/dev/null", O_RDONLY);
    return nothing >= 0 && dup2(nothing, 0) >= 0 && dup2(child.output, 1) >= 0 &&
           dup2(child.errors, 2) >= 0;
  };
  const auto keep = [&child] { return child.errors == kKept || dup2(child.errors, 1) >= 0; };
  if (child.output == kKept ? keep() : redirect())
    execve(child.program, child.arguments, child.environment);
  const int code = errno;
  [[maybe_unused]] const auto written = write(child.error_pipe, &code, sizeof code);
  _exit(127);
}

/// Shares the memory, because fork would copy the page tables of a launcher that holds ten thousand
/// records.
[[gnu::noinline]] int begin(const Beginning& child) {
  const pid_t pid = vfork();
  if (pid == 0) become(child);
  return pid;
}

/// As begin(), in the control group of this open folder. To move a process there afterwards costs
/// the kernel a grace period of 10 to 25 ms. Negative before Linux 5.7, and where a container's
/// filter does not know clone3.
[[gnu::noinline]] int begin_in(int group, const Beginning& child) {
  clone_args into{};
  into.flags = CLONE_INTO_CGROUP | CLONE_VM | CLONE_VFORK;
  into.exit_signal = SIGCHLD;
  into.cgroup = static_cast<std::uint64_t>(group);
  const long pid = graphproof_clone3_vfork(&into, sizeof into);
  if (pid == 0) become(child);
  return static_cast<int>(pid);
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> list;
  for (std::string& text : texts) list.push_back(text.data());
  list.push_back(nullptr);
  return list;
}

/// Returns the id of the new process; the descriptors become its standard output and error.
int start(const Command& command, int output, int errors, int group = -1, int members = -1) {
  const std::string& name = command.arguments.at(0);
  const std::string program = find_program(name, command.environment);
  if (program.empty())
    fail(ENOENT, "can't start '" + name + "': not found in PATH or not executable");
  std::vector<std::string> arguments = command.arguments, variables;
  for (const auto& [key, value] : command.environment) variables.push_back(key + "=" + value);
  const std::vector<char*> argument_list = pointers(arguments), variable_list = pointers(variables);
  int error_pipe[2];
  if (pipe2(error_pipe, O_CLOEXEC) != 0) fail(errno, "can't make a pipe for '" + name + "'");
  Beginning child{program.c_str(), argument_list.data(), variable_list.data(), output, errors, -1,
                  getpid(),        error_pipe[1]};
  sigset_t every, before;
  sigfillset(&every);
  pthread_sigmask(SIG_BLOCK, &every, &before);
  int pid = group >= 0 ? begin_in(group, child) : -1;
  if (pid < 0) {
    child.members = members;
    pid = begin(child);
  }
  const int fork_error = errno;
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  close(error_pipe[1]);
  int code = 0;
  const bool failed = pid < 0 || read(error_pipe[0], &code, sizeof code) == sizeof code;
  close(error_pipe[0]);
  if (pid < 0) fail(fork_error, "can't fork for '" + name + "'");
  if (failed) {
    waitpid(pid, nullptr, 0);
    fail(code, "can't start '" + program + "'");
  }
  return pid;
}

/// Opens for appending, so that two descriptors on one path don't overwrite each other.
struct File {
  explicit File(const std::filesystem::path& path)
      : descriptor(open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600)) {
    if (descriptor < 0) fail(errno, "can't open '" + path.string() + "' for the output of a child");
  }
  ~File() { close(descriptor); }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  const int descriptor;
};

/// A control group that a child starts in: its folder, and the file to which a process writes to
/// enter by itself. A group that can't be opened costs one way to find leftovers, but not the
/// child.
struct Group {
  explicit Group(const std::filesystem::path& path)
      : folder(path.empty() ? -1 : open(path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC)),
        members(path.empty() ? -1 : open((path / "cgroup.procs").c_str(), O_WRONLY | O_CLOEXEC)) {}
  ~Group() {
    for (const int descriptor : {folder, members})
      if (descriptor >= 0) close(descriptor);
  }
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;
  const int folder, members;
};

/// Returns when the process has ended, or after this time. Before Linux 5.3 the kernel cannot tell,
/// and it returns after a moment.
void wait_for_end(int pid, std::chrono::milliseconds most) {
  static constexpr std::chrono::milliseconds kMoment{5};
  pollfd end{
      .fd = static_cast<int>(syscall(SYS_pidfd_open, pid, 0)), .events = POLLIN, .revents = 0};
  ::poll(&end, 1, static_cast<int>((end.fd >= 0 ? most : std::min(most, kMoment)).count()));
  if (end.fd >= 0) close(end.fd);
}

Exit from_status(int status) {
  return WIFSIGNALED(status) ? Exit{true, WTERMSIG(status)} : Exit{false, WEXITSTATUS(status)};
}

}  // namespace

Environment own_environment() {
  Environment variables;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    if (const auto at = text.find('='); at != std::string_view::npos)
      variables.emplace(text.substr(0, at), text.substr(at + 1));
  }
  return variables;
}

std::filesystem::path find_program(const std::string& program, const Environment& environment) {
  const auto executable = [](const std::string& path) {
    struct stat facts;
    return stat(path.c_str(), &facts) == 0 && S_ISREG(facts.st_mode) &&
           access(path.c_str(), X_OK) == 0;
  };
  if (program.find('/') != std::string::npos) return executable(program) ? program : "";
  const auto found = environment.find("PATH");
  const std::string path =
      found == environment.end() ? "/usr/local/bin:/usr/bin:/bin" : found->second;
  for (std::size_t at = 0; at <= path.size();) {
    const std::size_t end = std::min(path.find(':', at), path.size());
    const std::string candidate = path.substr(at, end - at) + "/" + program;
    if (executable(candidate)) return candidate;
    at = end + 1;
  }
  return {};
}

Child::Child(const Command& command, const std::filesystem::path& output,
             const std::filesystem::path& errors, const std::filesystem::path& cgroup) {
  const File out(output), error(errors.empty() ? output : errors);
  const Group group(cgroup);
  pid_ = start(command, out.descriptor, error.descriptor, group.folder, group.members);
}

Child::Child(const Command& command, int output, int errors)
    : pid_(start(command, output, errors)) {}

Child::Child(const Command& command, OwnStreams streams)
    : pid_(start(command, kKept, streams.output_to_error ? STDERR_FILENO : kKept)) {}

Child::Child(Child&& other) noexcept : pid_(std::exchange(other.pid_, 0)), exit_(other.exit_) {}

Child::~Child() {
  if (pid_ == 0 || exit_) return;
  kill(SIGKILL);
  static constexpr int kLooks = 200;
  for (int look = 0; look < kLooks && !poll(); ++look)
    wait_for_end(pid_, std::chrono::milliseconds(5));
}

std::optional<Exit> Child::poll() {
  if (exit_ || pid_ == 0) return exit_;
  int status = 0;
  const int got = waitpid(pid_, &status, WNOHANG);
  if (got == pid_) exit_ = from_status(status);
  // Another part of this program has waited for it: that it ended is known, but not how.
  if (got < 0 && errno == ECHILD) exit_ = Exit{false, -1};
  return exit_;
}

void Child::kill(int signal) const {
  if (pid_ > 0 && !exit_) ::kill(pid_, signal);
}

Output run_to_end(const Command& command, std::int64_t deadline_ms) {
  using Clock = std::chrono::steady_clock;
  static constexpr std::size_t kKept_bytes = 1 << 20;
  const MemoryFile out, error;
  Output output;
  {
    Child child(command, out.descriptor(), error.descriptor());
    const auto deadline = Clock::now() + std::chrono::milliseconds(deadline_ms);
    for (Clock::time_point now; !child.poll() && (now = Clock::now()) < deadline;)
      wait_for_end(child.pid(), std::chrono::ceil<std::chrono::milliseconds>(deadline - now));
    const auto exit = child.poll();
    output.timed_out = !exit;
    output.exit = exit.value_or(Exit{true, SIGKILL});
  }
  output.out = out.first(kKept_bytes);
  output.error = error.first(kKept_bytes);
  return output;
}

}  // namespace graphproof::launcher
