// The stack that this program runs on, as the libraries and the machine report it: run.json's
// `stack`. Works without a GPU and without MPI_Init; what is not there reads "none".
#pragma once

#include <nlohmann/json.hpp>

#include <string>
#include <string_view>

namespace graphproof::suites {

/// One object: torch_version, cuda_version, nccl_version, driver, cudnn_version, mpi, gpus, sm,
/// kernel, host, cpus, environment.
nlohmann::json fingerprint();

/// Whether a variable belongs into the fingerprint: NCCL_*, CUDA_*, PYTORCH_*, OMPI_* and the few
/// that change sums.
bool is_stack_variable(std::string_view name);

/// The value as it may be printed: "redacted" where the name or the value looks like a secret.
std::string redacted(std::string_view name, std::string_view value);

}  // namespace graphproof::suites
