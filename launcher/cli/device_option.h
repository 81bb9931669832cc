// The option --device, and the device that it means.
#pragma once

#include <CLI/CLI.hpp>

#include <string>
#include <vector>

#include "launcher/backend/programs.h"
#include "launcher/cli/verb.h"
#include "matrix/case/machine.h"

namespace graphproof::cli {

/// The device that `wanted` names. Throws InputError for another word than auto, sim or cuda, and
/// if its GPUs cannot be shared in this way.
launcher::Device device_of(const std::string& wanted, const Surroundings& surroundings,
                           const record::GpuSharing& sharing = {});

/// The device for verbs that run nothing. Without rank programs it is the simulated device with an
/// unknown stack, an empty rank_program and a note.
launcher::Device device_for_planning(const std::string& wanted, const Surroundings& surroundings,
                                     const record::GpuSharing& sharing = {});

/// Whether ranks of one case share `gpus`, those of this host, while CUDA's Multi-Process Service
/// does not run here: their kernels then wait for each other through turns of milliseconds. False
/// for the GPUs of a cluster, where `gpus` is empty and nobody knows.
bool ranks_take_turns(const std::vector<std::string>& gpus, const record::GpuSharing& sharing);
/// How much longer their cases take, and they may be silent: docs/guide/sharing-gpus.md.
inline constexpr int kTimesOfTurns = 10;
/// A line that says so, if they take turns.
std::string turns_line(const std::vector<std::string>& gpus, const record::GpuSharing& sharing);

void declare_ranks_per_gpu(CLI::App& app, int& ranks_per_gpu);
/// That option, and --cases-per-gpu.
void declare_sharing(CLI::App& app, record::GpuSharing& sharing);

/// The subjects that the user's Python runs: all but reference.
std::vector<std::string> other_subjects(const matrix::Catalogue& catalogue);

/// What the rules and the expression language know about a device.
matrix::Machine machine_of(const launcher::Device& device);

}  // namespace graphproof::cli
