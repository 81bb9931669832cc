// Tests of the rank program from batch file to evidence on the simulated device. graphproof-judge
// judges the evidence. Needs the built programs and mpirun.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "reports/record/job/rank_orders.h"
#include "suites/testing/batch_of_cases.h"

namespace graphproof::suites {
namespace {

class RankProgram : public testing::Test {
 protected:
  matrix::Case named(const char* name) {
    return matrix::case_from_name(catalogue_.axes, name, "test");
  }
  const matrix::Catalogue catalogue_ = matrix::load_catalogue();
};

TEST_F(RankProgram, CleanCasesOfEachEngineAndLayoutPassEveryRequiredCheckInOneBatchPerWorld) {
  const std::vector<const char*> worlds[] = {
      {"microbatches=2", "impl=manual,microbatches=2,dropout=true",
       "impl=full_iteration,microbatches=2,dropout=true"},
      {"tp=2,microbatches=2", "impl=manual,tp=2,microbatches=2,dropout=true",
       "impl=full_iteration,dp=2,microbatches=2,dropout=true",
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
      expect_required_checks_pass(batch, listed);
      for (int rank = 0; rank < batch.batch().world_size; ++rank)
        EXPECT_LE(
            fs::file_size(batch.attempt_folder(listed.id) / record::evidence_file_name(rank)) *
                batch.batch().world_size,
            static_cast<std::uintmax_t>(record::kEvidenceCaseBytes));
    }
  }
}

/// One fault of each detector that the simulated device shows; without those whose ranks wait for
/// ever, because here no launcher ends them.
std::vector<matrix::FaultEntry> one_of_each_detector(const matrix::Catalogue& catalogue) {
  std::map<std::string, matrix::FaultEntry> first;
  for (const matrix::FaultEntry& fault : catalogue.faults.faults())
    if (fault.shown_on("sim") && !fault.limits_ms.contains(record::Phase::replay) &&
        !fault.limits_ms.contains(record::Phase::capture))
      first.emplace(fault.detector("sim"), fault);
  std::vector<matrix::FaultEntry> faults;
  for (const auto& [detector, fault] : first) faults.push_back(fault);
  return faults;
}

TEST_F(RankProgram, EachPlantedFaultFailsItsDetector) {
  for (const matrix::FaultEntry& entry : one_of_each_detector(catalogue_)) {
    SCOPED_TRACE(entry.fault);
    const BatchOfCases batch(catalogue_, entry.fault,
                             {matrix::planted_case(catalogue_.axes, entry)});
    batch.run();
    expect_evidence_fits_its_schema(batch);
    const auto words = batch.judge(batch.batch().cases.front());
    const auto killed = std::any_of(words.begin(), words.end(), [&](const auto& word) {
      return word.first.starts_with(entry.detector("sim") + ".") &&
             word.second.result == record::Result::fail;
    });
    std::string seen;
    for (const auto& [check, result] : words)
      seen += "\n" + check + " " + record::to_text(result.message);
    EXPECT_TRUE(killed) << "want " << entry.detector("sim") << seen;
  }
}

TEST_F(RankProgram, EveryCollectiveIsShownEagerAndCapturedInBothPlacements) {
  std::vector<matrix::Case> cases;
  for (const char* impl : {"none", "manual"})
    for (const char* placement : {"symmetric", "per_rank"})
      for (const char* collective :
           {"all_gather", "all_reduce", "all_reduce_in_place", "reduce_scatter", "send_recv"})
        cases.push_back(named((std::string("impl=") + impl + ",dp=2,model=collective,placement=" +
                               placement + ",collective=" + collective + ",collective_bytes=65536")
                                  .c_str()));
  const BatchOfCases batch(catalogue_, "collectives", cases);
  EXPECT_EQ(batch.run(), 0);
  expect_evidence_fits_its_schema(batch);
  for (const record::BatchCase& listed : batch.batch().cases) {
    SCOPED_TRACE(listed.name + " in " + batch.attempt_folder(listed.id).string());
    EXPECT_EQ(expect_required_checks_pass(batch, listed).at("D27.registration_parity").result,
              record::Result::not_applicable);
  }
}

TEST_F(RankProgram, CommunicatorsFirstIsTheOrderThatTheCaseAskedFor) {
  const BatchOfCases batch(catalogue_, "comm_first",
                           {named("impl=full_iteration,tp=2,microbatches=2,teardown=comm_first")});
  EXPECT_EQ(batch.run(), 0);
  expect_evidence_fits_its_schema(batch);
  const record::BatchCase& listed = batch.batch().cases.front();
  const record::Evidence evidence = batch.evidence(listed.id, 0);
  std::vector<std::string> order;
  for (const record::TeardownLine& line : evidence.of<record::TeardownLine>())
    order.push_back(line.step);
  EXPECT_EQ(order, (std::vector<std::string>{"communicators", "graphs", "buffers", "device"}));
  EXPECT_EQ(batch.judge(listed).at("D29.teardown_order").result, record::Result::pass);
}

TEST_F(RankProgram, ForbiddenCaseIsRefusedByItsRuleWithoutStartingMpiOrADevice) {
  const BatchOfCases batch(catalogue_, "refused",
                           {named("impl=full_iteration,nan_check_loss=true")});
  EXPECT_EQ(batch.run(/*with_starter=*/false), 0);
  expect_evidence_fits_its_schema(batch);
  const auto evidence = batch.evidence(batch.batch().cases.front().id, 0);
  EXPECT_TRUE(evidence.complete());
  ASSERT_EQ(evidence.of<record::RefusedLine>().size(), 1u);
  const record::RefusedLine& refused = evidence.of<record::RefusedLine>().front();
  EXPECT_EQ(refused.rule, "R035");
  EXPECT_EQ(refused.phase, record::Phase::validate);
  EXPECT_FALSE(refused.device_initialised);
  EXPECT_TRUE(evidence.of<record::ConfigLine>().empty());
}

TEST_F(RankProgram, FailedCaptureEndsTheProcessAfterItsEvidenceIsWhole) {
  const BatchOfCases batch(catalogue_, "failed",
                           {matrix::planted_case(catalogue_.axes, *catalogue_.faults.find("M01")),
                            named("microbatches=2")});
  EXPECT_NE(batch.run(), 0);
  const auto evidence = batch.evidence(batch.batch().cases.front().id, 0);
  ASSERT_EQ(evidence.of<record::ErrorLine>().size(), 1u);
  EXPECT_EQ(evidence.of<record::ErrorLine>().front().phase, record::Phase::capture);
  EXPECT_EQ(evidence.of<record::ErrorLine>().front().code, 900);
  ASSERT_EQ(evidence.of<record::EndLine>().size(), 1u);
  EXPECT_FALSE(evidence.of<record::EndLine>().front().complete);
  EXPECT_FALSE(fs::exists(batch.attempt_folder(batch.batch().cases.back().id)))
      << "the next case needs a fresh process";
}

TEST_F(RankProgram, WhenAskedToStopTheRanksEndTogetherAheadOfTheNextCase) {
  const BatchOfCases batch(catalogue_, "stopped",
                           {named("impl=manual,tp=2,microbatches=2"), named("tp=2")});
  const fs::path stop = batch.attempt_folder("stop");
  fs::create_directories(stop);
  setenv(record::kStopVariable, stop.c_str(), 1);
  EXPECT_EQ(batch.run(), 0);
  unsetenv(record::kStopVariable);
  expect_required_checks_pass(batch, batch.batch().cases.front());
  EXPECT_FALSE(fs::exists(batch.attempt_folder(batch.batch().cases.back().id)));
}

// The loss of the last stage is not finite, and the first stage waits for its gradients.
TEST_F(RankProgram, ARankThatFailedDoesNotWaitLongForPeersThatWaitForIt) {
  const BatchOfCases batch(
      catalogue_, "failed-rank",
      {matrix::case_from_name(catalogue_.axes, "pp=2,microbatches=2,nan_check_loss=true,fault=M124",
                              "test")});
  EXPECT_NE(batch.run(), 0);
  const auto evidence = batch.evidence(batch.batch().cases[0].id, 1);
  const auto errors = evidence.of<record::ErrorLine>();
  ASSERT_EQ(errors.size(), 2u);
  EXPECT_NE(errors[0].message.find("loss of microbatch 0: got a value that is not finite"),
            std::string::npos)
      << errors[0].message;
  EXPECT_NE(errors[1].message.find("got nothing from rank 0 within 6000 ms"), std::string::npos)
      << errors[1].message;
  EXPECT_EQ(evidence.of<record::EndLine>().size(), 1u);
}

TEST_F(RankProgram, RanksWithDifferentConfigurationsAreToldApartBeforeTheirFirstCollective) {
  const BatchOfCases batch(catalogue_, "agreement", {named("tp=2,microbatches=2")});
  record::Batch other = batch.batch();
  other.seed += 1;
  const fs::path file = batch.file().parent_path() / "other.json";
  record::write_json(file, record::to_json(other));
  EXPECT_NE(batch.run(file), 0);
  for (const int rank : {0, 1}) {
    const auto evidence = batch.evidence(batch.batch().cases.front().id, rank);
    ASSERT_EQ(evidence.of<record::ErrorLine>().size(), 1u) << rank;
    const record::ErrorLine& error = evidence.of<record::ErrorLine>().front();
    EXPECT_EQ(error.phase, record::Phase::init);
    const std::string& message = error.message;
    EXPECT_NE(message.find("the ranks' configurations differ"), std::string::npos) << message;
    EXPECT_NE(message.find("SHA-256 of the batch file: rank 0 "), std::string::npos) << message;
    EXPECT_NE(message.find(", rank 1 "), std::string::npos) << message;
    EXPECT_TRUE(evidence.of<record::ConfigLine>().empty()) << "the first communicator comes later";
  }
}

TEST_F(RankProgram, ABatchHasOneIssuerOfCollectives) {
  const BatchOfCases batch(catalogue_, "issuers", {named("tp=2"), named("tp=2,comm=c10d")});
  EXPECT_NE(batch.run(), 0);
  for (const int rank : {0, 1}) {
    const auto evidence = batch.evidence(batch.batch().cases.front().id, rank);
    ASSERT_EQ(evidence.of<record::ErrorLine>().size(), 1u) << rank;
    EXPECT_EQ(evidence.of<record::ErrorLine>().front().message,
              "axis comm of the cases of batch b001; got nccl and, in case tp=2,comm=c10d, c10d; "
              "want one value; the communicators of a process "
              "are made once, by one of them; next: give each value a batch of its own");
  }
}

TEST_F(RankProgram, TheDoctorsAllReduceNeedsNoCase) {
  const fs::path folder =
      fs::temp_directory_path() / ("graphproof-all-reduce-" + std::to_string(getpid()));
  const std::string command = built_program("graphproof-start").string() + " 1 " +
                              built_program("graphproof-rank-sim").string() + " --all-reduce " +
                              folder.string();
  const int status = std::system((command + " >" + folder.string() + ".txt").c_str());
  EXPECT_EQ(status, 0);
  EXPECT_NE(record::read_text(folder.string() + ".txt").find("\"ranks\":1"), std::string::npos);
  fs::remove_all(folder);
  fs::remove(folder.string() + ".txt");
}

TEST_F(RankProgram, BatchForAnotherWorldIsAUsageErrorBeforeAnyEvidence) {
  const BatchOfCases batch(catalogue_, "world", {named("tp=2")});
  EXPECT_EQ(batch.run(/*with_starter=*/false), 2);
  EXPECT_FALSE(fs::exists(batch.attempt_folder(batch.batch().cases.front().id)));
}

}  // namespace
}  // namespace graphproof::suites
