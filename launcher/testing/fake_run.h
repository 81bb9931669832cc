// A run whose ranks and judge follow a script (fake_rank.cpp), for the launcher's own tests and
// benches.
#pragma once

#include <cstdio>
#include <filesystem>
#include <string>

#include "launcher/run/run.h"

namespace graphproof::launcher {

/// The plan line of case `number`; `script` is the value of GRAPHPROOF_FAKE for its ranks.
inline record::PlanLine fake_line(int number, int ranks, const std::string& script,
                                  const std::string& isolation = "batch") {
  record::PlanLine line;
  char id[32];
  std::snprintf(id, sizeof id, "%016x", 0xabc000 + number);
  line.id = id;
  line.name = "case" + std::to_string(number);
  line.axes = {{"impl", "manual"}, {"fault", "none"}};
  line.ranks = ranks;
  line.isolation = isolation;
  line.required_checks = {"D01.lockstep"};
  line.why = "a test";
  line.expected_seconds = 0.1;
  if (!script.empty()) line.environment = {{"GRAPHPROOF_FAKE", script}};
  return line;
}

/// The setup without a plan, on sim with four slots; a phase may take two seconds.
inline RunSetup fake_setup(const std::filesystem::path& folder, const std::string& run_id,
                           const std::filesystem::path& fake_rank) {
  RunSetup setup;
  setup.folder = folder;
  setup.run.run_id = setup.run_name = run_id;
  setup.run.started = "2026-01-01T00:00:00Z";
  setup.run.command = {"test"};
  setup.run.profile = "test";
  setup.run.matrix = {"test", std::string(64, '0'), 1};
  setup.run.device = "sim";
  setup.run.engine = "local";
  setup.run.slots = 4;
  setup.run.stack.mpi = "Open MPI";
  for (std::size_t i = 0; i < record::kPhaseCount; ++i)
    setup.run.options.limits_ms[static_cast<record::Phase>(i)] = 2000;
  setup.run.options.limits_ms[record::Phase::init] =
      15000;  // mpirun itself takes a second on a busy machine
  setup.effects = {{"D01.lockstep", {"fail.numerics", {"sim", "cuda"}}}};
  setup.rank_program = setup.judge_program = fake_rank;
  return setup;
}

}  // namespace graphproof::launcher
