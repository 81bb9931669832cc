#include "launcher/cluster/commands.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>

#include "matrix/input/input_error.h"
#include "reports/record/testing/scratch_folder.h"

namespace graphproof::cluster {
namespace {

using Words = std::vector<std::string>;

AgentStart agents(const std::string& device) {
  return {"20260101-000000-abcd",
          device,
          "/runs/r",
          "/runs/r/pilots/p1",
          "/opt/bin/graphproof",
          "/opt/bin/graphproof-rank-" + device};
}

/// The arguments of the agent, which end every command.
Words agent(const std::string& device, const std::string& slots) {
  return {"/opt/bin/graphproof",
          "agent",
          "--run",
          "/runs/r",
          "--channels",
          "/runs/r/pilots/p1",
          "--slots",
          slots,
          "--rank-program",
          "/opt/bin/graphproof-rank-" + device};
}

Words operator+(Words left, const Words& right) {
  left.insert(left.end(), right.begin(), right.end());
  return left;
}

const std::string kKill = "--kill-command=TERM";
const Words kStep = {"--kill-on-bad-exit=1", "--mpi=none", "--cpu-bind=none", "--input=none",
                     "--output=/runs/r/pilots/p1/agent-%n.log"};

struct Row {
  const char* what;
  record::Cluster options;
  const char* device;
  Words want;
};

TEST(CommandsTest, ThePilotIsOneArgumentVectorForEveryOption) {
  const Words two_nodes = {"--nodes=2", "--ntasks-per-node=1", "--cpus-per-task=4"};
  const Words one_node = {"--nodes=1", "--ntasks-per-node=1", "--cpus-per-task=4"};
  const Words name = {"--job-name=graphproof-20260101-000000-abcd"};
  const Row rows[] = {
      {"two nodes of the simulated device",
       {.engine = "slurm", .nodes = 2},
       "sim",
       Words{"salloc", kKill} + two_nodes + name + Words{"srun"} + two_nodes + kStep +
           agent("sim", "4")},
      {"GPUs are named for the job and again for the step",
       {.slots = 8, .cpus_per_slot = 2},
       "cuda",
       Words{"salloc", kKill, "--nodes=1", "--ntasks-per-node=1", "--cpus-per-task=16",
             "--gres=gpu:8"} +
           name +
           Words{"srun", "--nodes=1", "--ntasks-per-node=1", "--cpus-per-task=16", "--gres=gpu:8"} +
           kStep + agent("cuda", "8")},
      {"whose and where",
       {.partition = "gpu",
        .account = "team",
        .qos = "night",
        .time_limit = "240",
        .constraints = {"ib", "sm_90=hopper", "sm_100=blackwell"},
        .arch = "sm_90",
        .slurm_arguments = {"--reservation=R", "--mem=0"}},
       "sim",
       Words{"salloc", kKill} + one_node + name +
           Words{"--partition=gpu", "--account=team", "--qos=night", "--time=240",
                 "--constraint=ib&hopper", "--reservation=R", "--mem=0", "srun"} +
           one_node + kStep + agent("sim", "4")},
      {"a container of pyxis",
       {.container_image = "nvcr.io#nvidia/pytorch:26.08-py3", .container_mounts = "/data:/data"},
       "sim",
       Words{"salloc", kKill} + one_node + name + Words{"srun"} + one_node + kStep +
           Words{"--container-image=nvcr.io#nvidia/pytorch:26.08-py3",
                 "--container-mounts=/runs/r:/runs/r,/opt/bin:/opt/bin,/data:/data"} +
           agent("sim", "4")},
      {"a container of apptainer",
       {.slots = 1, .apptainer_image = "/images/pytorch.sif"},
       "cuda",
       Words{"salloc", kKill, "--nodes=1", "--ntasks-per-node=1", "--cpus-per-task=1",
             "--gres=gpu:1"} +
           name +
           Words{"srun", "--nodes=1", "--ntasks-per-node=1", "--cpus-per-task=1", "--gres=gpu:1"} +
           kStep +
           Words{"apptainer", "exec", "--nv", "--bind", "/runs/r", "--bind", "/opt/bin",
                 "/images/pytorch.sif"} +
           agent("cuda", "1")},
      {"named hosts, one agent each",
       {.engine = "mpirun", .nodes = 2, .hosts = {"a", "b"}},
       "sim",
       Words{"mpirun", "-np", "2", "--host", "a:1,b:1", "--map-by", "node", "--bind-to", "none",
             "-x", "NCCL_DEBUG"} +
           agent("sim", "4")},
  };
  for (const Row& row : rows)
    EXPECT_EQ(pilot_command(row.options, agents(row.device),
                            {{"PATH", "/bin"}, {"NCCL_DEBUG", "WARN"}, {"HOME", "/h"}})
                  .arguments,
              row.want)
        << row.what;
}

TEST(CommandsTest, TheStackIsAskedOfANodeAndNotOfTheHostThatOneLogsInto) {
  AgentStart start = agents("cuda");
  start.run_folder.clear();
  EXPECT_EQ(
      fingerprint_command({.engine = "slurm", .slots = 8, .partition = "gpu"}, start, {}).arguments,
      (Words{"srun", "--nodes=1", "--ntasks-per-node=1", "--cpus-per-task=8", "--gres=gpu:8",
             "--job-name=graphproof-20260101-000000-abcd", "--partition=gpu", "--mpi=none",
             "--input=none", "/opt/bin/graphproof-rank-cuda", "--fingerprint"}));
  EXPECT_EQ(fingerprint_command({.engine = "mpirun", .hosts = {"b", "a"}}, start, {}).arguments,
            (Words{"mpirun", "-np", "1", "--host", "b", "/opt/bin/graphproof-rank-cuda",
                   "--fingerprint"}));
}

TEST(CommandsTest, AnArrayHasATaskABatchAndIsNeverStartedAgainBySlurmItself) {
  const launcher::Command command =
      array_command({.engine = "slurm-array", .nodes = 16, .partition = "gpu"}, agents("cuda"), 40,
                    2, "/runs/r/pilots/p1/script", {});
  const Words node = {"--nodes=1", "--ntasks-per-node=1", "--cpus-per-task=2", "--gres=gpu:2"};
  EXPECT_EQ(command.arguments, Words({"sbatch", "--parsable", "--no-requeue", "--array=0-39%16",
                                      "--output=/runs/r/pilots/p1/task-%a.log"}) +
                                   node +
                                   Words({"--job-name=graphproof-20260101-000000-abcd",
                                          "--partition=gpu", "/runs/r/pilots/p1/script", "srun"}) +
                                   node + Words(kStep.begin(), kStep.end() - 1) +
                                   agent("cuda", "2"));
}

// SLURM_GPUS_PER_NODE of an outer job gives every step a whole node, which made packing three times
// slower.
TEST(CommandsTest, VariablesOfAnOuterJobAreNoOptionsOfTheRun) {
  const launcher::Environment outer = {{"SLURM_GPUS_PER_NODE", "4"},
                                       {"SBATCH_PARTITION", "debug"},
                                       {"SALLOC_QOS", "x"},
                                       {"SLURM_JOB_ID", "1"},
                                       {"SLURM_CONF", "/c"}};
  const launcher::Environment want = {{"SLURM_CONF", "/c"}};
  EXPECT_EQ(pilot_command({}, agents("cuda"), outer).environment, want);
  EXPECT_EQ(array_command({}, agents("cuda"), 1, 1, "s", outer).environment, want);
  EXPECT_EQ(cancel_command("20260101-000000-abcd", outer).environment, want);
}

TEST(CommandsTest, OnlyTheJobsOfThisRunAreCancelled) {
  EXPECT_EQ(cancel_command("20260101-000000-abcd", {}).arguments,
            (Words{"scancel", "--name=graphproof-20260101-000000-abcd"}));
}

TEST(CommandsTest, FeaturesOfAnotherArchitectureAreNotAskedFor) {
  const Words features = {"ib", "sm_90=h100|h200", "sm_100=b200"};
  EXPECT_EQ(constraint(features, ""), "ib");
  EXPECT_EQ(constraint(features, "sm_90"), "ib&h100|h200");
  EXPECT_EQ(constraint({}, "sm_90"), "");
}

TEST(CommandsTest, AnEnvironmentFileWinsAndReachesOtherHosts) {
  const record::ScratchFolder scratch;
  const auto file = scratch.path() / "env";
  std::ofstream(file) << "# for the fabric\n\nNCCL_IB_HCA=mlx5\nMY_SITE=a b=c\n";
  const launcher::Command slurm = pilot_command({.environment_file = file}, agents("sim"),
                                                {{"NCCL_IB_HCA", "other"}, {"HOME", "/h"}});
  EXPECT_EQ(slurm.environment,
            (launcher::Environment{{"NCCL_IB_HCA", "mlx5"}, {"MY_SITE", "a b=c"}, {"HOME", "/h"}}));
  const launcher::Command hosts =
      pilot_command({.engine = "mpirun", .hosts = {"a"}, .environment_file = file}, agents("sim"),
                    {{"HOME", "/h"}});
  for (const char* name : {"NCCL_IB_HCA", "MY_SITE"})
    EXPECT_NE(std::find(hosts.arguments.begin(), hosts.arguments.end(), name),
              hosts.arguments.end())
        << name;
  EXPECT_EQ(std::find(hosts.arguments.begin(), hosts.arguments.end(), "HOME"),
            hosts.arguments.end());
  EXPECT_EQ(hosts.environment.at("PMIX_MCA_gds"), "hash")
      << "the default store fails now and then at start";
}

TEST(CommandsTest, AnEnvironmentFileThatIsAScriptIsRefusedWithItsLine) {
  const record::ScratchFolder scratch;
  const auto file = scratch.path() / "env";
  for (const char* line : {"export A=b", "module load cuda", "=x", "$A=b"}) {
    std::ofstream(file) << "A=b\n" << line << "\n";
    try {
      environment_file(file);
      ADD_FAILURE() << line << " was taken";
    } catch (const matrix::InputError& error) {
      EXPECT_NE(std::string(error.what()).find("env line 2"), std::string::npos) << error.what();
      EXPECT_NE(std::string(error.what()).find("nothing is expanded"), std::string::npos)
          << error.what();
    }
  }
  EXPECT_THROW(environment_file(scratch.path() / "none"), matrix::InputError);
}

}  // namespace
}  // namespace graphproof::cluster
