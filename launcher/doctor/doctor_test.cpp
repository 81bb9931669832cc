#include "launcher/doctor/doctor.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "reports/record/testing/scratch_folder.h"

namespace graphproof::launcher {
namespace {

HostFacts healthy() {
  HostFacts facts{.host = "node1", .device = "cuda", .slots = 4, .folder = "/runs"};
  facts.disk_free_bytes = facts.memory_free_bytes = facts.shm_free_bytes = std::int64_t{100} << 30;
  facts.locked_memory_bytes = -1;
  facts.open_files = 65536;
  facts.starter = true;
  facts.nccl_libraries = {"/torch/libnccl.so.2"};
  facts.gpus = {{.name = "0", .used_bytes = std::int64_t{600} << 20}};
  return facts;
}

const Finding& finding(const std::vector<Finding>& findings, const std::string& check) {
  return *std::find_if(findings.begin(), findings.end(),
                       [&](const Finding& one) { return one.check == check; });
}

struct Row {
  const char* check;
  Health health;
  std::function<void(HostFacts&)> change;
  const char* got;
  const char* next;
};

TEST(DoctorTest, EachFaultIsNamedWithWhatToDo) {
  const Row rows[] = {
      {"starter", Health::failure,
       [](HostFacts& facts) {
         facts.device = "sim";
         facts.starter = false;
       },
       "no mpirun in PATH", "install Open MPI, or put its mpirun into PATH"},
      {"run_folder", Health::failure,
       [](HostFacts& facts) { facts.folder_faults = {"no lock: not supported"}; },
       "no lock: not supported", "use a folder on another file system: --run-dir"},
      {"disk", Health::warning, [](HostFacts& facts) { facts.disk_free_bytes = 500 << 20; },
       "500 MiB", "free space in /runs"},
      {"disk", Health::failure, [](HostFacts& facts) { facts.disk_free_bytes = 1 << 20; }, "1 MiB",
       "free space in /runs"},
      {"memory", Health::warning, [](HostFacts& facts) { facts.memory_free_bytes = 1 << 30; },
       "1024 MiB", "end other programs, or run fewer ranks"},
      {"shared_memory", Health::warning, [](HostFacts& facts) { facts.shm_free_bytes = 64 << 20; },
       "64 MiB", "start the container with --shm-size=1g"},
      {"open_files", Health::warning, [](HostFacts& facts) { facts.open_files = 256; }, "256",
       "ulimit -n 65536"},
      {"locked_memory", Health::warning,
       [](HostFacts& facts) { facts.locked_memory_bytes = 8 << 20; }, "8 MiB",
       "ulimit -l unlimited"},
      {"leftover_processes", Health::warning,
       [](HostFacts& facts) { facts.marked_processes = {"4711 graphproof-rank"}; },
       "4711 graphproof-rank", "graphproof resume ends those of its run; otherwise end them"},
      {"gpu_0_health", Health::warning,
       [](HostFacts& facts) {
         facts.gpus[0].uncorrected_errors = 3;
         facts.gpus[0].slowed_by_heat = true;
       },
       "3 memory errors that could not be corrected; slowed down by heat",
       "reset it or have it looked after; CUDA_VISIBLE_DEVICES chooses other GPUs"},
      {"known_bad_versions", Health::warning,
       [](HostFacts& facts) { facts.bad_versions = {"libnccl 2.28.9: captured collectives"}; },
       "libnccl 2.28.9: captured collectives",
       "watch and check say whether a program has that use"},
      {"all_reduce", Health::failure,
       [](HostFacts& facts) { facts.all_reduce = AllReduceTry{{}, "no answer in 60 s: "}; },
       "no answer in 60 s: ", "run it again with NCCL_DEBUG=INFO: graphproof doctor"},
      {"one_libnccl", Health::failure,
       [](HostFacts& facts) { facts.nccl_libraries.push_back("/usr/lib/libnccl.so.2"); },
       "/torch/libnccl.so.2, /usr/lib/libnccl.so.2",
       "take the other's folder out of LD_LIBRARY_PATH"},
      {"gpu_0_memory", Health::warning,
       [](HostFacts& facts) { facts.gpus[0].used_bytes = std::int64_t{9} << 30; },
       "9216 MiB in use", "nvidia-smi shows which; CUDA_VISIBLE_DEVICES chooses other GPUs"},
      {"gpu_0_mps", Health::ok, [](HostFacts& facts) { facts.gpus[0].mps = true; },
       "a server of the Multi-Process Service", ""},
  };
  EXPECT_EQ(worst(examine(healthy())), Health::ok);
  for (const Row& row : rows) {
    HostFacts facts = healthy();
    row.change(facts);
    const auto findings = examine(facts);
    const Finding& found = finding(findings, row.check);
    EXPECT_EQ(found.health, row.health) << row.check;
    EXPECT_EQ(found.got, row.got) << row.check;
    EXPECT_EQ(found.next, row.next) << row.check;
    EXPECT_FALSE(found.want.empty() || found.why.empty()) << row.check;
    EXPECT_EQ(worst(findings), row.health) << row.check;
  }
}

TEST(DoctorTest, AnAllReduceIsAFigure) {
  HostFacts facts = healthy();
  facts.all_reduce = AllReduceTry{AllReduce{4, 64 << 20, 0.4191, 240.21}, {}};
  const Finding found = finding(examine(facts), "all_reduce");
  EXPECT_EQ(found.health, Health::ok);
  EXPECT_EQ(found.got, "4 ranks, 64 MiB: 0.42 ms, 240.2 GB/s");
  facts.folder_faults = {"no lock: not supported"};
  EXPECT_EQ(notable(examine(facts)),
            (std::vector<std::string>{"run_folder: no lock: not supported; want locks, appends and "
                                      "renames that hold between processes; "
                                      "next: use a folder on another file system: --run-dir",
                                      "all_reduce: 4 ranks, 64 MiB: 0.42 ms, 240.2 GB/s"}));
}

TEST(DoctorTest, RanksOnGpusNeedNoMpirun) {
  HostFacts facts = healthy();
  facts.starter = false;
  EXPECT_EQ(worst(examine(facts)), Health::ok);
}

TEST(DoctorTest, ASimulatedDeviceNeedsNoGpu) {
  HostFacts facts = healthy();
  facts.device = "sim";
  facts.nccl_libraries = {"a", "b"};
  facts.locked_memory_bytes = 1;
  EXPECT_EQ(worst(examine(facts)), Health::ok);
}

TEST(DoctorTest, AnOrdinaryFolderDoesWhatARunNeedsAndIsLeftAsItWas) {
  // File systems that every machine has: memory, the disk of /tmp, and the one on which this was
  // built.
  for (const std::string top : {"/dev/shm", "/tmp", "."}) {
    const record::ScratchFolder folder(top);
    EXPECT_EQ(folder_faults(folder.path()), std::vector<std::string>{}) << top;
    EXPECT_EQ(folder.names(), std::vector<std::string>{}) << top;
  }
  const auto faults = folder_faults("/nowhere");
  ASSERT_EQ(faults.size(), 1u);
  EXPECT_EQ(faults[0], "no file can be made: No such file or directory");
}

TEST(DoctorTest, ThisHostCanBeLookedAt) {
  const record::ScratchFolder folder;
  const HostFacts facts = look_at_host(folder.path(), "sim", 4, {}, {});
  EXPECT_FALSE(facts.host.empty());
  EXPECT_TRUE(facts.disk_free_bytes && facts.memory_free_bytes && facts.open_files);
  const auto json = to_json(facts, examine(facts));
  EXPECT_EQ(json.at("schema"), "graphproof-doctor/1");
  EXPECT_EQ(json.at("findings").size(), 7u);
}

}  // namespace
}  // namespace graphproof::launcher
