// The software and hardware stack of this program, as the libraries and the machine report it: the
// field `stack` of run.json. Works without a GPU and without MPI_Init; a missing part is "none".
#pragma once

#include <nlohmann/json.hpp>

#include <string>
#include <string_view>

namespace graphproof::suites {

/// An object with the fields torch_version, cuda_version, nccl_version, driver, cudnn_version, mpi,
/// gpus, sm, kernel, host, cpus, compute_sanitizer, environment.
nlohmann::json fingerprint();

/// The version of the compute-sanitizer in PATH, "2025.3.1.0"; "none" if there is none that
/// answers.
std::string compute_sanitizer_version();

/// Whether an environment variable is part of the fingerprint: NCCL_*, CUDA_*, PYTORCH_*, OMPI_*
/// and the few others that change sums.
bool is_stack_variable(std::string_view name);

/// The value for printing: "redacted" if the name or the value looks like a secret.
std::string redacted(std::string_view name, std::string_view value);

}  // namespace graphproof::suites
