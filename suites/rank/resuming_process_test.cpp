// Tests of jobs that resume in a process of their own, from batch file to evidence on the simulated
// device, and of what is left when such a process or its rank dies or hangs. Needs the built
// programs and mpirun.
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <future>
#include <set>
#include <thread>

#include "reports/record/run/journal.h"
#include "suites/testing/batch_of_cases.h"

namespace graphproof::suites {
namespace {

using std::chrono::milliseconds;

class ResumingProcess : public testing::Test {
 protected:
  matrix::Case named(const std::string& name) {
    return matrix::case_from_name(catalogue_.axes,
                                  name + ",schedule=resume,resume_in=new_process,steps=7", "test");
  }
  const matrix::Catalogue catalogue_ = matrix::load_catalogue();
};

/// The rank programs of this host that run a batch file below `folder` with this argument.
std::set<pid_t> processes(const fs::path& folder, const std::string& argument) {
  std::set<pid_t> found;
  for (const auto& entry : fs::directory_iterator("/proc")) {
    const std::string name = entry.path().filename();
    if (name.find_first_not_of("0123456789") != name.npos) continue;
    std::string words;
    try {
      words = record::read_text(entry.path() / "cmdline");
    } catch (const record::ReadError&) {
      continue;  // it has ended meanwhile
    }
    const std::string program = words.substr(0, words.find('\0'));  // not mpirun, nor a shell
    if (program.ends_with("graphproof-rank-sim") &&
        words.find('\0' + argument + '\0' + folder.string()) != words.npos)
      found.insert(static_cast<pid_t>(std::stol(name)));
  }
  return found;
}
std::set<pid_t> processes(const BatchOfCases& batch, const std::string& argument) {
  return processes(batch.file().parent_path(), argument);
}

/// Whether `holds` becomes true within a time that only a defect exceeds.
template <typename Condition>
bool comes_true(const Condition& holds) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (!holds()) {
    if (std::chrono::steady_clock::now() >= end) return false;
    std::this_thread::sleep_for(milliseconds(2));
  }
  return true;
}

/// The processes, once there are `count` of them. `of`: a folder or a batch.
template <typename Of>
std::set<pid_t> await_processes(const Of& of, const std::string& argument, std::size_t count) {
  std::set<pid_t> found;
  EXPECT_TRUE(comes_true([&] { return (found = processes(of, argument)).size() == count; }))
      << argument << ": " << found.size() << " processes";
  return found;
}

TEST_F(ResumingProcess, RepeatsTheResultsOfTheJobThatSavedTheCheckpointOnEveryRank) {
  const std::vector<std::string> worlds[] = {
      {"impl=manual,microbatches=2,optimizer=adam,dropout=true",
       "impl=full_iteration,microbatches=2,precision=fp16",
       "impl=transformer_engine,microbatches=2,precision=fp8_delayed,fp8_weights=true"},
      {"impl=callables,tp=2,microbatches=2,sequence_parallel=true,dropout=true",
       "impl=local,pp=2,microbatches=4,optimizer=adam",
       "impl=full_iteration,dp=2,microbatches=2,optimizer=adam,distributed_optimizer=true"},
  };
  for (const auto& names : worlds) {
    std::vector<matrix::Case> cases;
    for (const std::string& name : names) cases.push_back(named(name));
    const BatchOfCases batch(catalogue_, "new-process", cases);
    EXPECT_EQ(batch.run(), 0);
    expect_evidence_fits_its_schema(batch);
    for (const record::BatchCase& listed : batch.batch().cases) {
      SCOPED_TRACE(listed.name + " in " + batch.attempt_folder(listed.id).string());
      const auto results = expect_required_checks_pass(batch, listed);
      EXPECT_NE(results.at("D47.resume").message.got.find("in a new process"), std::string::npos);
      std::set<std::int64_t> ids;
      for (int rank = 0; rank < batch.batch().world_size; ++rank) {
        const record::Evidence evidence = batch.evidence(listed.id, rank);
        ids.insert(evidence.of<record::StartLine>().front().pid);
        ids.insert(evidence.of<record::ResumedLine>().front().process.value());
      }
      EXPECT_EQ(ids.size(), 2 * static_cast<std::size_t>(batch.batch().world_size));
    }
    for (const auto& entry : fs::recursive_directory_iterator(batch.batch().store))
      EXPECT_NE(entry.path().extension(), ".checkpoint") << entry.path();
    EXPECT_TRUE(processes(batch, "--resume").empty());
  }
}

TEST_F(ResumingProcess, OneThatIsKilledEndsTheCaseWithItsSignalAndLeavesNoOther) {
  const BatchOfCases batch(catalogue_, "killed-process",
                           {named("impl=manual,tp=2,microbatches=2")});
  auto run = std::async(std::launch::async, [&] { return batch.run(); });
  const std::set<pid_t> both = await_processes(batch, "--resume", 2);
  ASSERT_EQ(both.size(), 2u);
  kill(*both.begin(), SIGKILL);
  EXPECT_NE(run.get(), 0);
  await_processes(batch, "--resume", 0);
  std::string told;
  const std::string& id = batch.batch().cases.front().id;
  for (const int rank : {0, 1}) {
    const record::Evidence evidence = batch.evidence(id, rank);
    for (const record::ErrorLine& error : evidence.of<record::ErrorLine>())
      told += error.arm + ": " + error.message + "\n";
    ASSERT_EQ(evidence.of<record::EndLine>().size(), 1u) << rank;
    EXPECT_FALSE(evidence.of<record::EndLine>().front().complete);
  }
  EXPECT_NE(told.find("resumed: process " + std::to_string(*both.begin()) +
                      ", in which a part of the case runs; got signal 9 (Killed)"),
            std::string::npos)
      << told;
}

TEST_F(ResumingProcess, EndsWithItsRank) {
  const BatchOfCases batch(catalogue_, "killed-rank", {named("impl=manual,microbatches=2")});
  auto run = std::async(std::launch::async, [&] { return batch.run(); });
  const std::set<pid_t> job = await_processes(batch, "--resume", 1),
                        rank = await_processes(batch, "--batch", 1);
  ASSERT_TRUE(job.size() == 1 && rank.size() == 1);
  // It depends on its rank from its beginning on, and makes this folder later.
  const fs::path folder = fs::path(batch.batch().store) /
                          ("resumed-" + batch.batch().cases.front().id + "-1") / "store";
  EXPECT_TRUE(comes_true([&] { return fs::exists(folder); }));
  kill(*job.begin(), SIGSTOP);  // it could not end by itself
  kill(*rank.begin(), SIGKILL);
  EXPECT_NE(run.get(), 0);
  await_processes(batch, "--resume", 0);
}

// Here the launcher sees the hang, and ends the rank alone.
TEST_F(ResumingProcess, OneThatHangsEndsTheCaseAsAHangInItsPhase) {
  const fs::path folder =
      fs::temp_directory_path() / ("graphproof-hanging-process-" + std::to_string(getpid()));
  fs::remove_all(folder);
  fs::create_directories(folder);
  record::write_atomically(
      folder / "hang.json",
      R"({"schema": "graphproof-matrix/1", "axes": {"impl": ["manual"], "microbatches": [2], )"
      R"("steps": [7], "schedule": ["resume"], "resume_in": ["new_process"]}, )"
      R"("limits": {"init": "20s", "build": "20s", "warmup": "20s", "replay": "20s"}, )"
      R"("profiles": {"hang": {"isolation": "process"}}})");
  const std::string command =
      built_program("graphproof").string() + " run --matrix " + (folder / "hang.json").string() +
      " --profile hang --device sim --run-dir " + (folder / "run").string() + " > " +
      (folder / "out").string() + " 2>&1";
  auto run = std::async(std::launch::async, [&] { return std::system(command.c_str()); });
  const std::set<pid_t> job = await_processes(folder / "run", "--resume", 1);
  ASSERT_EQ(job.size(), 1u);
  const auto has_begun = [&] {
    const auto files = fs::recursive_directory_iterator(folder / "run" / "batches");
    return std::any_of(begin(files), end(files), [](const fs::directory_entry& entry) {
      return entry.path().parent_path().filename().string().starts_with("resumed-") &&
             entry.path().filename() == "store";
    });
  };
  EXPECT_TRUE(comes_true(has_begun));
  kill(*job.begin(), SIGSTOP);
  const int status = run.get();
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 1) << command;
  const auto records = record::read_journal(folder / "run" / "journal.jsonl").records;
  ASSERT_EQ(records.size(), 1u);
  EXPECT_TRUE(records[0].verdict.in("fail.hang")) << records[0].verdict.text();
  EXPECT_TRUE(records[0].reason.starts_with("rank 0 stopped in phase ")) << records[0].reason;
  await_processes(folder / "run", "--resume", 0);
  if (!HasFailure()) fs::remove_all(folder);
}

}  // namespace
}  // namespace graphproof::suites
