// What the launcher asks of NVIDIA's library, of a stand-in for it (fake_nvml.cpp).
#include "launcher/nvml.h"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "reports/record/scratch_folder.h"

namespace graphproof::launcher {
namespace {

struct NvmlTest : testing::Test {
  NvmlTest() {
    // Its name within the process is the real one's: what is loaded is not looked for again.
    const std::string library = std::filesystem::read_symlink("/proc/self/exe").parent_path() / "libfake_nvml.so";
    EXPECT_NE(dlopen(library.c_str(), RTLD_NOW | RTLD_GLOBAL), nullptr) << dlerror();
    std::ofstream(folder.path() / "used") << "500\n";
    setenv("GRAPHPROOF_FAKE_NVML", (folder.path() / "used").c_str(), 1);
  }
  ~NvmlTest() override {
    for (const char* variable : {"GRAPHPROOF_FAKE_NVML", "GRAPHPROOF_FAKE_NVML_PID", "GRAPHPROOF_FAKE_NVML_MODE"}) unsetenv(variable);
  }
  const record::ScratchFolder folder;
};

TEST_F(NvmlTest, AGpuIsFoundByItsIndexAndAMigDeviceByItsName) {
  const auto memory = GpuMemory::open();
  ASSERT_NE(memory, nullptr);
  for (const char* gpu : {"0", "3", "MIG-1"}) EXPECT_EQ(memory->used_bytes(gpu), std::int64_t{500} << 20) << gpu;
  for (const char* gpu : {"7", "MIG-2", ""}) EXPECT_EQ(memory->used_bytes(gpu), std::nullopt) << gpu;
}

TEST_F(NvmlTest, WhoseMemoryIsWhoseIsKnownOnlyOfProcessesThatTheDriverLists) {
  const auto memory = GpuMemory::open();
  EXPECT_EQ(memory->used_bytes("0", {getpid()}), std::nullopt) << "in a container it lists none";
  setenv("GRAPHPROOF_FAKE_NVML_PID", "4711", 1);
  EXPECT_EQ(memory->used_bytes("0", {4711, 4712}), std::int64_t{100} << 20);
  EXPECT_EQ(memory->used_bytes("0", {4712}), std::nullopt);
}

TEST_F(NvmlTest, ExclusiveProcessModeIsSeen) {
  const auto memory = GpuMemory::open();
  EXPECT_FALSE(memory->exclusive_process("0"));
  setenv("GRAPHPROOF_FAKE_NVML_MODE", "3", 1);
  EXPECT_TRUE(memory->exclusive_process("0"));
}

TEST_F(NvmlTest, GpusThatNvlinkJoinsAreOneIsland) {
  const auto memory = GpuMemory::open();
  EXPECT_EQ(memory->islands({"0", "1", "2", "3"}), (std::vector<int>{0, 0, 1, 1}));
  EXPECT_EQ(memory->islands({"2", "0", "3"}), (std::vector<int>{0, 1, 0}));
  EXPECT_EQ(memory->islands({"0"}), std::vector<int>{0});
  EXPECT_EQ(memory->islands({"0", "9"}), (std::vector<int>{0, 0})) << "who can't be asked must not take a machine apart";
}

}  // namespace
}  // namespace graphproof::launcher
