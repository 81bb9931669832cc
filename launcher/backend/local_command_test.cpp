#include "launcher/backend/local_command.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "launcher/host/processes.h"

namespace graphproof::launcher {
namespace {

Job job(const std::string& device) {
  Job job;
  job.world_size = 2;
  job.device = device;
  job.program = "/opt/bin/rank";
  job.batch_file = "/runs/r/batches/b001/batch.json";
  job.node_folder = "/tmp/node";
  job.shm_folder = "/dev/shm/ours";
  job.mark = "r.b001";
  return job;
}

bool passes_on(const Command& command, const std::string& name) {
  for (auto word = command.arguments.begin(); word != command.arguments.end(); ++word)
    if (*word == "-x" && *(word + 1) == name) return true;
  return false;
}

TEST(LocalCommandTest, TheCommandNamesRanksSlotsProgramAndBatch) {
  const Command command = local_command(job("sim"), {});
  const std::vector<std::string> begin = {
      "mpirun", "-np", "2", "--host", "localhost:2", "--oversubscribe", "--bind-to", "none"};
  ASSERT_GT(command.arguments.size(), begin.size() + 2);
  EXPECT_TRUE(std::equal(begin.begin(), begin.end(), command.arguments.begin()));
  const std::vector<std::string> end(command.arguments.end() - 2, command.arguments.end());
  EXPECT_EQ(end, (std::vector<std::string>{"/opt/bin/rank", "/runs/r/batches/b001/batch.json"}));
}

TEST(LocalCommandTest, OnlySeveralRanksOfTheSimulatedDeviceNeedMpi) {
  for (const char* device : {"sim", "cuda"})
    for (const int ranks : {1, 2, 8}) {
      Job one = job(device);
      one.world_size = ranks;
      one.switches = {"--divergence"};
      const Command command = local_command(one, {});
      const bool mpi = std::string(device) == "sim" && ranks > 1;
      EXPECT_EQ(without_mpi(one), !mpi) << device << ranks;
      if (mpi) {
        EXPECT_EQ(command.arguments.front(), "mpirun");
        EXPECT_EQ(command.environment.at("OMPI_MCA_orte_tmpdir_base"), "/tmp/node");
        continue;
      }
      EXPECT_EQ(command.arguments,
                (std::vector<std::string>{"/opt/bin/graphproof-start", std::to_string(ranks),
                                          "/opt/bin/rank", "--divergence",
                                          "/runs/r/batches/b001/batch.json"}));
      for (const auto& [name, value] : command.environment)
        EXPECT_FALSE(name.starts_with("OMPI_MCA") || name.starts_with("PMIX"))
            << name << " says nothing to these ranks";
      EXPECT_EQ(command.environment.at("TMPDIR"), "/tmp/node");
    }
}

TEST(LocalCommandTest, ThePackageOfAPythonTakesThePlaceOfTheRankProgram) {
  for (const char* device : {"sim", "cuda"}) {
    Job one = job(device);
    one.python = "python3";
    const Environment own = {{"PYTHONPATH", "/mine"}, {"PATH", "/usr/bin"}};
    const Command command = local_command(one, own), reference = local_command(job("cuda"), own);
    EXPECT_EQ(command.arguments,
              (std::vector<std::string>{"/usr/bin/env", "python3", "-m", "graphproof.starter",
                                        "/opt/bin/graphproof-start", "2",
                                        "/runs/r/batches/b001/batch.json"}));
    EXPECT_EQ(command.environment.at("PYTHONPATH"), "/opt/bin/python:/mine");
    if (one.device == "cuda") {
      Environment same = command.environment;
      same["PYTHONPATH"] = "/mine";
      EXPECT_EQ(same, reference.environment) << "everything else is what a rank program gets";
    }
    // A single rank has nobody to share its imports with, and a tool runs each rank.
    for (const int ranks : {1, 2}) {
      one.world_size = ranks;
      one.imports_apart = ranks > 1;
      EXPECT_EQ(local_command(one, own).arguments,
                (std::vector<std::string>{"/opt/bin/graphproof-start", std::to_string(ranks),
                                          "/usr/bin/env", "python3", "-m", "graphproof.rank",
                                          "/runs/r/batches/b001/batch.json"}));
    }
  }
}

TEST(LocalCommandTest, RanksShareTheCpusOfTheirSlotsAndAreBoundNoFurther) {
  Job pinned = job("cuda");
  pinned.cpus = {2, 3, 10};
  const Command command = local_command(pinned, {});
  EXPECT_EQ(std::vector<std::string>(command.arguments.begin(), command.arguments.begin() + 5),
            (std::vector<std::string>{"taskset", "--cpu-list", "2,3,10",
                                      "/opt/bin/graphproof-start", "2"}));
  pinned.device = "sim";
  const Command through_mpirun = local_command(pinned, {});
  EXPECT_EQ(std::vector<std::string>(through_mpirun.arguments.begin(),
                                     through_mpirun.arguments.begin() + 5),
            (std::vector<std::string>{"taskset", "--cpu-list", "2,3,10", "mpirun", "-np"}));
  EXPECT_EQ(std::count(through_mpirun.arguments.begin(), through_mpirun.arguments.end(), "none"),
            1);
}

TEST(LocalCommandTest, RanksMayRunAsRootOversubscribedOnOneThreadEach) {
  const Command command = local_command(job("sim"), {{"OMP_NUM_THREADS", "16"}});
  const std::vector<std::pair<std::string, std::string>> rows = {
      {"OMPI_ALLOW_RUN_AS_ROOT", "1"},
      {"OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"},
      {"OMPI_MCA_mpi_yield_when_idle", "1"},
      {"OMP_NUM_THREADS", "1"},
      {"CUDA_VISIBLE_DEVICES", ""},
      {kMarkVariable, "r.b001"},
      {"TMPDIR", "/tmp/node"},
      {"OMPI_MCA_btl_vader_backing_directory", "/dev/shm/ours"}};
  for (const auto& [name, value] : rows) {
    ASSERT_TRUE(command.environment.count(name)) << name;
    EXPECT_EQ(command.environment.at(name), value) << name;
  }
  EXPECT_TRUE(passes_on(command, kMarkVariable));
  EXPECT_TRUE(passes_on(command, "OMP_NUM_THREADS"));
}

TEST(LocalCommandTest, TheRasServiceOfNcclIsOffUnlessItIsAskedFor) {
  Job cuda = job("cuda");
  cuda.gpus = {"0", "1"};
  const Command off = local_command(cuda, {}),
                shell = local_command(cuda, {{"NCCL_RAS_ENABLE", "1"}});
  EXPECT_EQ(off.environment.at("NCCL_RAS_ENABLE"), "0");
  EXPECT_EQ(shell.environment.at("NCCL_RAS_ENABLE"), "1");
  cuda.environment["NCCL_RAS_ENABLE"] = "1";
  EXPECT_EQ(local_command(cuda, {{"NCCL_RAS_ENABLE", "0"}}).environment.at("NCCL_RAS_ENABLE"), "1")
      << "an axis asks for it";
  EXPECT_FALSE(local_command(job("sim"), {}).environment.contains("NCCL_RAS_ENABLE"));
}

TEST(LocalCommandTest, OnCudaEachBatchSeesItsLeaseAndPinnedSums) {
  Job cuda = job("cuda");
  cuda.gpus = {"2", "5"};
  const Command command = local_command(
      cuda,
      {{"CUDA_VISIBLE_DEVICES", "0,1,2,3,4,5"}, {"NCCL_ALGO", "Tree"}, {"NCCL_NVLS_ENABLE", "0"}});
  const std::vector<std::pair<std::string, std::string>> rows = {
      {"CUDA_VISIBLE_DEVICES", "2,5"},
      {"NCCL_ALGO", "Ring"},
      {"NCCL_PROTO", "Simple"},
      {"NCCL_SOCKET_IFNAME", "lo"},
      {"NCCL_RAS_ENABLE", "0"},
      {"NCCL_NVLS_ENABLE", "0"},
      {"CUBLAS_WORKSPACE_CONFIG", ":4096:8"},
      {"CUDA_DEVICE_MAX_CONNECTIONS", "1"},
      {"CUDA_DEVICE_ORDER", "PCI_BUS_ID"}};
  for (const auto& [name, value] : rows) {
    ASSERT_TRUE(command.environment.count(name)) << name;
    EXPECT_EQ(command.environment.at(name), value) << name;
  }
}

TEST(LocalCommandTest, RanksThatShareGpusKnowHowMany) {
  Job cuda = job("cuda");
  cuda.world_size = 4;
  cuda.gpus = {"2", "5"};
  const Environment outer = {{"GRAPHPROOF_SHARED_GPUS", "7"}};
  EXPECT_EQ(local_command(cuda, outer).environment.at("GRAPHPROOF_SHARED_GPUS"), "2");
  cuda.world_size = 2;
  EXPECT_FALSE(local_command(cuda, outer).environment.contains("GRAPHPROOF_SHARED_GPUS"))
      << "each has its own";
}

TEST(LocalCommandTest, AnAxisWinsOverAPinButNotOverTheLease) {
  Job cuda = job("cuda");
  cuda.gpus = {"0", "1"};
  cuda.environment = {{"NCCL_ALGO", "Tree"}, {"CUDA_VISIBLE_DEVICES", "7"}, {"MY_SWITCH", "on"}};
  const Command command = local_command(cuda, {});
  EXPECT_EQ(command.environment.at("NCCL_ALGO"), "Tree");
  EXPECT_EQ(command.environment.at("CUDA_VISIBLE_DEVICES"), "0,1");
  EXPECT_EQ(command.environment.at("MY_SWITCH"), "on");
  Job sim = job("sim");
  sim.environment = {{"MY_SWITCH", "on"}};
  EXPECT_TRUE(passes_on(local_command(sim, {}), "MY_SWITCH"));
}

TEST(LocalCommandTest, TheUsersMpiSettingsStand) {
  const Command command = local_command(job("sim"), {{"OMPI_MCA_btl", "self,tcp"}});
  EXPECT_EQ(command.environment.at("OMPI_MCA_btl"), "self,tcp");
  EXPECT_EQ(command.environment.at("OMPI_MCA_pml"), "ob1");
}

// Seen with Slurm 22.05 and Open MPI 4.1.4: without this, mpirun in a step of srun says "All nodes
// which are allocated for this job are already filled", and one below another mpirun joins it.
TEST(LocalCommandTest, VariablesOfAnOuterStarterAreNotPassedOn) {
  const Environment outer = {
      {"SLURM_JOB_ID", "7"},          {"SLURM_GPUS_PER_NODE", "4"},  {"SLURMD_NODENAME", "n1"},
      {"SBATCH_PARTITION", "p"},      {"SRUN_DEBUG", "3"},           {"PMI_RANK", "0"},
      {"PMIX_NAMESPACE", "1"},        {"OMPI_COMM_WORLD_RANK", "1"}, {"OMPI_MCA_ess", "^singleton"},
      {"OMPI_MCA_orte_hnp_uri", "u"}, {"OMPI_UNIVERSE_SIZE", "2"},   {"OMPI_COMMAND", "env"},
      {"GRAPHPROOF_RANK", "1"}};
  const Environment own = {{"PATH", "/bin"},
                           {"SLURM_CONF", "/etc/s"},
                           {"PMIX_MCA_gds", "hash"},
                           {"OMPI_MCA_btl", "self,tcp"},
                           {"OMPI_MCA_plm_rsh_agent", "ssh"},
                           {"OMPI_ALLOW_RUN_AS_ROOT", "1"}};
  Environment both = outer;
  both.insert(own.begin(), own.end());
  EXPECT_EQ(without_outer_starter(both), own);
  const Command command = local_command(job("sim"), both);
  for (const auto& [name, value] : outer) EXPECT_FALSE(command.environment.count(name)) << name;
}

TEST(LocalCommandTest, SecretsAreNotShown) {
  for (const char* name :
       {"AWS_SECRET_ACCESS_KEY", "GH_TOKEN", "db_password", "My_Credential_File", "SSH_KEYFILE"})
    EXPECT_EQ(redacted(name, "hunter2"), "(redacted)") << name;
  EXPECT_EQ(redacted({{"API_KEY", "a"}, {"NCCL_ALGO", "Ring"}}),
            (Environment{{"API_KEY", "(redacted)"}, {"NCCL_ALGO", "Ring"}}));
}

}  // namespace
}  // namespace graphproof::launcher
