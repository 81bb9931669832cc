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
/// if `ranks_per_gpu` ranks cannot share a GPU of it.
launcher::Device device_of(const std::string& wanted, const Surroundings& surroundings,
                           int ranks_per_gpu = 1);

/// The device for verbs that run nothing. Without rank programs it is the simulated device with an
/// unknown stack, an empty rank_program and a note.
launcher::Device device_for_planning(const std::string& wanted, const Surroundings& surroundings,
                                     int ranks_per_gpu = 1);

void declare_ranks_per_gpu(CLI::App& app, int& ranks_per_gpu);

/// The subjects that the user's Python runs: all but reference.
std::vector<std::string> other_subjects(const matrix::Catalogue& catalogue);

/// What the rules and the expression language know about a device.
matrix::Machine machine_of(const launcher::Device& device);

}  // namespace graphproof::cli
