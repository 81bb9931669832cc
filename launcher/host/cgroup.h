// A control group (v2) for each batch: whoever is started in it stays in it, whatever becomes of
// its session and its environment, and all of them end at one word. Made below the group of this
// process where that may be written; elsewhere, as in most containers, there is none, and session
// and mark alone tell whose a process is.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace graphproof::launcher {

/// The folder of this process's own group; empty where groups can't be made below it. To tell takes
/// as long as reading all mounts: whoever asks for groups often, asks for it once.
std::filesystem::path cgroup_parent();

class Cgroup {
 public:
  /// Of the batch with this mark (processes.h). Null where none can be made.
  static std::unique_ptr<Cgroup> make(const std::string& mark,
                                      const std::filesystem::path& parent = cgroup_parent());
  /// Removes it. One in which something still runs stays.
  ~Cgroup();
  Cgroup(const Cgroup&) = delete;
  Cgroup& operator=(const Cgroup&) = delete;

  /// Whoever begins in it stays in it, and so does what it starts (child.h).
  const std::filesystem::path& folder() const { return folder_; }

 private:
  explicit Cgroup(std::filesystem::path folder) : folder_(std::move(folder)) {}
  std::filesystem::path folder_;
};

/// The groups of this mark, also those that a dead launcher left; of all marks that begin with it
/// if it ends with a dot.
std::vector<std::filesystem::path> cgroups_of(
    std::string_view mark, const std::filesystem::path& parent = cgroup_parent());
/// Who is in them.
std::vector<int> cgroup_members(std::string_view mark,
                                const std::filesystem::path& parent = cgroup_parent());
/// SIGKILL to all that are in them, and to what they start meanwhile. Before Linux 5.14 there is no
/// such word.
void kill_cgroups(std::string_view mark, const std::filesystem::path& parent = cgroup_parent());
/// Removes those that are empty.
void remove_cgroups(std::string_view mark);

}  // namespace graphproof::launcher
