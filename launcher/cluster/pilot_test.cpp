// Runs on nodes of a Slurm of the test's own, and on named hosts: agents, leases, and every way in
// which nodes are lost.
#include "launcher/cluster/pilot.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <atomic>
#include <fstream>
#include <set>

#include "launcher/cluster/task_array.h"
#include "launcher/cluster/testing/own_slurm.h"
#include "launcher/cluster/testing/pilot_of_fakes.h"
#include "launcher/host/listeners.h"
#include "launcher/testing/run_of_fakes.h"

namespace graphproof::cluster {
namespace {

namespace fs = std::filesystem;
using launcher::fake_line;
using launcher::verdict;
using record::PlanLine;

struct PilotTest : launcher::RunOfFakes {
  void SetUp() override {
    RunOfFakes::SetUp();
    ASSERT_EQ(OwnSlurm::missing(), "") << "./graphproof installs it";
  }

  AgentStart agents() const { return agents_of_fakes(setup); }
  PilotSetup pilot_setup(record::Cluster options, const launcher::Environment& environment) {
    return pilot_of_fakes(setup, std::move(options), environment);
  }

  reports::RunResult go_on_nodes(PilotSetup wanted, std::vector<PlanLine> plan) {
    return go_with(std::make_shared<Pilot>(std::move(wanted)), std::move(plan));
  }

  reports::RunResult go_with(std::shared_ptr<launcher::Allocation> allocation,
                             std::vector<PlanLine> plan) {
    setup.allocation = std::move(allocation);
    reports::RunResult result = go(std::move(plan));
    setup.allocation = nullptr;
    return result;
  }

  /// Whether the first of these batches runs a case.
  bool begun(const std::string& case_id) const {
    return fs::exists(folder / "cases" / case_id / "attempt-1/rank-0.evidence.jsonl");
  }

  std::vector<std::string> verdicts(const reports::RunResult& result) const {
    std::vector<std::string> all;
    for (std::size_t i = 0; i < result.cases.size(); ++i) all.push_back(verdict(result, i));
    return all;
  }

  int agent_pid() const {
    const auto lines = LineReader(reports_file(channel_folder(folder / "pilots/p1", 0))).next();
    return lines.empty()
               ? 0
               : static_cast<int>(
                     record::report_from(nlohmann::json::parse(lines.front()), "hello").pid);
  }
};

/// A plan with cases of every kind, in batches and alone.
std::vector<PlanLine> mixed_plan() {
  return {fake_line(1, 1, ""),
          fake_line(2, 2, ""),
          fake_line(3, 1, "wrong replay 0", "process"),
          fake_line(4, 2, "signal capture 1", "process"),
          fake_line(5, 1, "exit0 replay 0"),
          fake_line(6, 2, "")};
}

TEST_F(PilotTest, VerdictsAreThoseOfThisHostOnSlurmAndOnNamedHosts) {
  std::vector<std::vector<std::string>> all;
  for (const std::string launcher : {"local", "slurm", "mpirun"}) {
    fs::remove_all(folder);
    fs::create_directories(folder);
    setup.run.engine = "local";
    if (launcher == "local") {
      all.push_back(verdicts(go(mixed_plan())));
      continue;
    }
    const OwnSlurm slurm({.nodes = 2});
    record::Cluster options{.engine = launcher, .nodes = 2, .slots = 2};
    if (launcher == "mpirun") options.hosts = {"localhost", "localhost"};
    const auto result = go_on_nodes(pilot_setup(options, slurm.environment()), mixed_plan());
    all.push_back(verdicts(result));
    for (const auto& one : result.cases) EXPECT_EQ(one.record.context.engine, launcher) << notices;
    EXPECT_TRUE(slurm.empty_within(std::chrono::seconds(10))) << slurm.queue();
    // On a busy machine the first pilot may be given up before its agents have arrived.
    int last = 1;
    while (fs::exists(folder / "pilots" / ("p" + std::to_string(last + 1)))) ++last;
    for (int node = 0; node < 2; ++node)
      EXPECT_NE(record::read_text(reports_file(channel_folder(
                                      folder / "pilots" / ("p" + std::to_string(last)), node)))
                    .find("the launcher ordered it"),
                std::string::npos)
          << "p" << last << ": " << notices;
  }
  EXPECT_EQ(all[1], all[0]) << "slurm: " << notices;
  EXPECT_EQ(all[2], all[0]) << "mpirun: " << notices;
  EXPECT_EQ(all[0][0], "pass");
  EXPECT_EQ(all[0][2], "fail.numerics");
}

TEST_F(PilotTest, LauncherAgentsAndRanksListenOnNoPort) {
  const OwnSlurm slurm({.nodes = 1});
  setup.run.device = "cuda";  // ranks find each other without MPI, through the store's files
  std::vector<PlanLine> plan = {fake_line(1, 2, "slow replay 0"), fake_line(2, 2, "slow replay 0")};
  std::set<std::string> looked_at;
  launcher::Listeners found;
  listener.progress = [&](const reports::Progress&) {
    std::vector<int> pids = {getpid(), agent_pid()};
    if (pids[1] > 0) looked_at.insert("agent");
    for (const launcher::Process& process : launcher::processes_of(0, setup.run.run_id + ".")) {
      pids.push_back(process.pid);
      looked_at.insert(process.command);
    }
    found.merge(launcher::listeners_of(pids));
  };
  const auto result = go_on_nodes(pilot_setup({.nodes = 1, .slots = 2}, slurm.environment()), plan);
  EXPECT_EQ(verdicts(result), (std::vector<std::string>(2, "pass"))) << notices;
  EXPECT_EQ(looked_at, (std::set<std::string>{"agent", "graphproof-star", "graphproof_fake"}))
      << "as /proc shortens names";
  EXPECT_EQ(found, launcher::Listeners{});
}

TEST_F(PilotTest, ABatchSeesTheGpusThatItLeasedAndNoOther) {
  const OwnSlurm slurm({.nodes = 2, .gpus = 2});
  setup.run.device = "cuda";
  std::vector<PlanLine> plan;
  for (int number = 1; number <= 6; ++number)
    plan.push_back(fake_line(number, 1 + number % 2, "slow replay 0", "process"));
  ::setenv("SLURM_GPUS_PER_NODE", "2",
           1);  // of an outer job: it must not make every batch occupy a whole node
  auto environment = slurm.environment();
  environment["SLURM_GPUS_PER_NODE"] = "2";
  const auto result = go_on_nodes(pilot_setup({.nodes = 2, .slots = 2}, environment), plan);
  ::unsetenv("SLURM_GPUS_PER_NODE");
  std::set<std::string> leases;
  for (std::size_t i = 0; i < plan.size(); ++i) {
    EXPECT_EQ(verdict(result, i), "pass") << notices;
    const std::string env =
        record::read_text(folder / "batches" / result.cases[i].record.context.batch / "env");
    const std::size_t at = env.find("CUDA_VISIBLE_DEVICES=") + 21;
    const std::string lease = env.substr(at, env.find('\n', at) - at);
    leases.insert(lease);
    EXPECT_EQ(lease.size(), plan[i].ranks == 2 ? 3u : 1u) << lease;
  }
  EXPECT_EQ(leases, (std::set<std::string>{"0", "1", "0,1"}));
}

// In its first attempt the second case of the batch lasts until its node is lost.
constexpr char kSecondIsSlow[] = "once_slow replay 0 2";

struct Loss {
  const char* what;
  const char* infra;
  void (*lose)(OwnSlurm&, const PilotTest&);
};

TEST_F(PilotTest, NodesThatAreLostAreAskedForAgainAndTheRunGoesOn) {
  const Loss rows[] = {
      {"scancel", "infra.preempted",
       [](OwnSlurm& slurm, const PilotTest& test) {
         slurm.command({"scancel", "--name=" + job_name(test.setup.run.run_id)});
       }},
      {"the agent is killed", "infra.node",
       [](OwnSlurm&, const PilotTest& test) { kill(test.agent_pid(), SIGKILL); }},
      {"the agent stands still", "infra.node",
       [](OwnSlurm&, const PilotTest& test) { kill(test.agent_pid(), SIGSTOP); }},
  };
  for (const Loss& row : rows) {
    SCOPED_TRACE(row.what);
    fs::remove_all(folder);
    fs::create_directories(folder);
    notices.clear();
    OwnSlurm slurm({.nodes = 1});
    PilotSetup pilot = pilot_setup({.nodes = 1, .slots = 2}, slurm.environment());
    pilot.agent_silent_ms = 3000;
    std::vector<PlanLine> plan = {fake_line(1, 2, kSecondIsSlow), fake_line(2, 2, kSecondIsSlow),
                                  fake_line(3, 2, kSecondIsSlow)};
    for (PlanLine& line : plan) line.limits_ms[record::Phase::teardown_comm] = 60000;
    bool lost = false;
    listener.progress = [&](const reports::Progress&) {
      if (lost || !begun(plan[1].id)) return;
      lost = true;
      row.lose(slurm, *this);
    };
    const auto result = go_on_nodes(std::move(pilot), plan);
    EXPECT_TRUE(lost);
    EXPECT_EQ(verdicts(result), (std::vector<std::string>(3, "pass"))) << notices;
    std::vector<std::string> of_second;
    for (const record::Record& one : journal())
      if (one.case_id == plan[1].id) of_second.emplace_back(one.verdict.text());
    EXPECT_EQ(of_second, (std::vector<std::string>{row.infra, "pass"})) << notices;
    EXPECT_EQ(result.cases[1].record.again, std::string("attempt 1 ended ") + row.infra);
    EXPECT_NE(result.cases[2].record.again.find("attempt 1 was given to a node that was lost"),
              std::string::npos)
        << "it had not begun: " << result.cases[2].record.again;
    EXPECT_NE(notices.find("the nodes are lost"), std::string::npos) << notices;
    EXPECT_TRUE(fs::exists(folder / "pilots/p2/node-0/reports.jsonl")) << "it was asked again";
    EXPECT_TRUE(slurm.empty_within(std::chrono::seconds(15))) << slurm.queue();
  }
}

TEST_F(PilotTest, AnAgentThatNeverSpeaksIsNotWaitedForLikeOneInAQueue) {
  const fs::path mute = scratch.path() / "mute";
  std::ofstream(mute) << "#!/bin/sh\nexec sleep 60\n";
  fs::permissions(mute, fs::perms::owner_all);
  const OwnSlurm slurm({.nodes = 1});
  PilotSetup pilot = pilot_setup({.nodes = 1, .slots = 2}, slurm.environment());
  pilot.agent_start_ms = 1000;
  pilot.command = [command = pilot.command, program = agents().program,
                   mute](const fs::path& channels) {
    launcher::Command words = command(channels);
    if (channels.filename() == "p1")
      std::replace(words.arguments.begin(), words.arguments.end(), program.string(), mute.string());
    return words;
  };
  EXPECT_EQ(verdicts(go_on_nodes(std::move(pilot), {fake_line(1, 2, "")})),
            (std::vector<std::string>{"pass"}))
      << notices;
  EXPECT_NE(notices.find(
                "the nodes were granted, but nothing was heard of the agents numbered 0 for 1 s"),
            std::string::npos)
      << notices;

  fs::remove_all(folder);
  fs::create_directories(folder);
  setup.run.engine = "slurm-array";
  AgentStart start = agents();
  start.program = mute;
  const auto result =
      go_with(std::make_shared<TaskArray>(record::Cluster{.engine = "slurm-array", .slots = 2},
                                          start, slurm.environment(), 1000),
              {fake_line(1, 2, "")});
  EXPECT_EQ(verdicts(result), (std::vector<std::string>{"infra.node"})) << notices;
  EXPECT_NE(result.cases[0].record.reason.find(
                "the task runs, and nothing was heard of its agent for 1 s"),
            std::string::npos)
      << result.cases[0].record.reason;
}

TEST_F(PilotTest, TheNextRanksStartAheadOnANodeToo) {
  const OwnSlurm slurm({.nodes = 1});
  std::vector<PlanLine> plan;
  for (int number = 1; number <= 4; ++number)
    plan.push_back(fake_line(number, 2, "slow_start replay 0", "process"));
  const auto result = go_on_nodes(pilot_setup({.nodes = 1, .slots = 2}, slurm.environment()), plan);
  std::vector<std::string> starts;
  for (const record::Record& one : journal()) starts.push_back(one.context.start);
  EXPECT_EQ(verdicts(result), (std::vector<std::string>(4, "pass"))) << notices;
  EXPECT_EQ(starts, (std::vector<std::string>{"cold", "warm", "warm", "warm"})) << notices;
  for (const record::Record& one : journal()) EXPECT_EQ(one.attempt, 1);
}

TEST_F(PilotTest, RanksThatEndWhileTheyWaitOnANodeCostNoVerdict) {
  const OwnSlurm slurm({.nodes = 1});
  std::vector<PlanLine> plan;
  for (int number = 1; number <= 3; ++number)
    plan.push_back(fake_line(number, 2, "dies_before_begin replay 0", "process"));
  const auto result = go_on_nodes(pilot_setup({.nodes = 1, .slots = 2}, slurm.environment()), plan);
  EXPECT_EQ(verdicts(result), (std::vector<std::string>(3, "pass"))) << notices;
  for (const record::Record& one : journal()) EXPECT_EQ(one.context.start, "cold");
  EXPECT_NE(notices.find("ended before their turn: no more ranks are started before their turn"),
            std::string::npos)
      << notices;
}

TEST_F(PilotTest, RanksThatWaitAreLostWithTheirNodeWhichIsNoVerdict) {
  const OwnSlurm slurm({.nodes = 1});
  std::vector<PlanLine> plan = {fake_line(1, 2, "once_slow replay 0", "process"),
                                fake_line(2, 2, "once_slow replay 0", "process")};
  for (PlanLine& line : plan) line.limits_ms[record::Phase::teardown_comm] = 60000;
  bool lost = false;
  listener.progress = [&](const reports::Progress&) {
    if (lost || !begun(plan[0].id) || !fs::exists(folder / "batches/b002/env")) return;
    lost = true;
    kill(agent_pid(), SIGKILL);
  };
  const auto result = go_on_nodes(pilot_setup({.nodes = 1, .slots = 2}, slurm.environment()), plan);
  EXPECT_TRUE(lost) << "nothing was prestarted: " << notices;
  EXPECT_EQ(verdicts(result), (std::vector<std::string>(2, "pass"))) << notices;
  std::vector<std::string> seen;
  for (const record::Record& one : journal())
    seen.push_back(one.name + " " + std::string(one.verdict.text()) + " of attempt " +
                   std::to_string(one.attempt));
  std::sort(seen.begin(), seen.end());
  EXPECT_EQ(seen, (std::vector<std::string>{"case1 infra.node of attempt 1",
                                            "case1 pass of attempt 2", "case2 pass of attempt 2"}))
      << notices;
  EXPECT_EQ(result.cases[1].record.again,
            "attempt 1 was given to a node before its turn, and did not begin");
}

TEST_F(PilotTest, ADeadControllerDoesNotEndTheRun) {
  OwnSlurm slurm({.nodes = 1});
  std::atomic<bool> killed = false;
  listener.finished = [&](const record::Record&, const reports::Progress&) {
    if (!killed) slurm.kill_controller();
    killed = true;
  };
  setup.allocation =
      std::make_shared<Pilot>(pilot_setup({.nodes = 1, .slots = 2}, slurm.environment()));
  setup.plan = {fake_line(1, 1, "", "process"), fake_line(2, 2, "", "process"),
                fake_line(3, 1, "", "process")};
  // Agents go on without the controller. It is needed only to give the nodes back, and has returned
  // by then.
  std::jthread back([&] {
    while (!killed) std::this_thread::sleep_for(std::chrono::milliseconds(10));
    std::this_thread::sleep_for(std::chrono::seconds(2));
    slurm.start_controller();
  });
  const auto result = run(setup, listener);
  back.join();
  setup.allocation = nullptr;
  EXPECT_EQ(verdicts(result), (std::vector<std::string>(3, "pass"))) << notices;
  EXPECT_EQ(notices.find("lost"), std::string::npos) << notices;
  EXPECT_EQ(marked(), std::vector<std::string>{});
  // A controller that comes back still knows the allocation, which could not be given back to it.
  EXPECT_TRUE(slurm.empty_within(std::chrono::seconds(10))) << slurm.queue();
}

TEST_F(PilotTest, AnArrayHasATaskABatchAndTheSameVerdicts) {
  const OwnSlurm slurm({.nodes = 3, .cpus = 2});
  setup.run.engine = "slurm-array";
  setup.run.slots = 2;
  const std::shared_ptr<TaskArray> array =
      std::make_shared<TaskArray>(record::Cluster{.engine = "slurm-array", .nodes = 8, .slots = 2},
                                  agents(), slurm.environment());
  const auto result = go_with(array, mixed_plan());
  EXPECT_EQ(verdicts(result),
            (std::vector<std::string>{"pass", "pass", "fail.numerics", "fail.crash.signal",
                                      "fail.silent", "pass"}))
      << notices;
  for (const auto& one : result.cases) EXPECT_EQ(one.record.context.engine, "slurm-array");
  EXPECT_NE(notices.find("array job"), std::string::npos) << notices;
  EXPECT_TRUE(slurm.empty_within(std::chrono::seconds(10))) << slurm.queue();
}

TEST_F(PilotTest, ATaskThatIsCancelledIsRunOnceMore) {
  OwnSlurm slurm({.nodes = 1});
  setup.run.engine = "slurm-array";
  setup.run.slots = 2;
  std::vector<PlanLine> plan = {fake_line(1, 2, "once_slow replay 0")};
  plan[0].limits_ms[record::Phase::teardown_comm] = 60000;
  bool lost = false;
  listener.progress = [&](const reports::Progress&) {
    if (lost || !begun(plan[0].id)) return;
    lost = true;
    slurm.command({"scancel", "--name=" + job_name(setup.run.run_id)});
  };
  const auto result =
      go_with(std::make_shared<TaskArray>(record::Cluster{.engine = "slurm-array", .slots = 2},
                                          agents(), slurm.environment()),
              plan);
  EXPECT_EQ(verdicts(result), (std::vector<std::string>{"pass"})) << notices;
  EXPECT_EQ(result.cases[0].record.again, "attempt 1 ended infra.preempted");
}

TEST_F(PilotTest, AnArrayThatSlurmRefusesIsInfrastructure) {
  const OwnSlurm slurm({.nodes = 1});
  setup.run.engine = "slurm-array";
  const auto result = go_with(
      std::make_shared<TaskArray>(record::Cluster{.engine = "slurm-array", .partition = "nowhere"},
                                  agents(), slurm.environment()),
      {fake_line(1, 1, "")});
  EXPECT_EQ(verdicts(result), (std::vector<std::string>{"infra.scheduler"}));
  EXPECT_NE(result.cases[0].record.reason.find("invalid partition"), std::string::npos)
      << result.cases[0].record.reason;
}

TEST(ClockTest, AClockThatIsOffIsReportedWithWhatToDo) {
  for (const std::int64_t off_ms : {-60000, -1000, 0, 4000})
    EXPECT_EQ(clock_trouble("n1", 1'000'000, 1'000'000 + off_ms), "") << off_ms;
  EXPECT_EQ(clock_trouble("n1", 1'000'000, 1'037'000),
            "the clock of n1 is 37 s ahead of this host's: times in its logs do not compare with "
            "others'; keep both in step by NTP");
  EXPECT_EQ(clock_trouble("n1", 1'000'000, 0).substr(0, 34), "the clock of n1 is 1000 s behind t");
}

TEST(TaskArrayTest, TheQueueTellsWhatWaitsRunsAndWillNeverStart) {
  const QueuedTasks tasks = read_queue(
      "17_0|RUNNING|None\n17_1|COMPLETING|None\n17_2|PENDING|Resources\n17_3|PENDING|"
      "JobArrayTaskLimit\n"
      "17_4|PENDING|launch failed requeued "
      "held\n17_5|CONFIGURING|None\n17_6|PENDING|JobHeldUser\nslurm_load_jobs error\n");
  EXPECT_EQ(tasks.running, (std::vector<int>{0, 1}));
  EXPECT_EQ(tasks.waiting, (std::vector<int>{2, 3, 5, 6}))
      << "a job that a user holds is for the user to release";
  EXPECT_EQ(tasks.held, (std::vector<int>{4}));
}

TEST_F(PilotTest, WithoutNodesEveryCaseSaysWhy) {
  const OwnSlurm slurm({.nodes = 1});
  const auto result = go_on_nodes(
      pilot_setup({.nodes = 1, .slots = 2, .partition = "nowhere"}, slurm.environment()),
      {fake_line(1, 1, ""), fake_line(2, 2, "")});
  EXPECT_EQ(verdicts(result), (std::vector<std::string>(2, "infra.scheduler")));
  EXPECT_NE(result.cases[0].record.reason.find("invalid partition"), std::string::npos)
      << result.cases[0].record.reason;
  EXPECT_EQ(journal().size(), 4u) << "tried once more, and no more than that";
  EXPECT_EQ(reports::exit_code(result), record::ExitCode::infrastructure);
}

TEST_F(PilotTest, AKilledLauncherLeavesNoJobAndItsRunIsResumed) {
  const OwnSlurm slurm({.nodes = 2});
  const auto pilot = pilot_setup({.nodes = 2, .slots = 2}, slurm.environment());
  std::vector<PlanLine> plan = {fake_line(1, 2, ""),
                                fake_line(2, 2, "once_slow replay 0", "process"),
                                fake_line(3, 1, "once_slow replay 0", "process")};
  for (const std::size_t index : {1, 2})
    plan[index].limits_ms[record::Phase::teardown_comm] = 60000;
  setup.plan = plan;
  {
    launcher::Background first([&] {
      setup.allocation = std::make_shared<Pilot>(pilot);
      return run(setup, listener);
    });
    ASSERT_TRUE(wait_for([&] { return begun(plan[1].id) && begun(plan[2].id); }));
    first.send(SIGKILL);
  }
  EXPECT_TRUE(slurm.empty_within(std::chrono::seconds(20))) << slurm.queue();
  EXPECT_TRUE(wait_for([&] { return marked().empty(); }));
  setup.allocation = std::make_shared<Pilot>(pilot);
  const auto result = go_on();
  setup.allocation = nullptr;
  EXPECT_EQ(verdicts(result), (std::vector<std::string>(3, "pass"))) << notices;
  for (const int index : {1, 2})
    EXPECT_EQ(result.cases[static_cast<std::size_t>(index)].record.again,
              "attempt 1 was cut off before it ended");
  std::map<std::string, int> records;
  for (const record::Record& one : journal()) ++records[one.case_id];
  for (const PlanLine& line : plan) EXPECT_EQ(records[line.id], 1) << line.name;
}

}  // namespace
}  // namespace graphproof::cluster
