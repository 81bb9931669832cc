// The options that `run`, `plan` and other verbs share, and how they become a device, a plan and a
// run.
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

/// Which cases are planned, and for which device.
struct PlanOptions {
  std::string profile, matrix_file, where, extend, device = "auto";
  int ranks_per_gpu = 1;
  std::optional<std::uint64_t> seed;
};
void declare(CLI::App& app, PlanOptions& options);

/// The device that `wanted` names. Throws InputError for another word than auto, sim or cuda, and
/// if `ranks_per_gpu` ranks cannot share a GPU of it.
launcher::Device device_of(const std::string& wanted, const Surroundings& surroundings,
                           int ranks_per_gpu = 1);
/// The device for verbs that run nothing. Without rank programs it is the simulated device with an
/// unknown stack, an empty rank_program and a note.
launcher::Device device_for_planning(const std::string& wanted, const Surroundings& surroundings,
                                     int ranks_per_gpu = 1);
void declare_ranks_per_gpu(CLI::App& app, int& ranks_per_gpu);

matrix::Machine machine_of(const launcher::Device& device);

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

/// How a run proceeds, independent of its cases.
struct RunOptions {
  std::optional<std::string> run_dir;
  std::string isolation, budget;
  int max_fail = 0, confirm = 0;
  double max_gpu_minutes = 0;
  bool cold = false;
  ClusterOptions cluster;
};
void declare(CLI::App& app, RunOptions& options);

/// A new id for a run that begins now.
std::string new_run_id();
/// A RunSetup without plan, profile and folder.
launcher::RunSetup run_setup(const launcher::Device& device, const RunOptions& options,
                             const Surroundings& surroundings);
/// The same with a new run folder. Options that contradict each other throw InputError before the
/// folder is made.
launcher::RunSetup new_run(const launcher::Device& device, const RunOptions& options,
                           const Surroundings& surroundings);
/// The RunSetup of a recorded run. Throws InputError if the run cannot be continued here: the stack
/// is another one, or the plan is not the recorded one.
launcher::RunSetup recorded_run(const std::filesystem::path& folder,
                                const Surroundings& surroundings);

/// Sets the isolation of the cases. Faults and hazards keep the isolation that their table chose.
void apply_isolation(std::vector<record::PlanLine>& lines, const std::string& isolation);
/// Marks cases that need more ranks than the device has room for as skipped.
void skip_too_large(std::vector<record::PlanLine>& lines, const launcher::Device& device);
/// For cases whose ranks share GPUs: drops required checks that need a GPU for each rank, and skips
/// cases of a single collective.
void apply_gpu_sharing(std::vector<record::PlanLine>& lines, const launcher::Device& device,
                       const matrix::CheckTable& checks);

/// A recorded case, or a case that is known only by its name.
struct FoundCase {
  std::optional<std::filesystem::path> run;  // the folder of the run that recorded it
  std::optional<record::PlanLine> line;      // its line in the plan of that run
  matrix::Case test_case;
};
/// The case that a user means by CASE: an id prefix or a name, in RUN or in the latest run; or the
/// name of any case. Throws InputError with the candidates if it is ambiguous.
FoundCase find_case(const std::string& reference, const Surroundings& surroundings);

}  // namespace graphproof::cli
