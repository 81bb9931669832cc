// The options that say which cases are planned, the plan that they give for a device, and changes
// of its lines that depend on the device.
#pragma once

#include <CLI/CLI.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "launcher/backend/programs.h"
#include "launcher/cli/verb.h"
#include "matrix/plan/matrix_file.h"
#include "matrix/plan/plan.h"
#include "reports/record/job/plan.h"
#include "reports/record/run/run.h"

namespace graphproof::cli {

/// Which cases are planned, and for which device.
struct PlanOptions {
  std::string profile, matrix_file, where, extend, device = "auto";
  record::GpuSharing sharing;
  std::optional<std::uint64_t> seed;
};
void declare(CLI::App& app, PlanOptions& options);

/// A plan for this machine, and the seed of its run.
struct Planned {
  matrix::Plan plan;
  std::uint64_t seed = 1;
};
/// With `explain` the plan says what is unreachable. Throws InputError for an unknown profile, a
/// bad matrix file or a bad filter.
Planned make_plan(const PlanOptions& options, const launcher::Device& device,
                  const Surroundings& surroundings, bool explain = false);

/// The matrix file that a run was planned from; absent if it is gone or has changed since.
std::optional<matrix::MatrixFile> recorded_matrix(const record::Run& run,
                                                  const Surroundings& surroundings);

/// Sets the isolation of the cases. Faults and hazards keep the isolation that their table chose.
void apply_isolation(std::vector<record::PlanLine>& lines, const std::string& isolation);
/// Marks cases that need more ranks than the device has room for as skipped.
void skip_too_large(std::vector<record::PlanLine>& lines, const launcher::Device& device);
/// For cases whose ranks share GPUs: drops required checks that need a GPU for each rank, and skips
/// cases of a single collective.
void apply_gpu_sharing(std::vector<record::PlanLine>& lines, const launcher::Device& device,
                       const matrix::CheckTable& checks);

}  // namespace graphproof::cli
