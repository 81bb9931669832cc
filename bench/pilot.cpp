// What a no-op case costs on nodes of a cluster: a Slurm of its own on this host, one allocation, ranks that follow an empty
// script. Prints wall time per case in batches and in processes of their own, and the start of the allocation.
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "launcher/cluster/commands.h"
#include "launcher/cluster/own_slurm.h"
#include "launcher/cluster/pilot.h"
#include "launcher/run.h"
#include "reports/outcome.h"

namespace {

using namespace graphproof;
namespace fs = std::filesystem;

void measure(const cluster::OwnSlurm& slurm, const fs::path& build, int cases, const std::string& isolation) {
  const record::ScratchFolder scratch{"/tmp"};
  launcher::RunSetup setup;
  setup.folder = scratch.path() / "run";
  fs::create_directories(setup.folder);
  setup.run.run_id = setup.run_name = "20260101-000000-be9c";
  setup.run.started = "2026-01-01T00:00:00Z";
  setup.run.command = {"bench"};
  setup.run.profile = "bench";
  setup.run.matrix = {"bench", std::string(64, '0'), 1};
  setup.run.device = "sim";
  setup.run.engine = "slurm";
  setup.run.slots = 4;
  for (std::size_t phase = 0; phase < record::kPhaseCount; ++phase) setup.run.options.limits_ms[static_cast<record::Phase>(phase)] = 30000;
  setup.effects = {{"D01.lockstep", {"fail.numerics", {"sim", "cuda"}}}};
  setup.rank_program = setup.judge_program = build / "tests/graphproof_fake_rank";
  for (int number = 0; number < cases; ++number) {
    record::PlanLine line;
    char id[32];
    std::snprintf(id, sizeof id, "%016x", 0xbe0000 + number);
    line.id = id;
    line.name = "case" + std::to_string(number);
    line.axes = {{"impl", "manual"}, {"fault", "none"}};
    line.ranks = 1;
    line.isolation = isolation;
    line.required_checks = {"D01.lockstep"};
    line.why = "bench";
    line.expected_seconds = 0.01;
    setup.plan.push_back(line);
  }
  const record::Cluster options{.engine = "slurm", .nodes = 2, .slots = 4};
  const cluster::AgentStart start{setup.run.run_id, "sim", setup.folder, {}, build / "bin/graphproof", setup.rank_program};
  setup.allocation = std::make_shared<cluster::Pilot>(cluster::PilotSetup{
      .run_folder = setup.folder, .nodes = 2, .slots = 4,
      .command = [&](const fs::path& channels) {
        cluster::AgentStart agents = start;
        agents.channels = channels;
        return cluster::pilot_command(options, agents, slurm.environment());
      },
      .cancel = {}});
  const reports::RunResult result = launcher::run(setup, {});
  int passed = 0;
  for (const reports::CaseResult& one : result.cases) passed += one.record.verdict.text() == "pass";
  std::printf("%-8s %5d cases  %6.2f s  %6.2f ms a case  %d passed\n", isolation.c_str(), cases, result.wall_seconds, result.wall_seconds * 1000 / cases, passed);
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
