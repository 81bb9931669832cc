// Whether this host can run cases: what they need exists and is enough, and nothing of an earlier
// run is in the way. Facts are gathered in one place and judged in another, by a table. What a
// single case needs is checked when it is planned.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "launcher/doctor/all_reduce.h"

namespace graphproof::launcher {

enum class Health { ok, warning, failure };

/// What one check found, as a message: what was got, what is wanted, why, and what to do next.
struct Finding {
  std::string check;  // "open_files"
  Health health = Health::ok;
  std::string got, want, why, next;
};

/// The facts of one host as it is now. A member without a value could not be found out.
struct HostFacts {
  std::string host, device;  // sim | cuda
  int slots = 1;
  std::filesystem::path folder;  // the folder of the runs
  std::optional<std::int64_t> disk_free_bytes, memory_free_bytes, shm_free_bytes;
  std::optional<std::int64_t> locked_memory_bytes, open_files;  // limits; -1: none
  bool starter = false;                                         // mpirun was found
  std::vector<std::string> nccl_libraries;    // those that the rank program would load
  std::vector<std::string> marked_processes;  // "4711 graphproof-rank" of runs, of this user
  std::vector<std::string> folder_faults;     // what a run folder must be able to do and cannot
  /// The state of a GPU.
  struct Gpu {
    std::string name;
    std::optional<std::int64_t> used_bytes;
    bool exclusive_process = false;
    bool mps = false;  // a server of the Multi-Process Service runs on it
    std::int64_t uncorrected_errors = 0;
    bool slowed_by_heat = false;
  };
  std::vector<Gpu> gpus;
  std::optional<AllReduceTry> all_reduce;  // nothing: it was not tried
  /// Versions that are known to be bad for a use of graphs, one sentence each. Nothing: the
  /// versions were not asked for.
  std::optional<std::vector<std::string>> bad_versions;
};

/// The files that the dynamic loader would map for `program`, sorted; empty if it can't be started.
std::vector<std::string> loaded_libraries(const std::filesystem::path& program);

/// The library files of the ranks, sorted.
struct RankLibraries {
  std::vector<std::string> paths;
  std::string
      incomplete;  // why those that are opened during a step are missing; "" if they are not
};
/// Those that the dynamic loader maps, and those that a rank has open after a step on its device.
RankLibraries rank_libraries(const std::filesystem::path& rank_program);

/// Looks at the host. Starts nothing but the dynamic loader on `rank_program`, if given. Takes a
/// few seconds at most.
HostFacts look_at_host(const std::filesystem::path& folder, const std::string& device, int slots,
                       const std::vector<std::string>& gpus,
                       const std::filesystem::path& rank_program);

/// The same before a host's first case, and before the next one after trouble: on GPUs also what
/// the rank program loads, and an all-reduce where there are several. Takes a minute at most.
HostFacts look_before_cases(const std::filesystem::path& folder, const std::string& device,
                            int slots, const std::vector<std::string>& gpus,
                            const std::filesystem::path& rank_program);

/// Judges the facts: one finding a check, also where all is well.
std::vector<Finding> examine(const HostFacts& facts);

// The names of the files by which a folder is tried begin like this.
inline constexpr std::string_view kFolderProbe = ".doctor-";

/// Tries in `folder` what a shared or local folder must do for a run: a lock that a second opener
/// does not get, appends of two openers that never overwrite each other, a rename that replaces.
/// Returns what it does not do.
std::vector<std::string> folder_faults(const std::filesystem::path& folder);

/// What the user should read of the findings without having asked, a line each: what is not well,
/// and the figure of an all-reduce.
std::vector<std::string> notable(const std::vector<Finding>& findings);

Health worst(const std::vector<Finding>& findings);
std::string_view name(Health health);
/// graphproof-doctor/1.
nlohmann::ordered_json to_json(const HostFacts& facts, const std::vector<Finding>& findings);

}  // namespace graphproof::launcher
