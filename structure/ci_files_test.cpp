// The files of docs/ci follow their schemas and linters, and a defect in each of them is found.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "reports/record/testing/scratch_folder.h"

namespace graphproof {
namespace {

namespace fs = std::filesystem;

fs::path source() { return fs::absolute(std::getenv("GRAPHPROOF_SOURCE")); }

struct Ended {
  int code = 0;
  std::string said;
};

Ended validate(const std::string& folder) {
  const std::string command =
      "'" + (source() / "structure/ci_files").string() + "' " + folder + " 2>&1";
  std::FILE* const pipe = popen(command.c_str(), "r");
  Ended ended;
  std::array<char, 4096> piece{};
  while (std::fgets(piece.data(), piece.size(), pipe) != nullptr) ended.said += piece.data();
  const int status = pclose(pipe);
  ended.code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return ended;
}

TEST(CiFiles, AreValid) {
  const Ended ended = validate("");
  EXPECT_EQ(ended.code, 0) << ended.said;
}

TEST(CiFiles, ADefectInEachOfThemIsFound) {
  const struct {
    const char *file, *from, *to, *said;
  } rows[] = {
      {"github.yml", "runs-on: ubuntu-24.04", "runs_on: ubuntu-24.04", "github.yml"},
      {"gitlab.yml", "when: always", "when: sometimes", "gitlab.yml"},
      {"Dockerfile", "WORKDIR /opt/graphproof", "WORKDIR opt/graphproof", "Dockerfile"},
      {"Dockerfile", "COPY . ", "COPI . ", "Dockerfile"},
      {"slurm-nightly.sh", "[ \"$code\" -le 1 ] ||", "if [ \"$code\" -le 1 ]", "slurm-nightly.sh"},
      {"slurm-nightly.sh", "#SBATCH --gpus-per-node=8", "#", "no GPU"},
      {"Jenkinsfile", "|| [ $? -eq 1 ]'", "|| ('", "Jenkinsfile"},
      {"Jenkinsfile", "pipeline {", "pipeline", "block"},
      {"graphproof.def", "rm -rf build", "rm -rf (", "graphproof.def"},
      {"graphproof.def", "%test", "%tests", "%test"},
      {"gitlab.yml", "--run-dir nightly", "--run-folder nightly", "--run-folder"},
  };
  for (const auto& row : rows) {
    const record::ScratchFolder folder;
    const fs::path name = folder.path();
    fs::copy(source() / "docs/ci", name, fs::copy_options::recursive);
    std::ostringstream text;
    text << std::ifstream(name / row.file).rdbuf();
    std::string changed = text.str();
    const std::size_t at = changed.find(row.from);
    ASSERT_NE(at, std::string::npos) << row.from;
    std::ofstream(name / row.file) << changed.replace(at, std::string(row.from).size(), row.to);
    const Ended ended = validate(name.string());
    EXPECT_EQ(ended.code, 1) << row.file << ": " << row.to << "\n" << ended.said;
    EXPECT_NE(ended.said.find(row.said), std::string::npos) << row.to << "\n" << ended.said;
  }
}

}  // namespace
}  // namespace graphproof
