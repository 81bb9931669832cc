#include "suites/rank/fingerprint.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>

namespace graphproof::suites {
namespace {

TEST(Fingerprint, HoldsEveryFieldOfTheRunFileWithoutAGpu) {
  const auto stack = fingerprint();
  for (const char* field :
       {"torch_version", "cuda_version", "nccl_version", "driver", "cudnn_version", "mpi", "gpus",
        "sm", "kernel", "host", "cpus", "compute_sanitizer", "environment"})
    EXPECT_TRUE(stack.contains(field)) << field;
  EXPECT_TRUE(stack.at("gpus").is_array());
  EXPECT_EQ(stack.at("mpi").get<std::string>().rfind("Open MPI ", 0), 0u) << stack.at("mpi");
}

TEST(Fingerprint, OfTheSimulatedDeviceNamesNoCuda) {
  const auto stack = fingerprint();
  EXPECT_EQ(stack.at("cuda_version"), "none");
  EXPECT_EQ(stack.at("nccl_version"), "none");
  EXPECT_EQ(stack.at("sm"), 0);
}

TEST(Fingerprint, NamesTheComputeSanitizerInPath) {
  const std::filesystem::path folder = testing::TempDir() + "/compute-sanitizer-in-path";
  std::filesystem::create_directories(folder);
  const std::filesystem::path program = folder / "compute-sanitizer";
  const std::string path = std::getenv("PATH");
  setenv("PATH", (folder.string() + ":" + path).c_str(), 1);
  for (const auto& [answer, version] : std::map<std::string, std::string>{
           {"printf 'NVIDIA (R) Compute Sanitizer\\nVersion 2025.3.1.0 (build 36400806)\\n'",
            "2025.3.1.0"},
           {"exit 1", "none"}}) {
    std::ofstream(program) << "#!/bin/sh\n" << answer << "\n";
    std::filesystem::permissions(program, std::filesystem::perms::owner_all);
    EXPECT_EQ(compute_sanitizer_version(), version) << answer;
  }
  setenv("PATH", path.c_str(), 1);
  std::filesystem::remove_all(folder);
}

TEST(Fingerprint, KeepsTheVariablesThatChangeAStackAndNoOthers) {
  setenv("NCCL_ALGO", "Ring", 1);
  setenv("UNRELATED_VARIABLE", "1", 1);
  const auto variables = fingerprint().at("environment");
  EXPECT_EQ(variables.at("NCCL_ALGO"), "Ring");
  EXPECT_FALSE(variables.contains("UNRELATED_VARIABLE"));
  EXPECT_TRUE(is_stack_variable("OMPI_MCA_btl"));
  EXPECT_FALSE(is_stack_variable("OMPI_COMM_WORLD_RANK")) << "differs between ranks of one stack";
}

TEST(Fingerprint, RedactsSecrets) {
  EXPECT_EQ(redacted("CUDA_API_KEY", "abc"), "redacted");
  EXPECT_EQ(redacted("NCCL_token", "abc"), "redacted");
  EXPECT_EQ(redacted("PYTORCH_PROXY", "http://user:word@host:1"), "redacted");
  EXPECT_EQ(redacted("NCCL_ALGO", "Ring"), "Ring");
}

}  // namespace
}  // namespace graphproof::suites
