// The programs that a run starts, found in the folder of this program, and the software stack that
// they report.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "launcher/host/child.h"
#include "reports/record/run/run.h"

namespace graphproof::launcher {

/// The folder of this program (/proc/self/exe).
std::filesystem::path own_folder();

/// The device of a run, and what it offers here.
struct Device {
  std::string name;  // sim | cuda
  std::filesystem::path rank_program;
  record::Stack stack;            // redacted
  std::vector<std::string> gpus;  // as CUDA_VISIBLE_DEVICES spells them; empty on sim
  int slots = 0;                  // GPUs; on sim the bound on ranks
  std::string note;  // why `auto` did not take the GPUs although a program for them is there
  record::GpuSharing sharing = {};

  int most_ranks() const { return slots * sharing.ranks_per_gpu; }
};

// The number of ranks that run at the same time on a host without GPUs; also the largest world
// there.
inline constexpr int kSimSlots = 4;

/// Chooses the device of a run. `wanted` is auto, sim or cuda; auto is cuda where its rank program
/// exists and reports at least one GPU. Asks a rank program for its stack, which may take seconds.
/// Throws matrix::InputError when the wanted device can't be had.
Device choose_device(std::string_view wanted, const std::filesystem::path& folder);

/// The judge, in the same folder as this program. Throws matrix::InputError when it is missing.
std::filesystem::path judge_program(const std::filesystem::path& folder);

/// The rank program of a device. Throws matrix::InputError when it is missing.
std::filesystem::path rank_program(std::string_view device, const std::filesystem::path& folder);

/// What a rank program prints on --fingerprint when `command` runs it, on this host or on another.
record::Stack fingerprint(const Command& command, std::int64_t deadline_ms);
/// What a rank program prints on --fingerprint, as a Stack. Throws matrix::InputError naming what
/// went wrong.
record::Stack fingerprint(const std::filesystem::path& rank_program);

}  // namespace graphproof::launcher
