// From the options that run, plan and others share to a plan for this machine.
#pragma once

#include <CLI/CLI.hpp>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "launcher/backend/programs.h"
#include "launcher/cli/cluster_options.h"
#include "launcher/cli/verb.h"
#include "launcher/run/run.h"
#include "matrix/case/machine.h"
#include "matrix/plan/matrix_file.h"
#include "matrix/plan/plan.h"
#include "reports/record/job/plan.h"

namespace graphproof::cli {

struct PlanOptions {
  std::string profile, matrix_file, where, extend, device = "auto";
  int ranks_per_gpu = 1;
  std::optional<std::uint64_t> seed;
};
void declare(CLI::App& app, PlanOptions& options);

/// The device that `wanted` means; InputError for another word than auto, sim or cuda, and where
/// its ranks can't share GPUs.
launcher::Device device_of(const std::string& wanted, const Surroundings& surroundings,
                           int ranks_per_gpu = 1);
/// The same where nothing is run: without rank programs the simulated device with an unknown stack.
launcher::Device device_or_bare(const std::string& wanted, const Surroundings& surroundings,
                                int ranks_per_gpu = 1);
void declare_ranks_per_gpu(CLI::App& app, int& ranks_per_gpu);

matrix::Machine machine_of(const launcher::Device& device);

/// A plan for this machine, and the seed of its run.
struct Planned {
  matrix::Plan plan;
  std::uint64_t seed = 1;
};
/// `explain`: say what is unreachable. Throws InputError for an unknown profile, a bad matrix file
/// or filter.
Planned make_plan(const PlanOptions& options, const launcher::Device& device,
                  const Surroundings& surroundings, bool explain = false);

/// The matrix file that a run was planned from; nothing where it is not at hand as it was then.
std::optional<matrix::MatrixFile> recorded_matrix(const record::Run& run,
                                                  const Surroundings& surroundings);

/// How a run goes, whatever its cases are.
struct RunOptions {
  std::optional<std::string> run_dir;
  std::string isolation, budget;
  int max_fail = 0, confirm = 0;
  double max_gpu_minutes = 0;
  bool cold = false;
  ClusterOptions cluster;
};
void declare(CLI::App& app, RunOptions& options);

/// The id of a run that begins now.
std::string new_run_id();
/// Everything of a RunSetup but its plan, profile and folder.
launcher::RunSetup run_setup(const launcher::Device& device, const RunOptions& options,
                             const Surroundings& surroundings);
/// The same in a fresh run folder. InputError for options that make no sense, before the folder is
/// made.
launcher::RunSetup new_run(const launcher::Device& device, const RunOptions& options,
                           const Surroundings& surroundings);
/// The RunSetup of a recorded run, as it was. InputError where this machine or this version can't
/// go on with it: another stack, or a plan that is not the recorded one.
launcher::RunSetup recorded_run(const std::filesystem::path& folder,
                                const Surroundings& surroundings);

/// Gives the cases the isolation that was asked for; faults and hazards keep theirs, which their
/// catalogue chose.
void isolate(std::vector<record::PlanLine>& lines, const std::string& isolation);
/// Skips what needs more ranks than the device has room for.
void fit(std::vector<record::PlanLine>& lines, const launcher::Device& device);
/// Of cases whose ranks share GPUs: requires no check that asks for a rank's own, and skips those
/// of a single collective.
void heed_shared_gpus(std::vector<record::PlanLine>& lines, const launcher::Device& device,
                      const matrix::CheckTable& checks);

/// A recorded case, or one that only its name tells.
struct FoundCase {
  std::optional<std::filesystem::path> run;  // where it was recorded
  std::optional<record::PlanLine> line;      // as it was planned there
  matrix::Case test_case;
};
/// CASE as users write it: an id prefix or a name, of RUN or of the latest run; or the name of any
/// case. InputError with the candidates when it is ambiguous.
FoundCase find_case(const std::string& reference, const Surroundings& surroundings);

}  // namespace graphproof::cli
