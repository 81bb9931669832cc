// One child process in a session of its own, with its output in a file or where this process has
// its own. It ends with the launcher:
// the kernel sends it SIGTERM when the launcher dies, even by SIGKILL. Processes that a child
// starts are found and ended by launcher/host/ending.h.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace graphproof::launcher {

using Environment = std::map<std::string, std::string>;

/// A program to start: arguments[0] is looked up in PATH of `environment`, which is the whole
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

/// The full path of `program` by the PATH of `environment`; empty where no such program may be
/// executed.
std::filesystem::path find_program(const std::string& program, const Environment& environment);

/// A running child, or one that has ended.
class Child {
 public:
  /// Starts the command. Standard output and error go to the end of `output` (errors to `errors` if
  /// given); standard input is empty. The child starts in the control group whose folder is
  /// `cgroup` if given (cgroup.h). Throws std::system_error naming the program when it can't be
  /// started.
  Child(const Command& command, const std::filesystem::path& output,
        const std::filesystem::path& errors = {}, const std::filesystem::path& cgroup = {});
  /// Starts the command with its output and errors on open descriptors, which the caller still
  /// owns.
  Child(const Command& command, int output, int errors);
  /// Starts the command with the standard streams of this process, or with its standard error for
  /// both of the command's outputs.
  struct OwnStreams {
    bool output_to_error = false;
  };
  Child(const Command& command, OwnStreams);
  Child(Child&&) noexcept;
  Child& operator=(Child&&) = delete;
  /// Kills the child if it still runs, and waits for it, one second at most: a process inside a
  /// driver call may never end.
  ~Child();

  /// The id of the process, and of its session.
  int pid() const { return pid_; }
  /// How the child ended; nothing while it runs. Never waits.
  std::optional<Exit> poll();
  void kill(int signal) const;

 private:
  int pid_ = 0;
  std::optional<Exit> exit_;
};

/// What a program left that was run to its end.
struct Output {
  bool timed_out = false;
  Exit exit;
  std::string out, error;  // at most the first MiB of each
};

/// Runs a short program to its end, or kills it at the deadline. Waits, so the run loop must not
/// call it.
Output run_to_end(const Command& command, std::int64_t deadline_ms);

}  // namespace graphproof::launcher
