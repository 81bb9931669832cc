// Whatever ends or disturbs a run on nodes of a Slurm of the test's own at whatever moment, after
// an undisturbed resume every case has exactly one verdict, no case with a verdict was run again,
// and no process, folder or job is left.
//
// GRAPHPROOF_CHAOS_ROUNDS (1), GRAPHPROOF_CHAOS_SEED and GRAPHPROOF_CHAOS_FIRST (0, a round) choose
// the number of rounds and which they are; the target `chaos_cluster` runs 100.
#include <dlfcn.h>

#include <fstream>
#include <iostream>
#include <random>

#include "launcher/cluster/testing/node_networks.h"
#include "launcher/cluster/testing/own_slurm.h"
#include "launcher/cluster/testing/pilot_of_fakes.h"
#include "launcher/host/leftovers.h"
#include "launcher/testing/chaos_of_fakes.h"

namespace graphproof::cluster {
namespace {

namespace fs = std::filesystem;
using launcher::attempt_numbers;
using launcher::Background;
using launcher::fake_line;
using launcher::FakeHost;
using launcher::read_run;

enum class Disaster {
  kill_launcher,
  interrupt,
  interrupt_twice,
  kill_rank,
  stop_rank,
  kill_agent,
  stop_agent,
  cancel_job,
  kill_node,
  kill_controller,
  full_disk,
  read_only
};
constexpr const char* kDisasters[] = {
    "kill_launcher", "interrupt",  "interrupt_twice", "kill_rank",       "stop_rank", "kill_agent",
    "stop_agent",    "cancel_job", "kill_node",       "kill_controller", "full_disk", "read_only"};
constexpr int kDisasterCount = std::size(kDisasters);

/// A case whose ranks were hit may show it in its verdict.
bool hits_a_case(Disaster disaster) {
  return disaster == Disaster::kill_rank || disaster == Disaster::stop_rank;
}
/// Cases that were running may end infra.*, and no other verdict may change: a disk that is full
/// for an agent ends the agent.
bool loses_nodes(Disaster disaster) { return disaster >= Disaster::kill_agent; }

struct ClusterChaosTest : launcher::ChaosOfFakes {
  void SetUp() override {
    RunOfFakes::SetUp();
    ASSERT_EQ(OwnSlurm::missing(), "") << "./graphproof installs it";
    ASSERT_NE(dlsym(RTLD_DEFAULT, "graphproof_fake_host"), nullptr)
        << "the host of this test is not preloaded: start it by ctest";
  }

  /// The processes of the agents of this run, and of what brings them.
  std::vector<launcher::Process> agents() const {
    std::vector<launcher::Process> found = launcher::running_processes();
    const std::string words = std::string("agent") + '\0' + "--run" + '\0' + folder.string();
    std::erase_if(found, [&](const launcher::Process& one) {
      return launcher::proc_text("/proc/" + std::to_string(one.pid) + "/cmdline").find(words) ==
             std::string::npos;
    });
    return found;
  }

  void happen(Disaster disaster, const Background& launcher, std::mt19937& random,
              const FakeHost& host, OwnSlurm& slurm) const {
    const auto one_of = [&](const std::vector<int>& pids, int signal) {
      if (!pids.empty()) ::kill(pids[random() % pids.size()], signal);
    };
    std::vector<int> on_nodes;
    for (const launcher::Process& one : agents())
      if (one.command == "graphproof") on_nodes.push_back(one.pid);
    switch (disaster) {
      case Disaster::kill_launcher:
        return launcher.send(SIGKILL);
      case Disaster::interrupt:
        return launcher.send(SIGINT);
      case Disaster::interrupt_twice:
        launcher.send(SIGINT);
        std::this_thread::sleep_for(std::chrono::milliseconds(random() % 200));
        return launcher.send(SIGTERM);
      case Disaster::kill_rank:
        return one_of(ranks_of_the_run(), random() % 2 ? SIGKILL : SIGSEGV);
      case Disaster::stop_rank:
        return one_of(ranks_of_the_run(), SIGSTOP);
      case Disaster::kill_agent:
        return one_of(on_nodes, SIGKILL);
      case Disaster::stop_agent:
        return one_of(on_nodes, SIGSTOP);
      case Disaster::cancel_job:
        launcher::run_to_end(
            {{"scancel", "--name=" + job_name(setup.run.run_id)}, slurm.environment()}, 10000);
        return;
      case Disaster::kill_node:
        slurm.kill_node("n1");
        return one_of(on_nodes, SIGKILL);  // a lost node loses its agent too
      case Disaster::kill_controller:
        return slurm.kill_controller();
      case Disaster::full_disk:
        host->free_bytes = static_cast<std::int64_t>(random() % 60000);
        return;
      case Disaster::read_only:
        host->read_only = true;
        return;
    }
  }

  int launch(const std::vector<Disaster>& disasters, std::mt19937& random, const FakeHost& host,
             OwnSlurm& slurm) {
    Background launcher([&] {
      PilotSetup pilot = pilot_of_fakes(setup, {.nodes = 2, .slots = 4}, slurm.environment());
      pilot.agent_silent_ms = 3000;
      pilot.agent_start_ms = 5000;
      setup.allocation = std::make_shared<Pilot>(std::move(pilot));
      return fs::exists(folder / "run.json") ? resume(setup, {}) : run(setup, {});
    });
    for (const Disaster disaster : disasters) {
      const auto delay_ms = static_cast<int>(random() % 2500);
      for (int waited_ms = 0; waited_ms < delay_ms && !launcher.ended(); waited_ms += 5)
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
      happen(disaster, launcher, random, host, slurm);
    }
    // What was taken down comes back: a controller, a node.
    for (int waited_ms = 0; waited_ms < 1500 && !launcher.ended(); waited_ms += 5)
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    slurm.repair();
    return launcher.wait();
  }
};

TEST_F(ClusterChaosTest, EveryCaseHasOneVerdictAndNothingIsLeftWhateverHappensToItsNodes) {
  const int rounds = launcher::number_in("GRAPHPROOF_CHAOS_ROUNDS", 1),
            seed = launcher::number_in("GRAPHPROOF_CHAOS_SEED", 20260101),
            first = launcher::number_in("GRAPHPROOF_CHAOS_FIRST", 0);
  const FakeHost host(scratch.path() / "fake-host", folder);
  OwnSlurm slurm({.nodes = 2});
  std::mt19937 calm_random(0);
  ASSERT_EQ(launch({}, calm_random, host, slurm), 1);
  const auto quiet = verdicts(checked(read_run(folder)));
  std::map<std::string, int> happened;
  int cut_off = 0, infra = 0, done = 0;
  for (int round = first; round < first + rounds && !HasFailure(); ++round, ++done) {
    std::mt19937 random(static_cast<unsigned>(seed + round));
    fs::remove_all(folder);
    fs::create_directories(folder);
    std::string what = "round " + std::to_string(round) + " of seed " + std::to_string(seed) + ":";
    int hits = 0, losses = 0;
    for (int launchers = 1 + static_cast<int>(random() % 2); launchers > 0; --launchers) {
      std::vector<Disaster> disasters;
      for (int i = 1 + static_cast<int>(random() % 2); i > 0; --i)
        disasters.push_back(
            static_cast<Disaster>((random() + static_cast<unsigned>(round)) % kDisasterCount));
      for (const Disaster disaster : disasters) {
        what += std::string(" ") + kDisasters[static_cast<int>(disaster)];
        ++happened[kDisasters[static_cast<int>(disaster)]];
        hits += hits_a_case(disaster);
        losses += loses_nodes(disaster);
      }
      const auto before = fs::exists(folder / "run.json")
                              ? final_cases()
                              : std::map<std::string, std::vector<int>>();
      const int code = launch(disasters, random, host, slurm);
      EXPECT_TRUE(code != 2 && !HasFailure()) << what;
      host.calm();
      for (const auto& [id, attempts] : before)
        EXPECT_EQ(attempt_numbers(folder, id), attempts) << what << ": " << id << " was run again";
    }
    what += ", case ";
    const auto before =
        fs::exists(folder / "run.json") ? final_cases() : std::map<std::string, std::vector<int>>();
    int code = launch({}, random, host, slurm);
    // A case that ended infra.* is tried once more by each resume, and then its verdict stands.
    for (int again = 0; code == 3 && again < 2; ++again) code = launch({}, random, host, slurm);
    EXPECT_TRUE(code == 1 || code == 3) << what << "exit code " << code;
    for (const auto& [id, attempts] : before)
      EXPECT_EQ(attempt_numbers(folder, id), attempts) << what << id << " was run again";
    EXPECT_TRUE(slurm.empty_within(std::chrono::seconds(30))) << what << slurm.queue();
    EXPECT_TRUE(wait_for([&] { return agents().empty(); }))
        << what << launcher::named(agents()).front();
    const auto result = checked(read_run(folder));
    EXPECT_EQ(result.ending, reports::Ending::finished) << what;
    expect_one_verdict_each(what);
    for (const auto& [id, verdict] : verdicts(result)) {
      if (verdict == quiet.at(id)) continue;
      EXPECT_TRUE(hits > 0 || (losses > 0 && verdict.starts_with("infra.")))
          << what << id << " ended " << verdict << ", in peace " << quiet.at(id);
      EXPECT_TRUE(!verdict.starts_with("pass")) << what << id << " failed in peace and passes now";
      EXPECT_NE(verdict, "not_run") << what << id;
    }
    for (const record::Record& record : journal()) {
      cut_off += record.again.find("cut off") != std::string::npos;
      infra += record.verdict.in("infra");
    }
    EXPECT_EQ(half_written(), std::vector<std::string>{}) << what;
  }
  std::cout << done << " rounds from seed " << seed << ":";
  for (const auto& [name, count] : happened) std::cout << " " << name << " " << count;
  std::cout << "; " << cut_off << " attempts were cut off and run again, " << infra
            << " ended infra.*\n";
}

// Agents and launcher share only a file system, so a case goes on while the network is cut. Slurm
// gives a node up about half a minute after it fell silent.
TEST_F(ClusterChaosTest, ANodeWhoseLinkIsCutIsLostOnlyWhenSlurmGivesItUpAndItsCaseRunsOnceMore) {
  ASSERT_EQ(NodeNetworks::missing(), "") << "a link that can't be cut shows nothing";
  OwnSlurm slurm({.nodes = 1, .networks = true});
  setup.plan = {fake_line(1, 1, "")};
  for (int number = 2; number <= 4; ++number)
    setup.plan.push_back(fake_line(number, 2, "once_slow replay 0", "process"));
  for (record::PlanLine& line : setup.plan) line.limits_ms[record::Phase::teardown_comm] = 60000;
  setup.allocation =
      std::make_shared<Pilot>(pilot_of_fakes(setup, {.nodes = 1, .slots = 2}, slurm.environment()));
  bool cut = false, mended = false;
  listener.progress = [&](const reports::Progress&) {
    if (!cut &&
        fs::exists(folder / "cases" / setup.plan[1].id / "attempt-1/rank-0.evidence.jsonl")) {
      cut = true;
      slurm.cut("n1");
    }
    if (cut && !mended && notices.find("the nodes are lost") != std::string::npos) {
      mended = true;
      slurm.mend("n1");
    }
  };
  const auto result = checked(run(setup, listener));
  setup.allocation = nullptr;
  EXPECT_TRUE(mended) << notices;
  std::vector<std::string> lost;
  for (const record::Record& one : journal())
    if (one.verdict.text() != "pass")
      lost.push_back(one.name + " " + std::string(one.verdict.text()));
  EXPECT_EQ(lost.size(), 1u) << notices;
  if (!lost.empty()) {
    EXPECT_TRUE(lost[0] == "case3 infra.node" || lost[0] == "case4 infra.node")
        << lost[0] << ": the one before ended while the link was cut";
  }
  for (std::size_t i = 0; i < setup.plan.size(); ++i)
    EXPECT_EQ(launcher::verdict(result, i), "pass") << notices;
  EXPECT_TRUE(slurm.empty_within(std::chrono::seconds(30))) << slurm.queue();
  EXPECT_TRUE(wait_for([&] { return agents().empty(); })) << launcher::named(agents()).front();
}

}  // namespace
}  // namespace graphproof::cluster

int main(int count, char** arguments) {
  return graphproof::launcher::main_with_fake_host(count, arguments);
}
