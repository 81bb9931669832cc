#include "launcher/gpu/cpus.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <stdlib.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <numeric>
#include <set>

#include "reports/record/testing/scratch_folder.h"

namespace graphproof::launcher {
namespace {

using Near = std::vector<std::optional<Cpus>>;

// Two sockets of four cores with two threads each, numbered as Linux does.
const std::vector<Cpus> kCores = {{0, 8},  {1, 9},  {2, 10}, {3, 11},
                                  {4, 12}, {5, 13}, {6, 14}, {7, 15}};
const Cpus kFirstSocket = {0, 1, 2, 3, 8, 9, 10, 11}, kSecondSocket = {4, 5, 6, 7, 12, 13, 14, 15};

TEST(CpusTest, SlotsShareTheCoresNearTheirGpusAndNoCore) {
  EXPECT_EQ(divide(kCores, Near{kFirstSocket, kSecondSocket, kFirstSocket}),
            (std::vector<Cpus>{{0, 1, 8, 9}, kSecondSocket, {2, 3, 10, 11}}));
}

TEST(CpusTest, WithoutKnowledgeOfWhatIsNearAllCoresAreShared) {
  EXPECT_EQ(divide(kCores, Near{kFirstSocket, std::nullopt}),
            (std::vector<Cpus>{kFirstSocket, kSecondSocket}));
}

TEST(CpusTest, WithoutACoreForEachSlotNoRankIsPinned) {
  EXPECT_EQ(divide({{0}, {1}}, Near(3)), std::vector<Cpus>(3));
  EXPECT_EQ(divide(kCores, Near{Cpus{64}, kFirstSocket}), std::vector<Cpus>(2))
      << "this process may not use all that is near";
}

TEST(CpusTest, ThisHostsCoresAreThoseThatThisProcessMayUse) {
  std::set<int> cpus;
  for (const Cpus& core : HostTopology().cores())
    for (const int cpu : core) EXPECT_TRUE(cpus.insert(cpu).second) << cpu;
  EXPECT_FALSE(cpus.empty());
}

/// Two sockets of two cores with two threads, numbered as hwloc prints them; each has a GPU, at
/// 10:00.0 and 20:00.0.
std::string two_sockets() {
  std::string file = R"(<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE topology SYSTEM "hwloc2.dtd">
<topology version="2.0">
)";
  int index = 1;
  const auto object = [&](const std::string& type, const std::string& rest, unsigned cpus,
                          unsigned nodes) {
    char sets[256];
    std::snprintf(sets, sizeof sets,
                  "cpuset=\"0x%08x\" complete_cpuset=\"0x%08x\" nodeset=\"0x%08x\" "
                  "complete_nodeset=\"0x%08x\"",
                  cpus, cpus, nodes, nodes);
    file += "<object type=\"" + type + "\" gp_index=\"" + std::to_string(index++) + "\" " +
            (cpus ? sets : "") + " " + rest + ">\n";
  };
  const auto numbered = [](int number) { return "os_index=\"" + std::to_string(number) + "\""; };
  object("Machine", R"(os_index="0" allowed_cpuset="0x000000ff" allowed_nodeset="0x00000003")",
         0xff, 3);
  for (int socket = 0; socket < 2; ++socket) {
    const unsigned nodes = 1u << socket;
    object("Package", numbered(socket), 0xfu << 4 * socket, nodes);
    object("NUMANode", numbered(socket), 0xfu << 4 * socket, nodes);
    file += "</object>\n";
    for (int core = 2 * socket; core < 2 * socket + 2; ++core) {
      object("Core", numbered(core), 3u << 2 * core, nodes);
      for (int cpu = 2 * core; cpu < 2 * core + 2; ++cpu) {
        object("PU", numbered(cpu), 1u << cpu, nodes);
        file += "</object>\n";
      }
      file += "</object>\n";
    }
    const std::string bus = socket == 0 ? "10" : "20";
    object("Bridge", R"(bridge_type="0-1" depth="0" bridge_pci="0000:[)" + bus + "-" + bus + "]\"",
           0, 0);
    object("PCIDev",
           "pci_busid=\"0000:" + bus +
               R"(:00.0" pci_type="0302 [10de:2335] [10de:0000] a1" pci_link_speed="0")",
           0, 0);
    file += "</object></object></object>\n";
  }
  return file + "</object></topology>\n";
}

TEST(CpusTest, HwlocKnowsTheCoresAndWhatIsNearAGpu) {
  const record::ScratchFolder folder;
  std::ofstream(folder.path() / "host.xml") << two_sockets();
  setenv("HWLOC_XMLFILE", (folder.path() / "host.xml").c_str(), 1);
  const HostTopology host;
  unsetenv("HWLOC_XMLFILE");
  EXPECT_EQ(host.cores(), (std::vector<Cpus>{{0, 1}, {2, 3}, {4, 5}, {6, 7}}));
  EXPECT_EQ(host.near({0, 0x10, 0}), (Cpus{0, 1, 2, 3}));
  EXPECT_EQ(host.near({0, 0x20, 0}), (Cpus{4, 5, 6, 7}));
  EXPECT_EQ(host.near({0, 0x30, 0}), std::nullopt) << "no such device";
}

TEST(CpusTest, ListsAreDisjointAndEverySlotHasOneOrNoSlotDoes) {
  EXPECT_TRUE(rc::check([] {
    const auto core_count = *rc::gen::inRange(1, 40);
    std::vector<Cpus> cores;
    for (int core = 0; core < core_count; ++core) cores.push_back({core, core + core_count});
    Near near;
    for (int slot = *rc::gen::inRange(1, 17); slot > 0; --slot) {
      const int first = *rc::gen::inRange(0, core_count), count = *rc::gen::inRange(0, core_count);
      Cpus cpus(static_cast<std::size_t>(count));
      std::iota(cpus.begin(), cpus.end(), first);
      near.push_back(count == 0 ? std::nullopt : std::optional(cpus));
    }
    const std::vector<Cpus> divided = divide(cores, near);
    RC_ASSERT(divided.size() == near.size());
    std::set<int> taken;
    std::size_t pinned = 0;
    for (const Cpus& own : divided) {
      pinned += !own.empty();
      for (const int cpu : own) RC_ASSERT(taken.insert(cpu).second);
    }
    RC_ASSERT(pinned == 0 || pinned == divided.size());
  }));
}

}  // namespace
}  // namespace graphproof::launcher
