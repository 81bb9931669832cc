// What a no-op case costs on nodes of a cluster: a Slurm of its own on this host, one allocation,
// ranks that follow an empty script. Prints wall time per case in batches and in processes of their
// own, and the start of the allocation.
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "launcher/cluster/commands.h"
#include "launcher/cluster/pilot.h"
#include "launcher/cluster/testing/own_slurm.h"
#include "launcher/testing/fake_run.h"
#include "reports/outcome/outcome.h"

namespace {

using namespace graphproof;
namespace fs = std::filesystem;

void measure(const cluster::OwnSlurm& slurm, const fs::path& build, int cases,
             const std::string& isolation) {
  const record::ScratchFolder scratch{"/tmp"};
  const fs::path folder = scratch.path() / "run";
  fs::create_directories(folder);
  launcher::RunSetup setup =
      launcher::fake_setup(folder, "20260101-000000-be9c", build / "tests/graphproof_fake_rank");
  setup.run.engine = "slurm";
  for (auto& [phase, limit_ms] : setup.run.options.limits_ms) limit_ms = 30000;
  for (int number = 0; number < cases; ++number)
    setup.plan.push_back(launcher::fake_line(number, 1, "", isolation));
  const record::Cluster options{.engine = "slurm", .nodes = 2, .slots = 4};
  const cluster::AgentStart start{
      setup.run.run_id, "sim", setup.folder, {}, build / "bin/graphproof", setup.rank_program};
  setup.allocation = std::make_shared<cluster::Pilot>(
      cluster::PilotSetup{.run_folder = setup.folder,
                          .nodes = 2,
                          .slots = 4,
                          .command =
                              [&](const fs::path& channels) {
                                cluster::AgentStart agents = start;
                                agents.channels = channels;
                                return cluster::pilot_command(options, agents, slurm.environment());
                              },
                          .cancel = {}});
  const reports::RunResult result = launcher::run(setup, {});
  int passed = 0;
  for (const reports::CaseResult& one : result.cases) passed += one.record.verdict.text() == "pass";
  std::printf("%-8s %5d cases  %6.2f s  %6.2f ms a case  %d passed\n", isolation.c_str(), cases,
              result.wall_seconds, result.wall_seconds * 1000 / cases, passed);
}

}  // namespace

int main(int count, char** arguments) {
  if (const std::string why = cluster::OwnSlurm::missing(); !why.empty()) {
    std::fprintf(stderr, "%s\n", why.c_str());
    return 3;
  }
  const int cases = count > 1 ? std::atoi(arguments[1]) : 1000;
  const fs::path build = fs::read_symlink("/proc/self/exe").parent_path().parent_path();
  const cluster::OwnSlurm slurm({.nodes = 2, .cpus = 8});
  measure(slurm, build, 1, "batch");
  measure(slurm, build, cases, "batch");
  measure(slurm, build, 20, "process");
  return 0;
}
