// bundle: what is in the archive, what is not, and the program that repeats the case.
#include <gtest/gtest.h>
#include <stdlib.h>

#include "launcher/cli/bundle/reproducer.h"
#include "launcher/cli/testing/command_under_test.h"
#include "launcher/host/child.h"
#include "matrix/plan/plan_line.h"
#include "reports/record/job/plan.h"
#include "reports/record/text/file.h"

namespace graphproof::cli {
namespace {

namespace fs = std::filesystem;

struct BundleTest : CommandUnderTest {
  BundleTest() {
    fs::create_directories(top / "bin");
    const fs::path tests = fs::read_symlink("/proc/self/exe").parent_path();
    for (const char* program : {"graphproof-rank-sim", "graphproof-judge"})
      fs::create_symlink(tests / "graphproof_fake_rank", top / "bin" / program);
    fs::create_symlink(tests / "graphproof-start", top / "bin/graphproof-start");
    fs::create_directory_symlink(tests.parent_path() / "bin/python", top / "bin/python");
  }

  /// Runs one case of one rank; its id.
  std::string run_case() const {
    cli({"repro", "impl=manual", "--device", "sim"});
    return record::plan_from(record::read_text(top / "runs/latest/plan.jsonl"), "plan.jsonl")
        .front()
        .id;
  }
  /// The texts of an archive by name.
  std::map<std::string, std::string> unpacked(const fs::path& archive) const {
    const fs::path to = top / "unpacked";
    fs::remove_all(to);
    fs::create_directory(to);
    EXPECT_EQ(launcher::run_to_end({{"tar", "-xzf", archive.string(), "-C", to.string()},
                                    launcher::own_environment()},
                                   60'000)
                  .exit,
              launcher::Exit{});
    std::map<std::string, std::string> texts;
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator(to))
      if (entry.is_regular_file()) {
        const fs::path name = fs::relative(entry.path(), to);
        texts[name.string().substr(name.string().find('/') + 1)] = record::read_text(entry.path());
      }
    return texts;
  }
  record::PlanLine line_of(const matrix::Case& test_case) const {
    return matrix::plan_case(catalogue, test_case, {.device = "cuda", .slots = 8, .stack = {}},
                             "test");
  }
  Reproducer reproducer(const std::string& name) const {
    const matrix::Case test_case = matrix::case_from_name(catalogue.axes, name, "test");
    return reproducer_of(test_case, line_of(test_case), 7,
                         {{"NCCL_NVLS_ENABLE", "0"},
                          {"NCCL_TOPO_FILE", "/home/alice/topo.xml"},
                          {"CUDA_HOME", "/usr/local/cuda"},
                          {"HOME", "/home/alice"}},
                         top / "bin");
  }
};

TEST_F(BundleTest, HasTheEvidenceAndNothingPrivate) {
  const std::string id = run_case();
  const fs::path run = fs::canonical(top / "runs/latest");
  std::vector<fs::path> logs, attempts;
  for (const auto& entry : fs::recursive_directory_iterator(run)) {
    if (entry.path().filename() == "starter.log") logs.push_back(entry.path());
    if (entry.path().filename().string().starts_with("attempt-")) attempts.push_back(entry.path());
  }
  ASSERT_FALSE(logs.empty() || attempts.empty());
  for (const fs::path& log : logs)
    std::ofstream(log, std::ios::app) << "File \"/home/alice/work/train.py\", line 3\n"
                                         "connect to 10.9.8.7\nHF_TOKEN=hf_secret\n";
  for (const fs::path& attempt : attempts)
    std::ofstream(attempt / "core", std::ios::binary) << std::string("a\0b", 3);
  const fs::path archive = top / "case.tar.gz";
  const Printed printed = cli({"bundle", id, "--file", archive});
  ASSERT_EQ(printed.exit_code, 0) << printed.err;
  const auto texts = unpacked(archive);
  for (const char* name : {"README.md", "record.json", "plan.json", "run.json",
                           "attempt/rank-0.evidence.jsonl", "batch/starter.log"})
    EXPECT_TRUE(texts.contains(name)) << name;
  EXPECT_FALSE(texts.contains("attempt/core")) << "it is not text";
  EXPECT_NE(texts.at("batch/starter.log").find("PATH/train.py"), std::string::npos);
  EXPECT_EQ(nlohmann::json::parse(texts.at("record.json")).at("case"), id);
  for (const auto& [name, text] : texts)
    for (const std::string& secret :
         {std::string("alice"), std::string("10.9.8.7"), std::string("hf_secret"), top.string()})
      EXPECT_EQ(text.find(secret), std::string::npos) << secret << " in " << name;
  const std::string& readme = texts.at("README.md");
  for (const char* said : {"simulated device", "attempt/core", "`ADDRESS` stands for",
                           "There is no program without graphproof", "repro 'impl=manual'"})
    EXPECT_NE(readme.find(said), std::string::npos) << said << "\n" << readme;
}

TEST_F(BundleTest, TheSameCaseGivesTheSameArchiveAndNoFileIsReplaced) {
  const std::string id = run_case();
  ASSERT_EQ(cli({"bundle", id, "--file", top / "a.tar.gz"}).exit_code, 0);
  const Printed again = cli({"bundle", id, "--file", top / "b.tar.gz", "--json"});
  EXPECT_EQ(record::read_text(top / "a.tar.gz"), record::read_text(top / "b.tar.gz"));
  EXPECT_FALSE(nlohmann::json::parse(again.out).at("reproducer"));
  const Printed third = cli({"bundle", id, "--file", top / "a.tar.gz"});
  EXPECT_EQ(third.exit_code, 2);
  EXPECT_NE(third.err.find("exists"), std::string::npos) << third.err;
}

TEST_F(BundleTest, OfALogOfAGigabyteTheEndIsPacked) {
  const std::string id = run_case();
  const fs::path run = fs::canonical(top / "runs/latest");
  for (const auto& entry : fs::recursive_directory_iterator(run)) {
    if (entry.path().filename() != "starter.log") continue;
    std::ofstream log(entry.path(), std::ios::binary | std::ios::in);
    log.seekp(1'000'000'000);  // a hole, which needs no space on the disk
    for (int line = 0; line < 100'000; ++line) log << "line " << line << " of the end of the log\n";
  }
  const fs::path archive = top / "case.tar.gz";
  const Printed printed = cli({"bundle", id, "--file", archive});
  ASSERT_EQ(printed.exit_code, 0) << printed.err;
  const auto texts = unpacked(archive);
  const std::string& log = texts.at("batch/starter.log");
  EXPECT_LE(log.size(), std::size_t{1} << 20);
  EXPECT_TRUE(log.starts_with("line ")) << log.substr(0, 40);
  EXPECT_TRUE(log.ends_with("line 99999 of the end of the log\n"));
  const std::string& readme = texts.at("README.md");
  const std::size_t cut = readme.find("Only the last 1 MiB of these are here");
  ASSERT_NE(cut, std::string::npos) << readme;
  EXPECT_NE(readme.find("batch/starter.log", cut), std::string::npos) << readme;
}

TEST_F(BundleTest, ACaseThatDidNotRunIsNamed) {
  const Printed printed = cli({"bundle", "impl=manual,tp=2"});
  EXPECT_EQ(printed.exit_code, 2);
  EXPECT_NE(printed.err.find("has no result"), std::string::npos) << printed.err;
}

TEST_F(BundleTest, AProgramRepeatsTheCaseWithItsValuesAndEnvironment) {
  const Reproducer one = reproducer(
      "impl=manual,dp=2,model=collective,allocator=expandable,placement=per_rank,"
      "collective=all_reduce,collective_bytes=16777216,nccl_graph_register=1");
  ASSERT_EQ(one.why_not, "");
  EXPECT_EQ(one.command, "torchrun --nproc-per-node 2 reproducer.py");
  const std::size_t begin = one.text.find("r\"\"\"") + 4;
  const nlohmann::json filled =
      nlohmann::json::parse(one.text.substr(begin, one.text.find("\"\"\")", begin) - begin));
  EXPECT_EQ(filled.at("collective"), "all_reduce");
  EXPECT_EQ(filled.at("seed"), 7);
  const nlohmann::json& environment = filled.at("environment");
  EXPECT_EQ(environment.at("PYTORCH_CUDA_ALLOC_CONF"), "expandable_segments:True");
  EXPECT_EQ(environment.at("NCCL_GRAPH_REGISTER"), "1");
  EXPECT_EQ(environment.at("NCCL_NVLS_ENABLE"), "0") << "the user had set it";
  EXPECT_EQ(environment.at("NCCL_ALGO"), "Ring") << "the launcher sets it";
  for (const char* name : {"HOME", "CUDA_HOME", "NCCL_TOPO_FILE", "CUDA_VISIBLE_DEVICES"})
    EXPECT_FALSE(environment.contains(name)) << name;
  const std::string file =
      record::read_text(top / "bin/python/graphproof/reproducers/collective.py");
  EXPECT_EQ(one.text.substr(one.text.find("\"\"\")", begin)),
            file.substr(file.find("{}\"\"\")") + 2))
      << "nothing else is changed";
  EXPECT_NE(reproducer("subject=torch,impl=full_iteration,microbatches=2,dropout=true")
                .text.find("class Gpt"),
            std::string::npos);
}

TEST_F(BundleTest, AValueThatTheProgramDoesNotKnowIsNoSilentDifference) {
  const std::pair<const char*, const char*> rows[] = {
      {"impl=manual", "a model of graphproof's own"},
      {"subject=torch,impl=manual,recompute=full(block,2)", "axis recompute"},
      {"subject=torch,impl=manual,precision=fp16", "fp16"},
      {"subject=fsdp2,impl=manual,dp=2,comm=c10d", "subject fsdp2"},
      {"impl=manual,dp=2,model=collective,collective=all_gather,collective_bytes=1024,fault=M52",
       "plants"}};
  for (const auto& [name, why] : rows) {
    const Reproducer none = reproducer(name);
    EXPECT_EQ(none.text, "") << name;
    EXPECT_NE(none.why_not.find(why), std::string::npos) << none.why_not;
  }
}

TEST_F(BundleTest, AnInstallationWithoutThePythonPackageIsNamed) {
  fs::remove(top / "bin/python");
  EXPECT_THROW(reproducer("subject=torch,impl=manual"), std::exception);
}

}  // namespace
}  // namespace graphproof::cli
