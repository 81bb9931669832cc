// The scripts that repro writes, run with a rank program that follows a script, and with stand-ins
// for gdb, compute-sanitizer and nsys, which note how they were started and start the rank.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/wait.h>

#include "launcher/backend/compute_sanitizer.h"
#include "launcher/cli/repro_script.h"
#include "launcher/cli/testing/command_under_test.h"
#include "launcher/host/child.h"
#include "matrix/plan/plan_line.h"
#include "reports/record/job/plan.h"
#include "reports/record/text/file.h"

namespace graphproof::cli {
namespace {

namespace fs = std::filesystem;

struct ReproScriptTest : CommandUnderTest {
  ReproScriptTest() {
    install(top / "bin");
    fs::create_directory(tools);
    setenv("PATH", (tools.string() + ":" + path).c_str(), 1);
  }
  ~ReproScriptTest() override { setenv("PATH", path.c_str(), 1); }
  void SetUp() override {
    ASSERT_FALSE(launcher::find_program("mpirun", launcher::own_environment()).empty())
        << "this machine has no mpirun: ./graphproof installs it";
  }

  void install(const fs::path& folder) const {
    fs::create_directories(folder);
    const fs::path fake = fs::read_symlink("/proc/self/exe").parent_path() / "graphproof_fake_rank";
    for (const char* program : {"graphproof-rank-sim", "graphproof-rank-cuda", "graphproof-judge"})
      fs::create_symlink(fake, folder / program);
    fs::create_symlink(fake.parent_path() / "graphproof-start", folder / "graphproof-start");
  }
  /// A program that notes the arguments before its last `rank_words`, and runs what these say.
  void stand_in(const std::string& name, const std::string& rest = "exec \"$@\"") const {
    const fs::path program = tools / name;
    std::ofstream(program)
        << "#!/bin/sh\n"
           "noted=\n"
           "while case \"$1\" in *graphproof-rank-*) false;; esac; do noted=\"$noted "
           "$1\"; shift; done\n"
           "echo \"$noted\" >>\"" +
               (top / "noted").string() + "\"\n" + rest + "\n";
    fs::permissions(program, fs::perms::owner_all);
  }
  std::string noted() const {
    return fs::exists(top / "noted") ? record::read_text(top / "noted") : "";
  }
  /// The exit code of a script; what it prints is in printed.log.
  int run_script(const fs::path& script, const fs::path& folder,
                 const std::string& before = "") const {
    const int status =
        std::system(fmt::format("{} sh '{}' \"{}\" >'{}' 2>&1 </dev/null", before, script.string(),
                                folder.string(), (top / "printed.log").string())
                        .c_str());
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }
  std::string printed() const { return record::read_text(top / "printed.log"); }

  /// The script of a case of two ranks on two GPUs, whose ranks are the fake ones.
  fs::path cuda_script(const RankTool& tool) const {
    const launcher::Device device{.name = "cuda",
                                  .rank_program = top / "bin/graphproof-rank-cuda",
                                  .stack = {},
                                  .gpus = {"0", "1"},
                                  .slots = 2,
                                  .note = {}};
    const matrix::Case two = matrix::case_from_name(catalogue.axes, "impl=manual,tp=2", "test");
    const record::PlanLine line =
        matrix::plan_case(catalogue, two, {.device = "cuda", .slots = 2, .stack = {}}, "test");
    record::write_atomically(top / "cuda.sh",
                             repro_script(line, device, catalogue.limits, 1, tool));
    return top / "cuda.sh";
  }

  const std::string path = getenv("PATH");
  const fs::path tools = top / "tools";
};

TEST_F(ReproScriptTest, AScriptReproducesACaseWithoutTheLauncher) {
  const fs::path script = top / "case.sh", folder = top / "it's here";
  const Printed printed = cli({"repro", "impl=manual,tp=2", "--device", "sim", "--script", script});
  ASSERT_EQ(printed.exit_code, 0) << printed.err;
  EXPECT_FALSE(fs::exists(top / "runs")) << "a script is no run";
  const int status = std::system(
      ("sh '" + script.string() + "' \"" + folder.string() + "\" >/dev/null 2>&1").c_str());
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0)
      << status << "\n"
      << record::read_text(folder / "starter.log");
  for (const char* file :
       {"case/rank-0.evidence.jsonl", "case/rank-1.evidence.jsonl", "heartbeats.jsonl"})
    EXPECT_GT(fs::file_size(folder / file), 0u) << file;
  EXPECT_EQ(cli({"repro", "impl=manual,tp=2", "--device", "sim", "--script", "-"}).out,
            record::read_text(script));
}

TEST_F(ReproScriptTest, ACopiedRunFolderIsEnoughElsewhere) {
  ASSERT_EQ(cli({"run", "--profile", "smoke", "--device", "sim", "--where",
                 "tp == 1 and dp == 1 and impl == manual and not dropout"})
                .exit_code,
            4);
  const fs::path copy = top / "other machine", elsewhere = top / "other programs";
  fs::copy(fs::canonical(top / "runs/latest"), copy, fs::copy_options::recursive);
  const auto plan = record::plan_from(record::read_text(copy / "plan.jsonl"), "plan.jsonl");
  fs::remove_all(top / "runs");
  const Printed written =
      cli({"repro", copy.string() + "/" + plan.front().id, "--script", (top / "case.sh").string()});
  ASSERT_EQ(written.exit_code, 0) << written.err;
  install(elsewhere);
  fs::remove_all(top / "bin");
  EXPECT_NE(run_script(top / "case.sh", top / "a"), 0) << "the programs are gone";
  EXPECT_EQ(
      run_script(top / "case.sh", top / "b", "GRAPHPROOF_PROGRAMS='" + elsewhere.string() + "'"), 0)
      << printed();
  EXPECT_GT(fs::file_size(top / "b/case/rank-0.evidence.jsonl"), 0u);
}

TEST_F(ReproScriptTest, GdbGetsTheOneRankAndTheOthersRunAlone) {
  stand_in("gdb");
  const fs::path script = top / "case.sh";
  const Printed written =
      cli({"repro", "impl=manual,tp=2", "--device", "sim", "--gdb-rank", "1", "--script", script});
  ASSERT_EQ(written.exit_code, 0) << written.err;
  EXPECT_EQ(run_script(script, top / "out"), 0) << printed();
  EXPECT_EQ(noted(), " --args\n") << "one rank of two";
  for (const char* file : {"case/rank-0.evidence.jsonl", "case/rank-1.evidence.jsonl"})
    EXPECT_GT(fs::file_size(top / "out" / file), 0u) << file;
  EXPECT_TRUE(fs::exists(top / "out/output-0.log"));
  EXPECT_FALSE(fs::exists(top / "out/output-1.log")) << "its output is in the terminal";
  EXPECT_EQ(record::read_text(script).find("timeout"), std::string::npos) << "gdb waits";

  const Printed outside =
      cli({"repro", "impl=manual,tp=2", "--device", "sim", "--gdb-rank", "2", "--script", script});
  EXPECT_EQ(outside.exit_code, 2);
  EXPECT_NE(outside.err.find("0 to 1"), std::string::npos) << outside.err;
}

TEST_F(ReproScriptTest, CudaGdbIsTakenOnGpus) {
  stand_in("gdb");
  stand_in("cuda-gdb");
  fs::remove(tools / "gdb");
  EXPECT_EQ(
      run_script(cuda_script({.kind = RankTool::Kind::gdb, .rank = 0, .checker = {}}), top / "out"),
      0)
      << printed();
  EXPECT_EQ(noted(), " --args\n");
}

TEST_F(ReproScriptTest, ComputeSanitizerTakesEveryRankAndItsErrorsCount) {
  const RankTool tool{.kind = RankTool::Kind::compute_sanitizer, .checker = "racecheck"};
  stand_in("compute-sanitizer");
  const fs::path script = cuda_script(tool);
  EXPECT_EQ(run_script(script, top / "out"), 0) << printed();
  for (const char* rank : {"0", "1"})
    EXPECT_NE(
        noted().find(fmt::format(
            " --error-exitcode 99 {}\n",
            fmt::join(launcher::sanitizer_options(
                          "racecheck", (top / "out/compute-sanitizer-").string() + rank + ".log"),
                      " "))),
        std::string::npos)
        << noted();

  // One that finds an error in rank 1.
  stand_in("compute-sanitizer",
           "\"$@\" || exit $?\n"
           "[ \"$GRAPHPROOF_RANK\" = 1 ] || exit 0\n"
           "echo '========= ERROR SUMMARY: 3 errors' >\"" +
               (top / "again/compute-sanitizer-1.log").string() + "\"; exit 99");
  EXPECT_EQ(run_script(script, top / "again"), 99);
  EXPECT_NE(printed().find("compute-sanitizer-1.log:========= ERROR SUMMARY: 3 errors"),
            std::string::npos)
      << printed();

  const Printed sim = cli({"repro", "impl=manual,tp=2", "--device", "sim", "--compute-sanitizer",
                           "memcheck", "--script", "-"});
  EXPECT_EQ(sim.exit_code, 2);
  EXPECT_NE(sim.err.find("--device cuda"), std::string::npos) << sim.err;
}

TEST_F(ReproScriptTest, NsysWritesAProfileOfEveryRank) {
  stand_in("nsys", "touch \"" + (top / "out").string() +
                       "/nsys-rank-$GRAPHPROOF_RANK.nsys-rep\"; exec \"$@\"");
  EXPECT_EQ(run_script(cuda_script({.kind = RankTool::Kind::nsys, .checker = {}}), top / "out"), 0)
      << printed();
  for (const char* rank : {"0", "1"}) {
    EXPECT_NE(noted().find(" profile --trace cuda,nvtx,osrt --cuda-graph-trace node "
                           "--force-overwrite true --output " +
                           (top / "out/nsys-rank-").string() + rank + "\n"),
              std::string::npos)
        << noted();
    EXPECT_NE(printed().find(std::string("nsys-rank-") + rank + ".nsys-rep"), std::string::npos)
        << printed();
  }
}

TEST_F(ReproScriptTest, AToolThatIsMissingIsNamedBeforeAnythingStarts) {
  const fs::path script = cuda_script({.kind = RankTool::Kind::nsys, .checker = {}});
  EXPECT_EQ(run_script(script, top / "out", "PATH=/usr/bin:/bin"), 127);
  EXPECT_NE(printed().find("not in PATH: nsys"), std::string::npos) << printed();
  EXPECT_FALSE(fs::exists(top / "out/starter.log"));
}

}  // namespace
}  // namespace graphproof::cli
