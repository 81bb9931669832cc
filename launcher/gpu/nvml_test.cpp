// What the launcher asks of NVIDIA's library, tested with a stand-in for it (fake_nvml.cpp).
#include "launcher/gpu/nvml.h"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "launcher/gpu/gpu_health.h"
#include "reports/record/testing/scratch_folder.h"

namespace graphproof::launcher {
namespace {

struct NvmlTest : testing::Test {
  NvmlTest() {
    // The stand-in has the name of the real library, and what is loaded already is not looked for
    // again.
    const std::string library =
        std::filesystem::read_symlink("/proc/self/exe").parent_path() / "libfake_nvml.so";
    EXPECT_NE(dlopen(library.c_str(), RTLD_NOW | RTLD_GLOBAL), nullptr) << dlerror();
    std::ofstream(folder.path() / "used") << "500\n";
    setenv("GRAPHPROOF_FAKE_NVML", (folder.path() / "used").c_str(), 1);
    setenv("GRAPHPROOF_FAKE_NVML_TROUBLE", (folder.path() / "trouble").c_str(), 1);
    setenv("GRAPHPROOF_FAKE_NVML_PROCESSES", (folder.path() / "processes").c_str(), 1);
  }
  ~NvmlTest() override {
    for (const char* variable : {"GRAPHPROOF_FAKE_NVML", "GRAPHPROOF_FAKE_NVML_PROCESSES",
                                 "GRAPHPROOF_FAKE_NVML_MODE", "GRAPHPROOF_FAKE_NVML_TROUBLE"})
      unsetenv(variable);
  }
  /// Sets what goes wrong from now on: "KIND NUMBER GPU".
  void trouble(const std::string& line) const {
    std::ofstream(folder.path() / "trouble", std::ios::app) << line << "\n";
  }
  const record::ScratchFolder folder;
};

TEST_F(NvmlTest, AGpuIsFoundByItsIndexAndAMigDeviceByItsName) {
  const auto memory = Nvml::open();
  ASSERT_NE(memory, nullptr);
  for (const char* gpu : {"0", "3", "MIG-1"})
    EXPECT_EQ(memory->use(gpu).value().bytes, std::int64_t{500} << 20) << gpu;
  for (const char* gpu : {"7", "MIG-2", ""}) EXPECT_FALSE(memory->use(gpu)) << gpu;
}

TEST_F(NvmlTest, WhoseMemoryIsWhoseIsKnownOnlyOfProcessesThatTheDriverLists) {
  const auto memory = Nvml::open();
  EXPECT_EQ(memory->used_bytes("0", {getpid()}), std::nullopt) << "in a container it lists none";
  EXPECT_EQ(memory->users("0"), "no process");
  std::ofstream(folder.path() / "processes") << getpid() << " 100 1\n" << getppid() << " 20 0\n";
  EXPECT_EQ(memory->used_bytes("0", {getpid(), getppid()}), std::int64_t{100} << 20);
  EXPECT_EQ(memory->used_bytes("0", {getppid()}), std::nullopt);
  EXPECT_EQ(memory->users("0"), std::to_string(getpid()) + " with 100 MiB");
  EXPECT_EQ(memory->users("9"), "unknown");
}

TEST_F(NvmlTest, AServerOfTheMultiProcessServiceThatStartedSinceIsNoLeftover) {
  const auto nvml = Nvml::open();
  const GpuUse before = nvml->use("0").value();
  std::ofstream processes(folder.path() / "processes");
  processes << getppid() << " 66 2\n" << std::flush;
  const GpuUse served = nvml->use("0").value();
  EXPECT_EQ(served.mps_servers, (std::map<int, std::int64_t>{{getppid(), std::int64_t{66} << 20}}));
  EXPECT_EQ(served.more_than(before), 0);
  processes << getpid() << " 100 1\n" << std::flush;
  EXPECT_EQ(nvml->use("0").value().more_than(before), std::int64_t{100} << 20)
      << "any other program's is";
  GpuUse grown = served;
  grown.bytes += 7;
  grown.mps_servers[getppid()] += 7;
  EXPECT_EQ(grown.more_than(served), 7) << "so is what a server that was there takes in addition";
}

TEST_F(NvmlTest, ExclusiveProcessModeIsSeen) {
  const auto memory = Nvml::open();
  EXPECT_FALSE(memory->exclusive_process("0"));
  setenv("GRAPHPROOF_FAKE_NVML_MODE", "3", 1);
  EXPECT_TRUE(memory->exclusive_process("0"));
}

TEST_F(NvmlTest, GpusThatNvlinkJoinsAreOneIsland) {
  const auto memory = Nvml::open();
  EXPECT_EQ(memory->islands({"0", "1", "2", "3"}), (std::vector<int>{0, 0, 1, 1}));
  EXPECT_EQ(memory->islands({"2", "0", "3"}), (std::vector<int>{0, 1, 0}));
  EXPECT_EQ(memory->islands({"0"}), std::vector<int>{0});
  EXPECT_EQ(memory->islands({"0", "9"}), (std::vector<int>{0, 0}))
      << "a driver that does not know must not split the machine";
}

TEST_F(NvmlTest, ThePlaceOfAGpuOnTheBusIsKnown) {
  const auto nvml = Nvml::open();
  EXPECT_EQ(nvml->pci_address("1"), (Nvml::PciAddress{0, 0x11, 0}));
  EXPECT_EQ(nvml->pci_address("MIG-1"), (Nvml::PciAddress{0, 0x13, 0}));
  EXPECT_EQ(nvml->pci_address("9"), std::nullopt);
}

TEST_F(NvmlTest, AnXidIsReportedOnceAndAMigDeviceGetsThoseOfTheWholeGpu) {
  const auto nvml = Nvml::open();
  trouble("xid 13 0");
  nvml->listen({"0", "MIG-1"});
  EXPECT_TRUE(nvml->xids().empty()) << "reported before the library was listened to";
  trouble("xid 79 0");
  trouble("xid 31 3");
  trouble("xid 48 1");
  const auto seen = nvml->xids();
  ASSERT_EQ(seen.size(), 2u) << "GPU 1 is not listened to";
  EXPECT_EQ(seen[0].gpu, "0");
  EXPECT_EQ(seen[0].number, 79);
  EXPECT_EQ(seen[1].gpu, "MIG-1");
  EXPECT_TRUE(nvml->xids().empty());
}

TEST_F(NvmlTest, MemoryErrorsAndHeatAreOfOneGpu) {
  const auto nvml = Nvml::open();
  EXPECT_EQ(nvml->uncorrected_errors("1"), 0);
  trouble("ecc 2 1");
  trouble("heat 1 2");
  EXPECT_EQ(nvml->uncorrected_errors("1"), 2);
  EXPECT_EQ(nvml->uncorrected_errors("0"), 0);
  EXPECT_EQ(nvml->uncorrected_errors("9"), std::nullopt);
  EXPECT_TRUE(nvml->slowed_by_heat("2"));
  EXPECT_FALSE(nvml->slowed_by_heat("1"));
}

TEST_F(NvmlTest, WhoseFaultAnXidIsIsATable) {
  for (const int hardware : {48, 62, 63, 64, 74, 79, 92, 94, 95, 119, 120, 140})
    EXPECT_TRUE(trouble_of_xid("0", hardware).hardware) << hardware;
  for (const int program : {13, 31, 43, 45})
    EXPECT_FALSE(trouble_of_xid("0", program).hardware) << program;
  EXPECT_FALSE(trouble_of_xid("0", 9999).hardware) << "an unknown Xid excuses no case";
  EXPECT_EQ(trouble_of_xid("0", 9999).what, "Xid 9999");
  EXPECT_EQ(trouble_of_xid("0", 79).what, "Xid 79: it has fallen off the bus");
}

TEST_F(NvmlTest, EachBatchGetsTheTroubleOfItsGpusSinceItLookedLast) {
  const auto nvml = Nvml::open();
  trouble("ecc 5 0");
  GpuHealth health(*nvml, {"0", "1"});
  health.look(0, true);
  EXPECT_EQ(health.count(), 0u) << "earlier errors count for no batch";
  trouble("ecc 2 0");
  health.look(500, false);
  EXPECT_EQ(health.count(), 0u) << "asked at most once a second";
  health.look(GpuHealth::kLook_ms, false);
  const auto seen = health.since(0, {"0", "1"});
  ASSERT_EQ(seen.size(), 1u);
  EXPECT_EQ(seen[0].what, "2 memory errors that could not be corrected");
  EXPECT_TRUE(health.since(0, {"1"}).empty());
  EXPECT_TRUE(health.since(health.count(), {"0"}).empty());
  trouble("heat 1 1");
  const std::size_t before = health.count();
  for (int look = 2; look < 4; ++look) health.look(look * GpuHealth::kLook_ms, false);
  EXPECT_EQ(health.since(before, {"1"}).size(), 2u) << "heat lasts";
  EXPECT_EQ(health.since(before, {"1"})[0].what, "slowed down by heat");
}

}  // namespace
}  // namespace graphproof::launcher
