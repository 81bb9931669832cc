// The judge program over folders of watched runs, as the launcher and the probes leave them.
#include "suites/judge/watched_folder.h"

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdlib>
#include <cstring>
#include <fstream>

#include "reports/record/probe_file/layout.h"
#include "reports/record/testing/scratch_folder.h"
#include "reports/record/text/file.h"
#include "reports/record/watched/watched_checks.h"
#include "suites/checks/watched/testing/clean_job.h"

namespace graphproof::judge {
namespace {

namespace fs = std::filesystem;
namespace probe = record::probe_file;

/// The file of a process that captured one graph, launched it ten times and ended.
std::string probe_text(std::int64_t pid, const char* host = "node-1") {
  probe::Header header;
  std::memcpy(header.magic, probe::kMagic.data(), sizeof header.magic);
  header.header_bytes = sizeof header;
  header.pid = pid;
  std::strcpy(header.host, host);
  header.state = probe::State::ended;
  header.process = {.captures = 1, .executables = 1, .executables_live_most = 1};
  std::string records;
  const auto add = [&](probe::RecordType type, std::string_view payload) {
    const probe::RecordHeader record{.bytes = static_cast<std::uint32_t>(payload.size()),
                                     .type = type};
    records.append(reinterpret_cast<const char*>(&record), sizeof record);
    records += payload;
    records.resize(probe::padded(records.size()));
  };
  const auto line = [&](const nlohmann::json& fields) {
    add(probe::RecordType::line, fields.dump());
  };
  line({{"kind", "process"},
        {"command", {"python3", "train.py"}},
        {"profile", "quick"},
        {"driver_version", 13000},
        {"cupti", {{"subscribed", true}, {"version", 130001}}},
        {"driver_log", true},
        {"settings", {{"RANK", std::to_string(pid - 4711)}, {"WORLD_SIZE", "2"}}}});
  line({{"kind", "python"}, {"version", "3.12.3"}, {"torch", "2.11.0"}});
  line({{"kind", "graph"},
        {"signature", "5566778899aabbcc"},
        {"total", 1},
        {"nodes", {{"kernel", 1}}},
        {"kernel_nodes", 1},
        {"nccl_kernels", 0},
        {"copied_bytes", 0},
        {"kernels", nlohmann::json::array()},
        {"kernels_left_out", 0},
        {"without_layout", 0},
        {"without_parameters", 0},
        {"maybe_tensor_map", 0},
        {"conditional_bodies_unknown", 0},
        {"failure", ""}});
  line({{"kind", "capture"},
        {"capture", 1},
        {"t_ns", 1},
        {"stream", "0x1"},
        {"mode", "global"},
        {"tid", pid},
        {"end_tid", pid},
        {"result", 0},
        {"result_name", "CUDA_SUCCESS"},
        {"graph", "5566778899aabbcc"},
        {"nodes", 1}});
  line({{"kind", "executable"},
        {"executable", 1},
        {"capture", 1},
        {"t_ns", 2},
        {"graph", "5566778899aabbcc"},
        {"tid", pid}});
  const probe::ExecutableCounters counters{.executable = 1, .launches = 10};
  add(probe::RecordType::executable,
      std::string_view(reinterpret_cast<const char*>(&counters), sizeof counters));
  header.committed = records.size();
  return std::string(reinterpret_cast<const char*>(&header), sizeof header) + records;
}

void put(const fs::path& file, const std::string& text) {
  fs::create_directories(file.parent_path());
  std::ofstream(file, std::ios::binary) << text;
}

/// A run of two ranks.
class RunFolder {
 public:
  RunFolder() {
    record::write_json(path() / "watched.json", record::to_json(checks::watched::clean_job().run));
    put(probe_of(4711), probe_text(4711));
    put(probe_of(4712), probe_text(4712, "node-1.cluster"));
  }
  const fs::path& path() const { return folder_.path(); }
  fs::path probe_of(std::int64_t pid) const {
    return path() / "probe" / ("node-1." + std::to_string(pid) + ".1.probe");
  }
  record::WatchedChecks checks() const {
    return record::watched_checks_from(record::read_json(path() / "checks.json"), "checks.json");
  }
  std::string word_of(const std::string& check) const {
    for (const record::CheckResult& result : checks().checks)
      if (result.check == check) return std::string(record::name(result.result));
    return "missing";
  }

 private:
  record::ScratchFolder folder_;
};

struct JudgeEnded {
  int code;
  std::string output;
};

JudgeEnded run_watched_judge(const std::string& arguments) {
  const char* bin = std::getenv("GRAPHPROOF_BIN");
  const std::string command = (bin ? fs::path(bin) : fs::path("bin")) / "graphproof-judge";
  FILE* pipe = popen(("'" + command + "' --watched " + arguments + " 2>&1").c_str(), "r");
  JudgeEnded ended{-1, ""};
  for (int c = std::fgetc(pipe); c != EOF; c = std::fgetc(pipe))
    ended.output += static_cast<char>(c);
  const int status = pclose(pipe);
  if (WIFEXITED(status)) ended.code = WEXITSTATUS(status);
  return ended;
}

TEST(WatchedFolder, IsReadWithItsLogs) {
  const RunFolder run;
  put(run.path() / "nccl/node-1.4712.log", "x NCCL INFO IPC register buffer 0x7f\n");
  put(run.path() / "nccl/node-1.471.log", "");
  const checks::watched::WatchedJob job = load_watched_job(run.path());
  ASSERT_EQ(job.processes.size(), 2u);
  EXPECT_EQ(job.processes[1].name, "node-1.4712.1");
  EXPECT_EQ(job.processes[1].title(), "rank 1 (node-1.cluster.4712)");
  EXPECT_TRUE(job.processes[0].of<record::NcclRegistrationLine>().empty());
  ASSERT_EQ(job.processes[1].of<record::NcclRegistrationLine>().size(), 1u);
  EXPECT_EQ(job.processes[1].of<record::NcclRegistrationLine>()[0].ipc, 1);
  EXPECT_EQ(job.notes,
            std::vector<std::string>{"nccl/node-1.471.log belongs to no process that was watched"});
  EXPECT_TRUE(job.unread.empty());
  EXPECT_FALSE(job.bad_stacks.rows().empty());
}

TEST(WatchedJudge, WritesChecksAndEvidence) {
  const RunFolder run;
  const JudgeEnded ended = run_watched_judge(run.path().string());
  EXPECT_EQ(ended.code, 0) << ended.output;
  EXPECT_EQ(run.word_of("D19.capture_status"), "pass") << ended.output;
  EXPECT_EQ(run.word_of("D62.exec_update"), "unexercised");
  EXPECT_EQ(run.word_of("D01.lockstep"), "missing");
  EXPECT_EQ(run.checks().graphs.size(), 2u);
  const std::vector<std::string> lines =
      record::read_lines(run.path() / "evidence/node-1.4711.1.jsonl").lines;
  ASSERT_GE(lines.size(), 5u);
  EXPECT_NE(lines[0].find("watched_process"), std::string::npos) << lines[0];
  EXPECT_NE(ended.output.find("[       OK ] D19.capture_status"), std::string::npos)
      << ended.output;
}

TEST(WatchedJudge, ADamagedFileIsNotedAndNothingPasses) {
  const RunFolder run;
  put(run.probe_of(4712), "no probe wrote this");
  const JudgeEnded ended = run_watched_judge(run.path().string());
  EXPECT_EQ(ended.code, 0) << ended.output;
  for (const record::CheckResult& result : run.checks().checks)
    EXPECT_EQ(result.result, record::Result::unexercised) << result.check;
  ASSERT_FALSE(run.checks().notes.empty());
  EXPECT_NE(run.checks().notes[0].find("node-1.4712.1.probe"), std::string::npos)
      << run.checks().notes[0];
}

TEST(WatchedJudge, AFileThatIsCutOffIsJudgedAsFarAsItGoes) {
  const std::string text = probe_text(4712);
  for (std::size_t length = 0; length < text.size(); length += 97) {
    const RunFolder run;
    put(run.probe_of(4712), text.substr(0, length));
    EXPECT_NO_THROW(load_watched_job(run.path())) << length;
  }
}

TEST(WatchedJudge, ARunWithoutAnyProbeIsUnexercised) {
  const RunFolder run;
  fs::remove_all(run.path() / "probe");
  EXPECT_EQ(run_watched_judge(run.path().string()).code, 0);
  EXPECT_EQ(run.word_of("D19.capture_status"), "unexercised");
  EXPECT_EQ(run.checks().notes.size(), 1u);
}

TEST(WatchedJudge, CannotJudgeWithoutAWatchedRun) {
  const RunFolder run;
  for (const char* text : {"", "{", "[]", R"({"schema": "graphproof-run/1"})"}) {
    put(run.path() / "watched.json", text);
    const JudgeEnded ended = run_watched_judge(run.path().string());
    EXPECT_EQ(ended.code, 6) << ended.output;
    EXPECT_NE(ended.output.find("watched.json"), std::string::npos) << ended.output;
    EXPECT_FALSE(fs::exists(run.path() / "checks.json"));
  }
  const JudgeEnded missing = run_watched_judge("/nonexistent/run");
  EXPECT_EQ(missing.code, 6);
  EXPECT_NE(missing.output.find("/nonexistent/run"), std::string::npos) << missing.output;
}

TEST(WatchedJudge, NamesWhatIsWrongWithItsCommandLine) {
  EXPECT_NE(run_watched_judge("").output.find("no folder"), std::string::npos);
  const JudgeEnded dropped = run_watched_judge("a --drop D19.capture_status");
  EXPECT_EQ(dropped.code, 2);
  EXPECT_NE(dropped.output.find("--drop with --watched"), std::string::npos) << dropped.output;
}

}  // namespace
}  // namespace graphproof::judge
