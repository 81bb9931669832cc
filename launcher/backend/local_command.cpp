#include "launcher/backend/local_command.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <span>
#include <utility>

#include "launcher/backend/compute_sanitizer.h"
#include "launcher/host/processes.h"

namespace graphproof::launcher {
namespace {

/// These are used unless the launcher's own environment says otherwise.
const Environment& defaults_of_mpi() {
  static const Environment table = {
      {"OMPI_MCA_btl", "self,vader"},
      {"OMPI_MCA_btl_vader_single_copy_mechanism", "none"},
      {"OMPI_MCA_mpi_yield_when_idle", "1"},
      {"OMPI_MCA_pml", "ob1"},
      {"PMIX_MCA_gds", "hash"},
  };
  return table;
}

/// The same on GPUs. NCCL's RAS service opens a TCP port in every rank and takes part in every
/// communicator, so it is off.
const Environment& defaults_on_cuda() {
  static const Environment table = {
      {"NCCL_RAS_ENABLE", "0"},
      {"NCCL_SOCKET_IFNAME",
       "lo"},  // all ranks are on one host, so NCCL's bootstrap needs no fabric
  };
  return table;
}

/// These are always set, because results must not depend on the shell from which the run was
/// started. Only an axis overrides them.
const Environment& pinned() {
  static const Environment table = {
      {"OMPI_ALLOW_RUN_AS_ROOT", "1"},
      {"OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"},
      {"OMP_NUM_THREADS", "1"},  // a float sum differs between one thread and two
  };
  return table;
}

/// The same for GPUs. NCCL's algorithm and protocol decide the order of sums, so bitwise arms pin
/// them. One hardware queue keeps launches in issue order. The workspace setting makes cuBLAS
/// deterministic.
const Environment& pinned_on_cuda() {
  static const Environment table = {
      {"CUBLAS_WORKSPACE_CONFIG", ":4096:8"},
      {"CUDA_DEVICE_MAX_CONNECTIONS", "1"},
      {"CUDA_DEVICE_ORDER",
       "PCI_BUS_ID"},  // a leased GPU's number means the same to CUDA and to NVML
      {"NCCL_ALGO", "Ring"},
      {"NCCL_PROTO", "Simple"},
  };
  return table;
}

/// mpirun passes these on in addition to what the job sets, also to other hosts.
constexpr std::array<std::string_view, 9> kPassedPrefixes = {
    "NCCL_", "CUDA_",           "CUBLAS_", "TORCH_",     "PYTORCH_",
    "OMP_",  "LD_LIBRARY_PATH", "NVIDIA_", "GRAPHPROOF_"};

/// The variables that srun, mpirun (Open MPI 4.1, 5.0) and graphproof-start set for the processes
/// that they start. A user's own OMPI_MCA_* stay, except those by which mpirun tells a process that
/// it is one of its own.
constexpr std::array<std::string_view, 26> kOuterStarter = {"SLURM_",
                                                            "SLURMD_",
                                                            "SBATCH_",
                                                            "SALLOC_",
                                                            "SRUN_",
                                                            "PMI_",
                                                            "PMI2_",
                                                            "PMIX_",
                                                            "OMPI_COMM_WORLD_",
                                                            "OMPI_MCA_ess",
                                                            "OMPI_MCA_orte_",
                                                            "OMPI_MCA_pmix",
                                                            "OMPI_MCA_prte_",
                                                            "OMPI_UNIVERSE_",
                                                            "OMPI_APP_CTX_",
                                                            "OMPI_NUM_APP_CTX",
                                                            "OMPI_COMMAND",
                                                            "OMPI_ARGV",
                                                            "OMPI_FIRST_RANKS",
                                                            "OMPI_FILE_LOCATION",
                                                            "OMPI_MCA_initial_wdir",
                                                            "PRTE_",
                                                            "GRAPHPROOF_WORLD_SIZE",
                                                            "GRAPHPROOF_RANK",
                                                            "GRAPHPROOF_LOCAL_RANK",
                                                            "GRAPHPROOF_SHARED_GPUS"};
constexpr std::array<std::string_view, 2> kOwnAll = {"SLURM_CONF", "PMIX_MCA_gds"};

bool begins_with_one_of(const std::string& name, std::span<const std::string_view> prefixes) {
  return std::any_of(prefixes.begin(), prefixes.end(),
                     [&](std::string_view prefix) { return name.starts_with(prefix); });
}

/// "0,1,5", as taskset spells a set of CPUs.
std::string cpu_list(const std::vector<int>& cpus) {
  std::string text;
  for (const int cpu : cpus) text += (text.empty() ? "" : ",") + std::to_string(cpu);
  return text;
}

std::string visible_devices(const std::vector<std::string>& gpus) {
  std::string text;
  for (const std::string& gpu : gpus) text += (text.empty() ? "" : ",") + gpu;
  return text;
}

void overlay(Environment& environment, const Environment& upper) {
  for (const auto& [name, value] : upper) environment[name] = value;
}

}  // namespace

std::filesystem::path python_packages(const std::filesystem::path& programs) {
  return programs / "python";
}

std::string python_path(const std::filesystem::path& programs, const Environment& own) {
  const auto earlier = own.find("PYTHONPATH");
  return python_packages(programs).string() +
         (earlier == own.end() || earlier->second.empty() ? "" : ":" + earlier->second);
}

bool without_mpi(const Job& job) {
  return job.device == "cuda" || job.world_size == 1 || !job.python.empty();
}

Command local_command(const Job& job, const Environment& own) {
  const bool cuda = job.device == "cuda";
  Environment environment = without_outer_starter(own);
  const bool own_starter = without_mpi(job);
  if (!own_starter) environment.insert(defaults_of_mpi().begin(), defaults_of_mpi().end());
  overlay(environment, pinned());
  if (cuda) {
    environment.insert(defaults_on_cuda().begin(), defaults_on_cuda().end());
    overlay(environment, pinned_on_cuda());
  }
  overlay(environment, job.environment);
  if (!own_starter) {
    environment["OMPI_MCA_btl_vader_backing_directory"] = job.shm_folder;
    environment["OMPI_MCA_orte_tmpdir_base"] = job.node_folder;
  }
  environment["TMPDIR"] =
      job.node_folder;  // what the ranks leave there is found, and removed with the folder
  environment[kMarkVariable] = job.mark;
  // On sim a rank must not even see a GPU: the first library that asks would create a context on
  // it.
  environment["CUDA_VISIBLE_DEVICES"] = cuda ? visible_devices(job.gpus) : "";
  if (!job.gpus.empty() && (job.gpus_shared || std::ssize(job.gpus) < job.world_size))
    environment["GRAPHPROOF_SHARED_GPUS"] = std::to_string(job.gpus.size());

  if (!job.sanitizer.empty()) environment[kSanitizerVariable] = job.sanitizer;
  if (!job.python.empty())
    environment["PYTHONPATH"] = python_path(job.program.parent_path(), environment);

  const std::string ranks = std::to_string(job.world_size);
  Command command{{}, environment};
  std::vector<std::string>& words = command.arguments;
  // The starter and its ranks inherit this, and are not bound any further.
  if (!job.cpus.empty()) words = {"taskset", "--cpu-list", cpu_list(job.cpus)};
  const std::string starter = job.program.parent_path() / "graphproof-start";
  const bool forked = !job.python.empty() && job.world_size > 1 && !job.imports_apart;
  if (forked) {
    // It starts the ranks by graphproof-start where they cannot be forked.
    words.insert(words.end(),
                 {"/usr/bin/env", job.python, "-m", "graphproof.starter", starter, ranks});
  } else if (own_starter) {
    words.insert(words.end(), {starter, ranks});
  } else {
    words.insert(words.end(), {"mpirun", "-np", ranks, "--host", "localhost:" + ranks,
                               "--oversubscribe", "--bind-to", "none"});
    for (const auto& [name, value] : environment)
      if (passed_on(name) || job.environment.count(name) != 0)
        words.insert(words.end(), {"-x", name});
  }
  // graphproof-start searches no PATH; env does, and becomes the tool or the Python.
  if (!job.sanitizer.empty()) {
    words.insert(words.end(), {"/usr/bin/env", kComputeSanitizer});
    for (std::string& option :
         sanitizer_options(job.sanitizer, sanitizer_log_name(job.sanitizer_log)))
      words.push_back(std::move(option));
  }
  if (job.python.empty())
    words.push_back(job.program);
  else if (!forked)
    words.insert(words.end(), {"/usr/bin/env", job.python, "-m", "graphproof.rank"});
  words.insert(words.end(), job.switches.begin(), job.switches.end());
  words.push_back(job.batch_file);
  return command;
}

bool passed_on(const std::string& name) { return begins_with_one_of(name, kPassedPrefixes); }

Environment without_outer_starter(const Environment& environment) {
  Environment left = environment;
  std::erase_if(left, [](const auto& variable) {
    return begins_with_one_of(variable.first, kOuterStarter) &&
           !begins_with_one_of(variable.first, kOwnAll);
  });
  return left;
}

std::string redacted(const std::string& name, const std::string& value) {
  static constexpr std::array<std::string_view, 5> words = {"KEY", "TOKEN", "SECRET", "PASSWORD",
                                                            "CREDENTIAL"};
  std::string upper = name;
  std::transform(upper.begin(), upper.end(), upper.begin(),
                 [](unsigned char c) { return std::toupper(c); });
  const bool secret = std::any_of(words.begin(), words.end(), [&](std::string_view word) {
    return upper.find(word) != std::string::npos;
  });
  return secret ? "(redacted)" : value;
}

Environment redacted(const Environment& environment) {
  Environment shown;
  for (const auto& [name, value] : environment) shown.emplace(name, redacted(name, value));
  return shown;
}

}  // namespace graphproof::launcher
