// One child process in a session of its own, its output in a file. Ends with the launcher: the
// kernel sends it SIGTERM when the launcher dies, even by SIGKILL. What a child starts in turn is
// found and ended by launcher/host/ending.h.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace graphproof::launcher {

using Environment = std::map<std::string, std::string>;

/// What is started: arguments[0] is looked up in PATH of `environment`, which is the whole
/// environment of the child.
struct Command {
  std::vector<std::string> arguments;
  Environment environment;
};

/// This process's own environment.
Environment own_environment();

/// How a process ended: by itself with an exit code, or by a signal.
struct Exit {
  bool signalled = false;
  int value = 0;
  bool operator==(const Exit&) const = default;
};

/// The full path of `program` by the PATH of `environment`; empty where there is none that may be
/// executed.
std::filesystem::path find_program(const std::string& program, const Environment& environment);

class Child {
 public:
  /// Starts it; standard output and error go to the end of `output` (errors to `errors` if given),
  /// standard input is empty. It begins in the control group whose folder is `cgroup` if given
  /// (cgroup.h). Throws std::system_error naming the program when it can't be started.
  Child(const Command& command, const std::filesystem::path& output,
        const std::filesystem::path& errors = {}, const std::filesystem::path& cgroup = {});
  /// Its output and errors go to open descriptors, which stay the caller's.
  Child(const Command& command, int output, int errors);
  Child(Child&&) noexcept;
  Child& operator=(Child&&) = delete;
  /// Kills its session's first process if it still runs, and waits for it, a second at most: one
  /// inside a driver call may never end.
  ~Child();

  /// Also the id of its session.
  int pid() const { return pid_; }
  /// Null while it runs. Never waits.
  std::optional<Exit> poll();
  void kill(int signal) const;

 private:
  int pid_ = 0;
  std::optional<Exit> exit_;
};

struct Output {
  bool timed_out = false;
  Exit exit;
  std::string out, error;  // at most the first MiB of each
};

/// Runs a short program to its end, or kills it at the deadline. Waits: not for use inside the run
/// loop.
Output run_to_end(const Command& command, std::int64_t deadline_ms);

}  // namespace graphproof::launcher
