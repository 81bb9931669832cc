// A stack that a case is to run on: a JSON file that names its parts. A part that is missing is
// that of the machine.
//   {"nccl": "/opt/nccl-2.27/lib", "torch": "/venvs/torch-2.10", "driver": "/opt/driver-575/lib",
//    "environment": {"NCCL_GRAPH_REGISTER": "0"}}
#pragma once

#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "launcher/host/child.h"

namespace graphproof::cli {

/// The parts by the name of the component: nccl and driver are folders of libraries, torch is a
/// virtual environment, and every variable is a component of its own, named "env NAME". An empty
/// value: the variable is not set.
using StackChoice = std::map<std::string, std::string>;

/// Throws InputError for a file that can't be read, an unknown part, or a part that is not there:
/// no libnccl.so*, no libcuda.so*, no PyTorch.
StackChoice stack_choice_from(const std::filesystem::path& file);

/// The components in which they differ, sorted. A variable that only one of them names differs.
std::vector<std::string> differences(const StackChoice& a, const StackChoice& b);

/// The environment of a program that is to run with the components `of_b` of B and all others of A:
/// `own` with LD_LIBRARY_PATH (driver, NCCL, then the libraries of PyTorch), GRAPHPROOF_PYTHON and
/// the variables.
launcher::Environment environment_of(const StackChoice& a, const StackChoice& b,
                                     const std::set<std::string>& of_b, launcher::Environment own);

}  // namespace graphproof::cli
