// The rank program end to end on the simulated device: a batch file in, evidence out, judged by graphproof-judge.
// Needs the built programs and mpirun.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <map>

#include "matrix/catalogue.h"
#include "reports/record/batch.h"
#include "reports/record/checks.h"
#include "reports/record/context.h"
#include "reports/record/evidence.h"
#include "reports/record/file.h"
#include "reports/record/schema/violations.h"

namespace graphproof::suites {
namespace {

namespace fs = std::filesystem;

fs::path program(const char* name) {
  const char* folder = std::getenv("GRAPHPROOF_BIN");
  return fs::path(folder ? folder : "bin") / name;
}

/// A run folder with one batch of cases, without a launcher.
class BatchOfCases {
 public:
  BatchOfCases(const matrix::Catalogue& catalogue, const std::string& test, const std::vector<matrix::Case>& cases)
      : catalogue_(catalogue), run_(fs::temp_directory_path() / ("graphproof-" + test + "-" + std::to_string(getpid()))) {
    fs::remove_all(run_);
    batch_.run_id = "20261121-101500-0000";
    batch_.batch = "b001";
    batch_.device = "sim";
    batch_.seed = 1;
    batch_.isolation = "batch";
    batch_.store = run_ / "batches/b001/store";
    batch_.log_folder = run_ / "batches/b001";
    batch_.mark = "test";
    for (std::size_t i = 0; i < record::kPhaseCount; ++i) batch_.limits_ms[static_cast<record::Phase>(i)] = 60'000;
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
    record::write_json(run_ / "batches/b001/batch.json", record::to_json(batch_));
  }
  ~BatchOfCases() {
    if (!testing::Test::HasFailure()) fs::remove_all(run_);
  }

  fs::path attempt_folder(const std::string& id) const { return run_ / "cases" / id / "attempt-1"; }
  const record::Batch& batch() const { return batch_; }

  /// Exit status of mpirun, or of the one rank alone.
  int run(bool through_mpirun = true) const {
    std::string command = program("graphproof-rank-sim").string() + " --batch " + (run_ / "batches/b001/batch.json").string();
    if (through_mpirun)
      command = "OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMP_NUM_THREADS=1 OMPI_MCA_btl=self,vader "
                "OMPI_MCA_btl_vader_single_copy_mechanism=none OMPI_MCA_mpi_yield_when_idle=1 PMIX_MCA_gds=hash mpirun -np " +
                std::to_string(batch_.world_size) + " --oversubscribe --bind-to none " + command;
    const int status = std::system(("exec 2>" + (run_ / "starter.log").string() + " >&2; " + command).c_str());
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

  record::Evidence evidence(const std::string& id, int rank) const {
    return record::read_evidence(attempt_folder(id) / record::evidence_file_name(rank));
  }

  /// The judge's word on each check of a case.
  std::map<std::string, record::CheckResult> judge(const record::BatchCase& listed) const {
    record::Context context{.run_id = batch_.run_id, .case_id = listed.id, .attempt = 1, .batch = batch_.batch, .device = "sim",
                            .isolation = "batch", .engine = "local", .start = "cold", .world_size = batch_.world_size,
                            .seconds = 1, .limits_ms = batch_.limits_ms, .expect = {}, .axes = listed.axes,
                            .required_checks = {}, .ended = "finished", .ranks = {}, .hang = std::nullopt,
                            .first_dead = std::nullopt, .infra = std::nullopt, .cleanup = {}};
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
      facts.log = {.file = log, .begin = 0, .end = static_cast<std::int64_t>(fs::file_size(run_ / log))};
      context.ranks.push_back(facts);
    }
    const fs::path folder = attempt_folder(listed.id);
    record::write_json(folder / "context.json", record::to_json(context));
    const int status = std::system((program("graphproof-judge").string() + " " + folder.string() + " >" + (folder / "judge.log").string() + " 2>&1").c_str());
    EXPECT_EQ(status, 0) << record::read_text(folder / "judge.log");
    std::map<std::string, record::CheckResult> words;
    const fs::path checks = folder / "checks.json";
    for (const record::CheckResult& result : record::checks_from(record::read_json(checks), checks.string()).checks) words[result.check] = result;
    return words;
  }

  std::vector<std::string> required(const record::BatchCase& listed) const {
    return catalogue_.checks.required(matrix::case_from_json(catalogue_.axes, listed.axes, "test"), "sim");
  }

 private:
  const matrix::Catalogue& catalogue_;
  const fs::path run_;
  record::Batch batch_;
};

/// Every line of every rank is as the schema wants; names the first that is not.
void expect_evidence_fits_its_schema(const BatchOfCases& batch) {
  record::SchemaOf schema("evidence");
  for (const record::BatchCase& listed : batch.batch().cases)
    for (int rank = 0; rank < batch.batch().world_size; ++rank)
      for (const record::EvidenceLine& line : batch.evidence(listed.id, rank).lines)
        for (const std::string& violation : schema.violations(line.fields))
          ADD_FAILURE() << listed.name << ", rank " << rank << ", line " << line.line << ": " << violation;
}

class RankProgram : public testing::Test {
 protected:
  matrix::Case named(const char* name) { return matrix::case_from_name(catalogue_.axes, name, "test"); }
  const matrix::Catalogue catalogue_ = matrix::load_catalogue();
};

TEST_F(RankProgram, CleanCasesOfEachEngineAndLayoutPassEveryRequiredCheckInOneBatchPerWorld) {
  const std::vector<const char*> worlds[] = {
      {"microbatches=2", "impl=manual,microbatches=2,dropout=true", "impl=full_iteration,microbatches=2,dropout=true"},
      {"tp=2,microbatches=2", "impl=manual,tp=2,microbatches=2,dropout=true", "impl=full_iteration,dp=2,microbatches=2,dropout=true",
       "impl=full_iteration,tp=2,microbatches=2,autograd_threads=on,capture_mode=global"},
  };
  for (const auto& names : worlds) {
    std::vector<matrix::Case> cases;
    for (const char* name : names) cases.push_back(named(name));
    const BatchOfCases batch(catalogue_, "clean" + std::to_string(cases.size()), cases);
    EXPECT_EQ(batch.run(), 0);
    expect_evidence_fits_its_schema(batch);
    for (const record::BatchCase& listed : batch.batch().cases) {
      SCOPED_TRACE(listed.name + " in " + batch.attempt_folder(listed.id).string());
      const auto words = batch.judge(listed);
      for (const std::string& check : batch.required(listed))
        EXPECT_EQ(words.at(check).result, record::Result::pass) << check << ": " << record::to_text(words.at(check).message);
      for (const auto& [check, result] : words)
        EXPECT_NE(result.result, record::Result::fail) << check << ": " << record::to_text(result.message);
      for (int rank = 0; rank < batch.batch().world_size; ++rank)
        EXPECT_LE(fs::file_size(batch.attempt_folder(listed.id) / record::evidence_file_name(rank)) * batch.batch().world_size,
                  static_cast<std::uintmax_t>(record::kEvidenceCaseBytes));
    }
  }
}

TEST_F(RankProgram, EachPlantedFaultFailsItsDetector) {
  for (const char* fault : {"M01", "M15", "M23", "M26", "M27", "M32", "M36", "M38", "M46", "M49", "M54", "M63", "M85", "M89"}) {
    SCOPED_TRACE(fault);
    const matrix::FaultEntry& entry = *catalogue_.faults.find(fault);
    const BatchOfCases batch(catalogue_, fault, {matrix::planted_case(catalogue_.axes, entry)});
    batch.run();
    expect_evidence_fits_its_schema(batch);
    const auto words = batch.judge(batch.batch().cases.front());
    const auto killed = std::any_of(words.begin(), words.end(), [&](const auto& word) {
      return word.first.starts_with(entry.detector + ".") && word.second.result == record::Result::fail;
    });
    std::string seen;
    for (const auto& [check, result] : words) seen += "\n" + check + " " + record::to_text(result.message);
    EXPECT_TRUE(killed) << "want " << entry.detector << seen;
  }
}

TEST_F(RankProgram, EveryCollectiveIsShownEagerAndCapturedInBothPlacements) {
  std::vector<matrix::Case> cases;
  for (const char* impl : {"none", "manual"})
    for (const char* placement : {"symmetric", "per_rank"})
      for (const char* collective : {"all_gather", "all_reduce", "all_reduce_in_place", "reduce_scatter", "send_recv"})
        cases.push_back(named((std::string("impl=") + impl + ",dp=2,model=collective,placement=" + placement + ",collective=" + collective + ",collective_bytes=65536").c_str()));
  const BatchOfCases batch(catalogue_, "collectives", cases);
  EXPECT_EQ(batch.run(), 0);
  expect_evidence_fits_its_schema(batch);
  for (const record::BatchCase& listed : batch.batch().cases) {
    SCOPED_TRACE(listed.name + " in " + batch.attempt_folder(listed.id).string());
    const auto words = batch.judge(listed);
    for (const std::string& check : batch.required(listed))
      EXPECT_EQ(words.at(check).result, record::Result::pass) << check << ": " << record::to_text(words.at(check).message);
    for (const auto& [check, result] : words)
      EXPECT_NE(result.result, record::Result::fail) << check << ": " << record::to_text(result.message);
    EXPECT_EQ(words.at("D27.registration_parity").result, record::Result::not_applicable);
  }
}

TEST_F(RankProgram, CommunicatorsFirstIsTheOrderThatTheCaseAskedFor) {
  const BatchOfCases batch(catalogue_, "comm_first", {named("impl=full_iteration,tp=2,microbatches=2,teardown=comm_first")});
  EXPECT_EQ(batch.run(), 0);
  expect_evidence_fits_its_schema(batch);
  const record::BatchCase& listed = batch.batch().cases.front();
  const record::Evidence evidence = batch.evidence(listed.id, 0);
  std::vector<std::string> order;
  for (const record::EvidenceLine* line : evidence.of("teardown")) order.push_back(line->fields.at("step"));
  EXPECT_EQ(order, (std::vector<std::string>{"communicators", "graphs", "buffers", "device"}));
  EXPECT_EQ(batch.judge(listed).at("D29.teardown_order").result, record::Result::pass);
}

TEST_F(RankProgram, ForbiddenCaseIsRefusedByItsRuleWithoutStartingMpiOrADevice) {
  const BatchOfCases batch(catalogue_, "refused", {named("impl=full_iteration,nan_check_loss=true")});
  EXPECT_EQ(batch.run(/*through_mpirun=*/false), 0);
  expect_evidence_fits_its_schema(batch);
  const auto evidence = batch.evidence(batch.batch().cases.front().id, 0);
  EXPECT_TRUE(evidence.complete());
  ASSERT_EQ(evidence.of("refused").size(), 1u);
  const auto& refused = evidence.of("refused").front()->fields;
  EXPECT_EQ(refused.at("rule"), "R035");
  EXPECT_EQ(refused.at("phase"), "validate");
  EXPECT_EQ(refused.at("device_initialised"), false);
  EXPECT_TRUE(evidence.of("config").empty());
}

TEST_F(RankProgram, FailedCaptureEndsTheProcessAfterItsEvidenceIsWhole) {
  const BatchOfCases batch(catalogue_, "failed", {matrix::planted_case(catalogue_.axes, *catalogue_.faults.find("M01")), named("microbatches=2")});
  EXPECT_NE(batch.run(), 0);
  const auto evidence = batch.evidence(batch.batch().cases.front().id, 0);
  ASSERT_EQ(evidence.of("error").size(), 1u);
  EXPECT_EQ(evidence.of("error").front()->fields.at("phase"), "capture");
  EXPECT_EQ(evidence.of("error").front()->fields.at("code"), 900);
  ASSERT_EQ(evidence.of("end").size(), 1u);
  EXPECT_EQ(evidence.of("end").front()->fields.at("complete"), false);
  EXPECT_FALSE(fs::exists(batch.attempt_folder(batch.batch().cases.back().id))) << "the next case needs a fresh process";
}

TEST_F(RankProgram, BatchForAnotherWorldIsAUsageErrorBeforeAnyEvidence) {
  const BatchOfCases batch(catalogue_, "world", {named("tp=2")});
  EXPECT_EQ(batch.run(/*through_mpirun=*/false), 2);
  EXPECT_FALSE(fs::exists(batch.attempt_folder(batch.batch().cases.front().id)));
}

}  // namespace
}  // namespace graphproof::suites
