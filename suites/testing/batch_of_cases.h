// Test support for the rank program: a run folder with one batch of cases, which is run without a
// launcher. Needs the built programs and mpirun.
#pragma once

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "matrix/catalogue/catalogue.h"
#include "reports/record/evidence/evidence.h"
#include "reports/record/job/batch.h"
#include "reports/record/job/context.h"
#include "reports/record/run/checks.h"
#include "reports/record/schema/violations.h"
#include "reports/record/text/file.h"

namespace graphproof::suites {

namespace fs = std::filesystem;

inline fs::path built_program(const char* name) {
  const char* folder = std::getenv("GRAPHPROOF_BIN");
  return fs::path(folder ? folder : "bin") / name;
}

class BatchOfCases {
 public:
  BatchOfCases(const matrix::Catalogue& catalogue, const std::string& test,
               const std::vector<matrix::Case>& cases)
      : catalogue_(catalogue),
        run_(fs::temp_directory_path() / ("graphproof-" + test + "-" + std::to_string(getpid()))) {
    fs::remove_all(run_);
    batch_.run_id = "20261121-101500-0000";
    batch_.batch = "b001";
    batch_.device = "sim";
    batch_.seed = 1;
    batch_.isolation = "batch";
    batch_.store = run_ / "batches/b001/store";
    batch_.log_folder = run_ / "batches/b001";
    batch_.mark = "test";
    for (std::size_t i = 0; i < record::kPhaseCount; ++i)
      batch_.limits_ms[static_cast<record::Phase>(i)] = 60'000;
    for (const matrix::Case& test_case : cases) {
      const std::string id = matrix::case_id(test_case);
      batch_.world_size = static_cast<int>(matrix::world_size(catalogue_.axes, test_case));
      batch_.cases.push_back({.id = id,
                              .name = matrix::case_name(catalogue_.axes, test_case),
                              .attempt = 1,
                              .axes = matrix::effective_values(catalogue_.axes, test_case),
                              .evidence_folder = attempt_folder(id)});
    }
    fs::create_directories(batch_.log_folder);
    record::write_json(file(), record::to_json(batch_));
  }
  ~BatchOfCases() {
    if (!testing::Test::HasFailure()) fs::remove_all(run_);
  }

  fs::path attempt_folder(const std::string& id) const { return run_ / "cases" / id / "attempt-1"; }
  const record::Batch& batch() const { return batch_; }

  /// Runs the batch and returns the exit status: of the program that starts the ranks as the
  /// launcher does, or of the rank program itself if `with_starter` is false.
  int run(bool with_starter = true) const {
    const std::string command = rank("--batch", file());
    if (!with_starter) return start(command);
    const bool alone = batch_.world_size == 1;
    return start((alone ? built_program("graphproof-start").string() + " 1 "
                        : "mpirun -np " + std::to_string(batch_.world_size) + kPlacement) +
                 command);
  }
  /// Runs the batch with another batch file for the last rank.
  int run(const fs::path& last) const { return start_with("--batch", last); }

  /// Runs the cases again to find their first divergent tensor. `last` is the batch file of the
  /// last rank, if it differs.
  int look_for_divergence(const fs::path& last = {}) const {
    return start_with("--divergence", last);
  }

  fs::path file() const { return run_ / "batches/b001/batch.json"; }

  record::Evidence evidence(const std::string& id, int rank) const {
    return record::read_evidence(attempt_folder(id) / record::evidence_file_name(rank));
  }

  /// The judge's result of each check of a case, by name.
  std::map<std::string, record::CheckResult> judge(const record::BatchCase& listed) const {
    record::Context context{.run_id = batch_.run_id,
                            .case_id = listed.id,
                            .attempt = 1,
                            .batch = batch_.batch,
                            .device = "sim",
                            .isolation = "batch",
                            .engine = "local",
                            .start = "cold",
                            .world_size = batch_.world_size,
                            .seconds = 1,
                            .limits_ms = batch_.limits_ms,
                            .expect = {},
                            .axes = listed.axes,
                            .required_checks = {},
                            .ended = "finished",
                            .ranks = {},
                            .hang = std::nullopt,
                            .first_dead = std::nullopt,
                            .infra = std::nullopt,
                            .cleanup = {}};
    context.expect.kind = "pass";
    context.required_checks = required(listed);
    for (int rank = 0; rank < batch_.world_size; ++rank) {
      const std::string log = "batches/b001/rank-" + std::to_string(rank) + ".log";
      record::RankContext facts;
      facts.rank = rank;
      facts.pid = 1;
      facts.case_ended = true;
      facts.phase = record::Phase::teardown_process;
      facts.exit = record::Exit{.kind = "exited", .value = 0};
      facts.log = {
          .file = log, .begin = 0, .end = static_cast<std::int64_t>(fs::file_size(run_ / log))};
      context.ranks.push_back(facts);
    }
    const fs::path folder = attempt_folder(listed.id);
    record::write_json(folder / "context.json", record::to_json(context));
    const int status =
        std::system((built_program("graphproof-judge").string() + " " + folder.string() + " >" +
                     (folder / "judge.log").string() + " 2>&1")
                        .c_str());
    EXPECT_EQ(status, 0) << record::read_text(folder / "judge.log");
    std::map<std::string, record::CheckResult> results;
    const fs::path checks = folder / "checks.json";
    for (const record::CheckResult& result :
         record::checks_from(record::read_json(checks), checks.string()).checks)
      results[result.check] = result;
    return results;
  }

  std::vector<std::string> required(const record::BatchCase& listed) const {
    return catalogue_.checks.required(matrix::case_from_json(catalogue_.axes, listed.axes, "test"),
                                      "sim");
  }

 private:
  static constexpr const char* kPlacement = " --oversubscribe --bind-to none ";
  static std::string rank(const char* purpose, const fs::path& file) {
    return built_program("graphproof-rank-sim").string() + " " + purpose + " " + file.string();
  }
  int start_with(const char* purpose, const fs::path& last) const {
    const int others = batch_.world_size - (last.empty() ? 0 : 1);
    std::string command =
        "mpirun -np " + std::to_string(others) + kPlacement + rank(purpose, file());
    if (!last.empty()) command += " : -np 1 " + rank(purpose, last);
    return start(command);
  }
  int start(const std::string& command) const {
    const int status =
        std::system(("exec 2>" + (run_ / "starter.log").string() +
                     " >&2; "
                     "OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMP_NUM_THREADS=1 "
                     "OMPI_MCA_btl=self,vader OMPI_MCA_btl_vader_single_copy_mechanism=none "
                     "OMPI_MCA_mpi_yield_when_idle=1 PMIX_MCA_gds=hash " +
                     command)
                        .c_str());
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

  const matrix::Catalogue& catalogue_;
  const fs::path run_;
  record::Batch batch_;
};

/// Expects that all lines of all ranks conform to the schema.
inline void expect_evidence_fits_its_schema(const BatchOfCases& batch) {
  record::SchemaOf schema("evidence");
  for (const record::BatchCase& listed : batch.batch().cases)
    for (int rank = 0; rank < batch.batch().world_size; ++rank)
      for (const record::EvidenceLine& line : batch.evidence(listed.id, rank).lines)
        for (const std::string& violation : schema.violations(line.fields))
          ADD_FAILURE() << listed.name << ", rank " << rank << ", line " << line.line << ": "
                        << violation;
}

/// Expects that no check fails and that the required ones pass. Returns all results by name.
inline auto expect_required_checks_pass(const BatchOfCases& batch,
                                        const record::BatchCase& listed) {
  auto results = batch.judge(listed);
  for (const std::string& check : batch.required(listed))
    EXPECT_EQ(results.at(check).result, record::Result::pass)
        << check << ": " << record::to_text(results.at(check).message);
  for (const auto& [check, result] : results)
    EXPECT_NE(result.result, record::Result::fail)
        << check << ": " << record::to_text(result.message);
  return results;
}

}  // namespace graphproof::suites
