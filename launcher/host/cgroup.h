// A control group (v2) for each batch. A process that starts in it stays in it, whatever becomes of
// its session and its environment, and one write to a file kills them all. The group is made below
// the group of this process, where that may be written. Elsewhere, as in most containers, there is
// none, and only session and mark identify the processes of a batch.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace graphproof::launcher {

/// The folder of this process's own group; empty where no group can be made below it. The look
/// costs as much as reading all mounts, so a caller that needs the folder often keeps it.
std::filesystem::path cgroup_parent();

/// The group of one batch.
class Cgroup {
 public:
  /// Makes the group of the batch with this mark (processes.h). Null where none can be made.
  static std::unique_ptr<Cgroup> make(const std::string& mark,
                                      const std::filesystem::path& parent = cgroup_parent());
  /// Removes the group, unless something still runs in it.
  ~Cgroup();
  Cgroup(const Cgroup&) = delete;
  Cgroup& operator=(const Cgroup&) = delete;

  /// The folder to give to a child that starts in the group (child.h). What the child starts is in
  /// the group as well.
  const std::filesystem::path& folder() const { return folder_; }

 private:
  explicit Cgroup(std::filesystem::path folder) : folder_(std::move(folder)) {}
  std::filesystem::path folder_;
};

/// The groups of this mark, also those that a dead launcher left. A mark that ends with a dot
/// stands for all marks that begin with it.
std::vector<std::filesystem::path> cgroups_of(
    std::string_view mark, const std::filesystem::path& parent = cgroup_parent());
/// The ids of the processes in these groups.
std::vector<int> cgroup_members(std::string_view mark,
                                const std::filesystem::path& parent = cgroup_parent());
/// Sends SIGKILL to all processes in these groups, and to what they start meanwhile. Does nothing
/// before Linux 5.14, which has no file for it.
void kill_cgroups(std::string_view mark, const std::filesystem::path& parent = cgroup_parent());
/// Removes those of these groups that are empty.
void remove_cgroups(std::string_view mark);

}  // namespace graphproof::launcher
