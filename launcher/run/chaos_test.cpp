// Whatever ends or disturbs a run at whatever moment, after an undisturbed resume every case has
// exactly one verdict, no case with a verdict was run again, and nothing is left on the host.
//
// GRAPHPROOF_CHAOS_ROUNDS (20), GRAPHPROOF_CHAOS_SEED and GRAPHPROOF_CHAOS_FIRST (0, a round)
// choose the number of rounds and which they are; the target `chaos` runs 500.
#include <dlfcn.h>

#include <cstdlib>
#include <fstream>
#include <iostream>
#include <map>
#include <random>
#include <set>

#include "launcher/run/pending_work.h"
#include "launcher/testing/chaos_of_fakes.h"

namespace graphproof::launcher {
namespace {

namespace fs = std::filesystem;

/// What happens to a run at a random moment of it.
enum class Disaster {
  kill_launcher,
  interrupt,
  interrupt_twice,
  kill_rank,
  kill_starter,
  stop_rank,
  full_disk,
  read_only,
  clock_step
};
constexpr const char* kDisasters[] = {"kill_launcher", "interrupt",    "interrupt_twice",
                                      "kill_rank",     "kill_starter", "stop_rank",
                                      "full_disk",     "read_only",    "clock_step"};
constexpr int kDisasterCount = std::size(kDisasters);

/// A case whose ranks or starter were hit may show it in its verdict; no other case may.
bool hits_a_case(Disaster disaster) {
  return disaster == Disaster::kill_rank || disaster == Disaster::kill_starter ||
         disaster == Disaster::stop_rank;
}

struct ChaosTest : ChaosOfFakes {
  ChaosTest() {
    const fs::path tests = fs::read_symlink("/proc/self/exe").parent_path();
    const char* path = std::getenv("PATH");
    setenv("PATH",
           (tests.string() + "/fake_mpirun:" + (path != nullptr ? path : "/usr/bin:/bin")).c_str(),
           1);
  }

  void happen(Disaster disaster, const Background& launcher, std::mt19937& random,
              const FakeHost& host) const {
    const auto one_of = [&](const std::vector<int>& pids, int signal) {
      if (!pids.empty()) ::kill(pids[random() % pids.size()], signal);
    };
    switch (disaster) {
      case Disaster::kill_launcher:
        return launcher.send(SIGKILL);
      case Disaster::interrupt:
        return launcher.send(SIGINT);
      case Disaster::interrupt_twice:
        launcher.send(SIGINT);
        std::this_thread::sleep_for(std::chrono::milliseconds(random() % 60));
        return launcher.send(SIGTERM);
      case Disaster::kill_rank:
        return one_of(ranks_of_the_run(), random() % 2 ? SIGKILL : SIGSEGV);
      case Disaster::kill_starter:
        return one_of(starters_of_the_run(), SIGKILL);
      case Disaster::stop_rank:
        return one_of(ranks_of_the_run(), SIGSTOP);
      case Disaster::full_disk:
        host->free_bytes = static_cast<std::int64_t>(random() % 20000);
        return;
      case Disaster::read_only:
        host->read_only = true;
        return;
      case Disaster::clock_step:
        host->clock_step_s = static_cast<std::int64_t>(random() % 2000001) - 1000000;
        return;
    }
  }

  /// Runs one launcher, disturbed or not, from its start to its end. Returns its exit code; -1 when
  /// it was killed.
  int launch(const std::vector<Disaster>& disasters, std::mt19937& random,
             const FakeHost& host) const {
    Background launcher(
        [this] { return fs::exists(folder / "run.json") ? resume(setup, {}) : run(setup, {}); });
    for (const Disaster disaster : disasters) {
      const auto delay_ms = static_cast<int>(random() % 700);
      for (int waited_ms = 0; waited_ms < delay_ms && !launcher.ended(); waited_ms += 2)
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
      happen(disaster, launcher, random, host);
    }
    return launcher.wait();
  }
};

TEST_F(ChaosTest, EveryCaseHasOneVerdictAndNothingIsLeftWhateverHappens) {
  ASSERT_NE(dlsym(RTLD_DEFAULT, "graphproof_fake_host"), nullptr)
      << "the host of this test is not preloaded: start it by ctest";
  const int rounds = number_in("GRAPHPROOF_CHAOS_ROUNDS", 20),
            seed = number_in("GRAPHPROOF_CHAOS_SEED", 20260101),
            first = number_in("GRAPHPROOF_CHAOS_FIRST", 0);
  const FakeHost host(scratch.path() / "fake-host", folder);
  std::mt19937 calm_random(0);
  ASSERT_EQ(launch({}, calm_random, host), 1);
  const auto quiet = verdicts(checked(read_run(folder)));
  std::map<std::string, int> happened;
  std::int64_t refused = 0, resumed = 0, cut_off = 0;
  for (int round = first; round < first + rounds && !HasFailure(); ++round) {
    std::mt19937 random(static_cast<unsigned>(seed + round));
    host.calm();
    fs::remove_all(folder);
    fs::create_directories(folder);
    std::string what = "round " + std::to_string(round) + ":";
    int hits = 0;
    const int launchers = 1 + static_cast<int>(random() % 3);
    for (int number = 0; number < launchers; ++number) {
      std::vector<Disaster> disasters;
      for (int i = 1 + static_cast<int>(random() % 2); i > 0; --i)
        disasters.push_back(
            static_cast<Disaster>((random() + static_cast<unsigned>(round)) % kDisasterCount));
      for (const Disaster disaster : disasters) {
        what += std::string(" ") + kDisasters[static_cast<int>(disaster)];
        ++happened[kDisasters[static_cast<int>(disaster)]];
        hits += hits_a_case(disaster);
      }
      const auto before = fs::exists(folder / "run.json")
                              ? final_cases()
                              : std::map<std::string, std::vector<int>>();
      const int code = launch(disasters, random, host);
      refused += host->refused.exchange(0);
      host.calm();
      EXPECT_TRUE(code != 2 && !HasFailure()) << what;
      for (const auto& [id, attempts] : before)
        EXPECT_EQ(attempt_numbers(folder, id), attempts) << what << ": " << id << " was run again";
    }
    what += ", case ";
    ++resumed;
    const auto before =
        fs::exists(folder / "run.json") ? final_cases() : std::map<std::string, std::vector<int>>();
    int code = launch({}, random, host);
    // A case that ended infra.* is tried once more by each resume, and then its verdict stands.
    for (int again = 0; code == 3 && again < 2; ++again) code = launch({}, random, host);
    EXPECT_TRUE(code == 1 || code == 3) << what << "exit code " << code;
    for (const auto& [id, attempts] : before)
      EXPECT_EQ(attempt_numbers(folder, id), attempts) << what << id << " was run again";
    const auto result = checked(read_run(folder));
    EXPECT_EQ(result.ending, reports::Ending::finished) << what;
    expect_one_verdict_each(what);
    int other = 0;
    for (const auto& [id, verdict] : verdicts(result)) {
      if (verdict != quiet.at(id)) {
        ++other;
        EXPECT_TRUE(hits > 0) << what << id << " ended " << verdict << ", in peace "
                              << quiet.at(id);
        EXPECT_TRUE(!verdict.starts_with("pass"))
            << what << id << " failed in peace and passes now";
      }
      EXPECT_NE(verdict, "not_run") << what << id;
    }
    EXPECT_LE(other, hits) << what << "more cases changed than were hit";
    for (const record::Record& record : journal())
      cut_off += record.again.find("cut off") != std::string::npos;
    EXPECT_EQ(half_written(), std::vector<std::string>{}) << what;
  }
  std::cout << rounds << " rounds from seed " << seed << ":";
  for (const auto& [name, count] : happened) std::cout << " " << name << " " << count;
  std::cout << "; " << refused << " calls met a full or read-only disk, " << cut_off
            << " attempts were cut off and run again\n";
}

/// A finished run whose journal ends after `bytes`.
TEST_F(ChaosTest, AJournalThatEndsAtAnyByteIsGoneOnWith) {
  ASSERT_NE(dlsym(RTLD_DEFAULT, "graphproof_fake_host"), nullptr)
      << "the host of this test is not preloaded: start it by ctest";
  setup.plan = {fake_line(0, 1, ""), fake_line(1, 1, "wrong replay 0"),
                fake_line(2, 2, "", "process")};
  const auto quiet = verdicts(go(setup.plan));
  const fs::path file = folder / "journal.jsonl";
  const std::string whole = record::read_text(file);
  const int resumes = number_in("GRAPHPROOF_CHAOS_ROUNDS", 20);
  std::mt19937 random(static_cast<unsigned>(number_in("GRAPHPROOF_CHAOS_SEED", 20260101)));
  // A resume starts a judge for every record that is missing, so not every byte is tried, unless
  // more rounds are asked for.
  std::set<std::size_t> to_resume{0, whole.size() - 1};
  for (std::size_t at = whole.find('\n'); at != whole.npos; at = whole.find('\n', at + 1))
    to_resume.insert({at, std::min(at + 1, whole.size() - 1)});
  while (to_resume.size() < std::min<std::size_t>(static_cast<std::size_t>(resumes), whole.size()))
    to_resume.insert(random() % whole.size());
  for (std::size_t bytes = 0; bytes <= whole.size(); ++bytes) {
    std::ofstream(file, std::ios::trunc) << whole.substr(0, bytes);
    const auto lines = static_cast<std::size_t>(
        std::count(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(bytes), '\n'));
    const record::JournalContent content = record::read_journal(file);
    ASSERT_EQ(content.records.size(), lines) << bytes;
    const PendingWork left = pending_work(folder, setup.plan, content.records);
    ASSERT_TRUE(left.attempts.empty() && left.diagnoses.empty())
        << "at byte " << bytes << ": what has its evidence is judged, not run";
    ASSERT_EQ(static_cast<std::size_t>(left.kept) + left.unjudged.size(), setup.plan.size())
        << bytes;
    if (!to_resume.contains(bytes)) continue;
    ASSERT_EQ(verdicts(go_on()), quiet) << "the journal ended at byte " << bytes;
    expect_one_verdict_each("byte " + std::to_string(bytes) + ": ");
  }
}

}  // namespace
}  // namespace graphproof::launcher

int main(int count, char** arguments) {
  return graphproof::launcher::main_with_fake_host(count, arguments);
}
