// One matrix has one set of verdicts with each of the four launcher backends. The test runs the
// programs themselves, on the simulated device: on this host, on named hosts and on a Slurm of its
// own.
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>

#include "launcher/cluster/testing/own_slurm.h"
#include "launcher/host/child.h"
#include "reports/record/testing/scratch_folder.h"
#include "reports/record/text/file.h"

namespace graphproof::cluster {
namespace {

namespace fs = std::filesystem;

struct Backend {
  const char* name;
  std::vector<std::string> words;
};

TEST(BackendsTest, TheSameMatrixHasTheSameVerdictsOnEveryBackend) {
  ASSERT_EQ(OwnSlurm::missing(), "") << "./graphproof installs it";
  const fs::path bin = std::getenv("GRAPHPROOF_BIN");
  ASSERT_TRUE(fs::exists(bin / "graphproof-rank-sim")) << bin;
  const OwnSlurm slurm({.nodes = 2, .cpus = 8});
  const record::ScratchFolder scratch{"/tmp"};
  const Backend backends[] = {
      {"local", {}},
      {"mpirun", {"--launcher", "mpirun", "--hosts", "localhost,localhost", "--slots", "4"}},
      {"slurm", {"--launcher", "slurm", "--nodes", "2", "--slots", "4"}},
      {"slurm-array", {"--launcher", "slurm-array", "--nodes", "2", "--slots", "4"}}};
  std::map<std::string, std::string> verdicts;
  for (const Backend& backend : backends) {
    SCOPED_TRACE(backend.name);
    const fs::path folder = scratch.path() / backend.name;
    // As many slots as this host has on sim, so that the plans are equal and only the launcher
    // backend differs.
    std::vector<std::string> words = {
        bin / "graphproof",
        "run",
        "--profile",
        "smoke",
        "--device",
        "sim",
        "--run-dir",
        folder,
        "--json",
        "--where",
        "tp <= 2 and dp == 1 and impl in {none, manual} and not dropout"};
    words.insert(words.end(), backend.words.begin(), backend.words.end());
    launcher::Environment environment = slurm.environment();
    const launcher::Output run = launcher::run_to_end({words, environment}, 120000);
    ASSERT_FALSE(run.timed_out) << run.error;
    EXPECT_EQ(run.exit, launcher::Exit{}) << run.error;
    std::string seen;
    int cases = 0;
    const nlohmann::json summary = record::read_json(folder / "summary.json");
    for (const auto& one : summary.at("cases")) {
      seen += one.at("name").get<std::string>() + " " + one.at("verdict").get<std::string>() + "\n";
      ++cases;
    }
    EXPECT_GE(cases, 3);
    EXPECT_EQ(record::read_json(folder / "run.json").at("engine"), backend.name);
    verdicts[backend.name] = seen;
    EXPECT_EQ(seen, verdicts["local"]);
  }
  EXPECT_TRUE(slurm.empty_within(std::chrono::seconds(15))) << slurm.queue();
}

}  // namespace
}  // namespace graphproof::cluster
