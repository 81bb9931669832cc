// The verb qualify from its command line to its sheet: the program itself runs as the stages, with
// a rank program and a judge that follow a script, on the simulated device. This judge has only one
// check, so good cases end `unexercised` (exit code 4) and planted faults are missed (1). Container
// programs are stand-ins, which write down how they were called.
#include <gtest/gtest.h>
#include <stdlib.h>

#include <fstream>

#include "launcher/cli/testing/command_under_test.h"
#include "launcher/host/child.h"
#include "reports/record/schema/violations.h"
#include "reports/record/text/file.h"

namespace graphproof::cli {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

struct QualifyTest : CommandUnderTest {
  QualifyTest() {
    fs::create_directories(top / "bin");
    const fs::path here = fs::read_symlink("/proc/self/exe").parent_path();
    for (const char* program : {"graphproof-rank-sim", "graphproof-judge"})
      fs::create_symlink(here / "graphproof_fake_rank", top / "bin" / program);
    fs::create_symlink(here / "graphproof-start", top / "bin/graphproof-start");
    // A copy, because the program looks for the others in its own folder.
    fs::copy_file(fs::path(getenv("GRAPHPROOF_BIN")) / "graphproof", top / "bin/graphproof");
    path_ = getenv("PATH");
    setenv("PATH", (top / "bin").string().append(":").append(path_).c_str(), 1);
    fs::current_path(top);
  }
  ~QualifyTest() override {
    fs::current_path("/");
    setenv("PATH", path_.c_str(), 1);
  }
  void SetUp() override {
    ASSERT_FALSE(launcher::find_program("mpirun", launcher::own_environment()).empty())
        << "this machine has no mpirun: ./graphproof installs it";
  }

  /// A program in PATH.
  void script(const std::string& name, const std::string& text) const {
    fs::remove(top / "bin" / name);
    std::ofstream(top / "bin" / name) << "#!/bin/sh\n" << text;
    fs::permissions(top / "bin" / name, fs::perms::owner_all);
  }
  /// A container program that has no images: `before` runs first, with the image in $image and the
  /// command in $*.
  void container(const std::string& before) const {
    script("box", "image=$1; shift\necho \"$image $*\" >>" + (top / "calls").string() + "\n" +
                      before + "\nexec \"$@\"\n");
  }
  std::vector<std::string> calls(const std::string& verb) const {
    std::vector<std::string> found;
    for (const std::string& line : record::read_lines(top / "calls").lines)
      if (line.find("graphproof " + verb + " ") != line.npos) found.push_back(line);
    return found;
  }

  /// Few cases: one fault with its clean twin, and one case of the profile smoke.
  Printed qualify(std::vector<std::string> more, const std::string& stages = "faults,smoke") const {
    std::vector<std::string> arguments = {"qualify", "--stages",  stages, "--device",
                                          "sim",     "--run-dir", folder, "--json"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    arguments.insert(arguments.end(),
                     {"--", "--where",
                      "fault == M23 or fault == none and impl == manual and tp == 1 and dp == 1 "
                      "and not dropout"});
    return cli(arguments);
  }
  json sheet() const { return record::read_json(folder / "qualification.json"); }
  static json named(const json& list, const std::string& name) {
    for (const json& one : list)
      if (one.at("name") == name) return one;
    return nullptr;
  }
  launcher::Output sha256sum() const {
    return launcher::run_to_end(
        {{"env", "-C", folder.string(), "sha256sum", "-c", "--quiet", "SHA256SUMS"},
         launcher::own_environment()},
        60'000);
  }

  const fs::path folder = top / "q";
  std::string path_;
};

TEST_F(QualifyTest, StagesAreRunsAndTheSheetSaysWhatWasShownAndWhatWasNot) {
  const Printed printed = qualify({});
  ASSERT_EQ(printed.exit_code, 1) << printed.out << printed.err;
  const json value = json::parse(printed.out);
  EXPECT_EQ(value, sheet());
  for (const std::string& sentence : record::violations("qualification", value))
    ADD_FAILURE() << sentence;
  for (const char* name : {"faults", "smoke"}) {
    const json stage = named(value.at("stages"), name);
    EXPECT_EQ(stage.at("shown"), true) << stage;
    EXPECT_EQ(stage.at("exit_code"), name == std::string("smoke") ? 4 : 1) << stage;
    EXPECT_TRUE(fs::exists(folder / "stages" / name / "report.html"));
    EXPECT_NE(cli({"report", (folder / "stages" / name).string()}).exit_code, 2);
  }
  EXPECT_NE(value.at("not_shown").dump().find("stage hazards"), std::string::npos);
  // Nothing here runs for long, and no case has a limit for its times.
  for (const char* absent : {"stage soak", "stage performance", "whether graphs are fast enough"})
    EXPECT_NE(value.at("not_shown").dump().find(absent), std::string::npos) << absent;
  EXPECT_NE(value.at("not_shown").dump().find("the runs were given --where"), std::string::npos);
  EXPECT_NE(value.at("not_shown").dump().find("CUDA, NCCL and GPUs"), std::string::npos);
  EXPECT_GE(value.at("stacks").at(0).at("libraries").size(), 3u) << "the C library at least";
  for (const char* sheet : {"qualification.html", "qualification.md", "qualification.txt"})
    EXPECT_NE(record::read_text(folder / sheet).find("Not qualified: failures in faults."),
              std::string::npos)
        << sheet;

  EXPECT_EQ(sha256sum().exit, launcher::Exit{}) << sha256sum().error;
  EXPECT_GT(value.at("signed_files"), 10);
  std::ofstream(folder / "stages/faults/journal.jsonl", std::ios::app) << " ";
  EXPECT_NE(sha256sum().exit, launcher::Exit{}) << "one byte of evidence changed";
}

TEST_F(QualifyTest, AStageThatFailsDoesNotStopTheOthersAndIsRunAgain) {
  container("case \"$*\" in *\"--profile faults\"*) echo graphproof: no luck >&2; exit 3;; esac");
  const std::vector<std::string> options = {"--image", "one.sif", "--with", "box {image}"};
  const Printed printed = qualify(options);
  EXPECT_EQ(printed.exit_code, 4) << printed.err;
  json stage = named(sheet().at("stages"), "faults");
  EXPECT_EQ(stage.at("exit_code"), 3);
  EXPECT_EQ(stage.at("shown"), false);
  EXPECT_NE(stage.at("fault").get<std::string>().find("no luck"), std::string::npos) << stage;
  EXPECT_EQ(named(sheet().at("stages"), "smoke").at("shown"), true);
  EXPECT_NE(record::read_text(folder / "qualification.txt").find("It was not shown that defects"),
            std::string::npos);

  container("");
  fs::remove(top / "calls");
  const Printed resumed = cli({"qualify", "--resume", folder.string()});
  EXPECT_EQ(resumed.exit_code, 1) << resumed.err;
  EXPECT_EQ(named(sheet().at("stages"), "faults").at("shown"), true);
  ASSERT_EQ(calls("run").size(), 1u) << "the stage that has its result is not run again";
  EXPECT_NE(calls("run")[0].find("--profile faults"), std::string::npos);
  EXPECT_EQ(sha256sum().exit, launcher::Exit{}) << sha256sum().error;
}

TEST_F(QualifyTest, AnInterruptedQualificationIsContinued) {
  container("case \"$*\" in *\"--profile faults\"*) [ -e " + (top / "once").string() +
            " ] || { touch " + (top / "once").string() +
            "; kill -INT $PPID; sleep 1; exit 5; };; esac");
  const Printed printed = qualify({"--image", "one.sif", "--with", "box {image}"});
  EXPECT_EQ(printed.exit_code, 5) << printed.err;
  EXPECT_NE(printed.err.find("qualify --resume " + folder.string()), std::string::npos);
  EXPECT_EQ(calls("run").size(), 1u) << "no stage starts after an interruption";
  EXPECT_NE(named(sheet().at("stages"), "smoke").at("fault").dump().find("not started"),
            std::string::npos);
  EXPECT_EQ(cli({"qualify", "--resume", folder.string()}).exit_code, 1);
  EXPECT_EQ(named(sheet().at("stages"), "smoke").at("shown"), true);
}

TEST_F(QualifyTest, AnotherStackIsNotContinued) {
  ASSERT_EQ(qualify({}, "faults").exit_code, 1);
  json doctor = record::read_json(folder / "doctor.json");
  doctor.at("libraries").at(0).at("sha256") = std::string(64, '0');
  std::ofstream(folder / "doctor.json") << doctor;
  const Printed printed = cli({"qualify", "--resume", folder.string()});
  EXPECT_EQ(printed.exit_code, 2);
  EXPECT_NE(printed.err.find("the stack is not the one"), std::string::npos) << printed.err;
}

TEST_F(QualifyTest, TwoImagesTakeTurnsAndAreCompared) {
  // The ranks of A compute wrong numbers, and those of B crash.
  container(
      "export GRAPHPROOF_FAKE=\"wrong replay 0\"\n[ \"$image\" = a.sif ] || export "
      "GRAPHPROOF_FAKE=\"exit7 replay 0\"");
  const Printed printed =
      qualify({"--image", "a.sif", "--image", "b.sif", "--with", "box {image}", "--parts", "2"});
  ASSERT_NE(printed.exit_code, 2) << printed.err;
  std::string order;
  for (const std::string& call : calls("run"))
    order += call.substr(0, 1) + call.substr(call.find("--shard ") + 8, 1) + " ";
  EXPECT_EQ(order, "a1 b1 b2 a2 a1 b1 b2 a2 ");
  const json value = sheet();
  for (const std::string& sentence : record::violations("qualification", value))
    ADD_FAILURE() << sentence;
  ASSERT_EQ(value.at("stages").size(), 4u);
  ASSERT_EQ(value.at("stacks").size(), 2u);
  EXPECT_EQ(value.at("stacks").at(1).at("source"), "b.sif");
  for (const json& one : value.at("comparisons")) {
    EXPECT_EQ(one.at("fault"), "") << one;
    EXPECT_GT(one.at("comparison").at("compared"), 0) << one;
    EXPECT_GE(one.at("comparison").at("changed").at("cases").size(), 1u) << one.dump(1);
  }
  EXPECT_EQ(printed.exit_code, 1) << "B fails";
  EXPECT_NE(value.at("verdict").get<std::string>().find("in image B"), std::string::npos)
      << value.at("verdict");
}

TEST_F(QualifyTest, TheCommandOfEachContainerProgramRunsTheStages) {
  // Each stand-in drops the options of its program and runs the rest. Like its program it refuses
  // to bind a folder that is not there.
  const auto stand_in = [&](const char* verb, const char* bind) {
    return std::string("[ \"$1\" = ") + verb + " ] || exit 99\necho \"$*\" >>" +
           (top / "calls").string() + "\nwhile [ \"$1\" != one.img ]; do\n  if [ \"$1\" = " + bind +
           " ]; then [ -d \"${2%%:*}\" ] || { echo \"no folder $2\" >&2; exit 125; }; fi\n  "
           "shift\n" +
           "done; shift; exec \"$@\"\n";
  };
  script("apptainer", stand_in("exec", "--bind"));
  script("docker", stand_in("run", "--volume"));
  fs::copy_file(top / "bin/docker", top / "bin/podman");
  for (const char* with : {"apptainer", "podman", "docker"}) {
    fs::remove(top / "calls");
    fs::remove_all(folder);
    EXPECT_EQ(qualify({"--image", "one.img", "--with", with}, "faults").exit_code, 1) << with;
    ASSERT_EQ(calls("run").size(), 1u) << with;
    EXPECT_NE(calls("run")[0].find(folder.string()), std::string::npos);
    EXPECT_EQ(sheet().at("stacks").at(0).at("source"), "one.img");
  }
}

TEST_F(QualifyTest, ASignatureIsMadeWhereMinisignIsInstalled) {
  const std::string key = file("key", "secret");
  script("minisign", "[ \"$1 $2 $4\" = \"-S -s -m\" ] && cp \"$5\" \"$5.minisig\"\n");
  ASSERT_EQ(qualify({"--minisign", key}, "smoke").exit_code, 4);
  EXPECT_EQ(record::read_text(folder / "SHA256SUMS.minisig"),
            record::read_text(folder / "SHA256SUMS"));
  script("minisign", "echo no such key >&2; exit 1\n");
  const Printed failed = cli({"qualify", "--resume", folder.string(), "--minisign", key});
  EXPECT_EQ(failed.exit_code, 4);
  EXPECT_NE(failed.err.find("no such key"), std::string::npos) << failed.err;
}

TEST_F(QualifyTest, OfAnImageThatDoesNotStartNothingIsLeft) {
  script("box", "[ -d \"$1\" ] && echo the folder is there >&2; exit 255\n");
  const fs::path inner = top / "new/inner";
  const Printed printed =
      cli({"qualify", "--image", "a.sif", "--with", "box {folder}", "--run-dir", inner.string()});
  EXPECT_EQ(printed.exit_code, 2);
  EXPECT_NE(printed.err.find("exit code 255: the folder is there"), std::string::npos)
      << printed.err;
  EXPECT_FALSE(fs::exists(top / "new"));
  fs::create_directories(inner);
  EXPECT_EQ(
      cli({"qualify", "--image", "a.sif", "--with", "box {folder}", "--run-dir", inner.string()})
          .exit_code,
      2);
  EXPECT_TRUE(fs::exists(inner)) << "a folder that was there before stays";
}

TEST_F(QualifyTest, WhatCannotBeDoneStartsNothing) {
  script("box", "echo cannot read the image >&2; exit 255\n");
  std::ofstream(top / "occupied") << "";
  struct Row {
    std::vector<std::string> arguments;
    const char* says;
  };
  const Row rows[] = {
      {{"--image", "a.sif", "--with", "box {image}"}, "exit code 255: cannot read the image"},
      {{"--image", "a.sif", "--with", "nonsense {image}"}, "no program that starts images"},
      {{"--image", "a", "--image", "b", "--image", "c"}, "one or two --image"},
      {{"--stages", "fault"}, "did you mean `faults`?"},
      {{"--stages", "faults,faults"}, "a stage is named twice"},
      {{"--stages", ""}, "no stage"},
      {{"--parts", "0"}, "--parts is out of range"},
      {{"--resume", "nowhere"}, "no qualification is in this folder"},
      {{"--resume", "a", "--run-dir", "b"}, "--resume together with --run-dir"},
      {{"--run-dir", top.string()}, "the folder is not empty"},
      {{"--minisign", "absent"}, "the sheet can't be signed"},
      {{"--device", "gpu"}, "gpu"},
  };
  for (const Row& row : rows) {
    std::vector<std::string> arguments = {"qualify"};
    arguments.insert(arguments.end(), row.arguments.begin(), row.arguments.end());
    const Printed printed = cli(arguments);
    EXPECT_EQ(printed.exit_code, 2) << row.says;
    EXPECT_NE(printed.err.find(row.says), std::string::npos) << row.says << "\n" << printed.err;
    EXPECT_FALSE(fs::exists(top / "qualifications")) << row.says;
  }
}

}  // namespace
}  // namespace graphproof::cli
