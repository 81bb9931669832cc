#include "launcher/cli/cluster_options.h"

#include <algorithm>
#include <array>
#include <sstream>
#include <system_error>

#include "launcher/backend/subjects.h"
#include "launcher/cli/device_option.h"
#include "launcher/cli/duration_option.h"
#include "launcher/cluster/commands.h"
#include "launcher/cluster/pilot.h"
#include "launcher/cluster/task_array.h"
#include "matrix/input/input_error.h"
#include "reports/record/text/file.h"

namespace graphproof::cli {
namespace {

namespace fs = std::filesystem;

const std::vector<std::string>& launchers() {
  static const std::vector<std::string> words = {"local", "mpirun", "slurm", "slurm-array"};
  return words;
}

[[noreturn]] void refuse(const std::string& what, const std::string& got, const std::string& want,
                         const std::string& why, const std::string& next) {
  throw matrix::InputError({what, got, want, why, next});
}

bool is_slurm(const record::Cluster& cluster) { return cluster.engine.starts_with("slurm"); }

/// A duration in minutes, as Slurm takes it.
std::string minutes(const std::string& duration, const std::string& option) {
  return std::to_string(std::max<std::int64_t>(1, duration_option_ms(duration, option) / 60000));
}

cluster::AgentStart agents(const record::Run& run, const fs::path& folder,
                           const fs::path& rank_program, const Surroundings& surroundings) {
  return {run.run_id,
          run.device,
          folder,
          {},
          fs::absolute(surroundings.programs) / "graphproof",
          fs::absolute(rank_program)};
}

}  // namespace

void declare(CLI::App& app, ClusterOptions& options) {
  record::Cluster& cluster = options.cluster;
  app.option_defaults()->group("On a cluster");
  app.add_option("--launcher,--engine", cluster.engine,
                 "what starts the ranks; mpirun needs --hosts (default: local)")
      ->type_name("local|mpirun|slurm|slurm-array");
  app.add_option("--hosts", options.hosts,
                 "mpirun: the hosts to run on, such as a,b; an agent is started on each")
      ->type_name("HOSTS");
  app.add_option("--nodes", cluster.nodes,
                 "slurm: nodes of the one allocation; slurm-array: tasks at once (default: 1)")
      ->type_name("N");
  app.add_option("--slots", cluster.slots,
                 "GPUs of a node, or ranks of a node with --device sim (default: 4)")
      ->type_name("N");
  app.add_option("--cpus-per-slot", cluster.cpus_per_slot,
                 "CPUs to request with each slot (default: 1)")
      ->type_name("N");
  app.add_option("--partition", cluster.partition, "passed to Slurm")->type_name("NAME");
  app.add_option("--account", cluster.account, "passed to Slurm")->type_name("NAME");
  app.add_option("--qos", cluster.qos, "passed to Slurm")->type_name("NAME");
  app.add_option("--time-limit", cluster.time_limit,
                 "of the allocation or of each array task, such as 4h")
      ->type_name("TIME");
  app.add_option("--constraint", cluster.constraints,
                 "a node feature for Slurm, or ARCH=FEATURE, which counts with --node-arch ARCH; "
                 "may be given several times")
      ->type_name("FEATURE");
  app.add_option("--node-arch", cluster.arch,
                 "which of the ARCH=FEATURE constraints count, such as sm_90")
      ->type_name("ARCH");
  app.add_option("--slurm-arg", cluster.slurm_arguments,
                 "passed to salloc or sbatch unchanged, such as --slurm-arg=--mem=0; may be given "
                 "several times")
      ->type_name("ARG");
  app.add_option("--container-image", cluster.container_image,
                 "Slurm runs agents and ranks in this image (pyxis)")
      ->type_name("IMAGE");
  app.add_option("--container-mounts", cluster.container_mounts,
                 "mounts for --container-image, as pyxis spells them")
      ->type_name("MOUNTS");
  app.add_option("--apptainer", cluster.apptainer_image,
                 "agents and ranks run in this image (apptainer exec)")
      ->type_name("IMAGE");
  app.add_option("--env-file", cluster.environment_file,
                 "a file of NAME=VALUE lines: the environment of agents and ranks")
      ->type_name("FILE");
  app.add_option("--queue-limit", options.queue_limit,
                 "how long to wait for nodes, such as 2h (default: 24h)")
      ->type_name("TIME");
}

record::Cluster cluster_of(const ClusterOptions& options) {
  record::Cluster cluster = options.cluster;
  if (std::find(launchers().begin(), launchers().end(), cluster.engine) == launchers().end())
    refuse("no launcher `" + cluster.engine + "`", cluster.engine,
           "one of " + matrix::listed(launchers()), "",
           matrix::suggestion(cluster.engine, launchers(), "--launcher local runs on this host"));
  std::istringstream hosts(options.hosts);
  for (std::string host; std::getline(hosts, host, ',');)
    if (!host.empty()) cluster.hosts.push_back(host);
  // Host names become arguments of mpirun. One that begins with a dash would be an option.
  for (const std::string& host : cluster.hosts)
    if (host.front() == '-' || host.find_first_of(" :;") != host.npos)
      refuse("`" + host + "` is no host", host, "names separated by commas", "",
             "write --hosts a,b");
  if (cluster.engine == "mpirun" && cluster.hosts.empty())
    refuse("--launcher mpirun needs hosts", "no --hosts", "--hosts a,b",
           "mpirun starts an agent on each of them", "name them, or use --launcher local");
  if (cluster.engine != "mpirun" && !cluster.hosts.empty())
    refuse("--hosts goes with --launcher mpirun", "--launcher " + cluster.engine,
           "--launcher mpirun", "a scheduler chooses the hosts itself",
           "add --launcher mpirun, or leave --hosts out");
  const std::array<std::pair<const char*, bool>, 8> of_slurm = {
      {{"--partition", !cluster.partition.empty()},
       {"--account", !cluster.account.empty()},
       {"--qos", !cluster.qos.empty()},
       {"--time-limit", !cluster.time_limit.empty()},
       {"--constraint", !cluster.constraints.empty()},
       {"--slurm-arg", !cluster.slurm_arguments.empty()},
       {"--container-image", !cluster.container_image.empty()},
       {"--nodes", cluster.nodes != 1}}};
  for (const auto& [name, given] : of_slurm)
    if (given && !is_slurm(cluster))
      refuse(std::string(name) + " goes with Slurm", "--launcher " + cluster.engine,
             "--launcher slurm or slurm-array", "",
             "add --launcher slurm, or leave " + std::string(name) + " out");
  if (!cluster.container_image.empty() && !cluster.apptainer_image.empty())
    refuse("two container images", "--container-image and --apptainer", "one of them",
           "ranks run in one", "leave one out");
  for (const auto& [name, number] : {std::pair{"--nodes", cluster.nodes},
                                     {"--slots", cluster.slots},
                                     {"--cpus-per-slot", cluster.cpus_per_slot}})
    if (number < 1)
      refuse(std::string(name) + " must be at least 1", std::to_string(number), "1 or more", "",
             "leave it out for its default");
  if (!cluster.time_limit.empty()) cluster.time_limit = minutes(cluster.time_limit, "--time-limit");
  if (!options.queue_limit.empty())
    cluster.queue_limit_ms = std::stoll(minutes(options.queue_limit, "--queue-limit")) * 60000;
  if (cluster.engine == "mpirun") cluster.nodes = static_cast<int>(cluster.hosts.size());
  if (!cluster.environment_file.empty()) {
    cluster.environment_file = fs::absolute(cluster.environment_file);
    cluster::environment_file(
        cluster.environment_file);  // a mistake is reported now, not on a node
  }
  return cluster;
}

launcher::Device device_on(const record::Cluster& cluster, const std::string& wanted,
                           const Surroundings& surroundings, const record::GpuSharing& sharing) {
  if (cluster.engine == "local") return device_of(wanted, surroundings, sharing);
  if (sharing != record::GpuSharing())
    refuse("--ranks-per-gpu and --cases-per-gpu go with --launcher local",
           "--launcher " + cluster.engine, "--launcher local",
           "on a cluster, more GPUs can be requested instead",
           "request more GPUs, or leave them out");
  if (wanted == "auto")
    refuse("--device has to name the device of the nodes", "--device auto",
           "--device cuda or --device sim",
           "the GPUs of other nodes are not known before the nodes are allocated",
           "add --device cuda");
  if (wanted != "cuda") {
    launcher::Device device = device_of(wanted, surroundings);
    device.slots = cluster.slots;
    return device;
  }
  launcher::Device device{.name = "cuda",
                          .rank_program = launcher::rank_program("cuda", surroundings.programs),
                          .stack = {},
                          .gpus = {},
                          .slots = cluster.slots,
                          .note = {}};
  record::Run run;
  run.run_id = "fingerprint";
  run.device = "cuda";
  const cluster::AgentStart start = agents(run, {}, device.rank_program, surroundings);
  const launcher::Environment own = launcher::own_environment();
  device.stack = launcher::fingerprint(cluster::fingerprint_command(cluster, start, own),
                                       cluster.queue_limit_ms);
  launcher::ask_for_subjects(
      device.stack, other_subjects(surroundings.catalogue), launcher::pythons(own),
      [&](const std::string& python) {
        return cluster::node_command(
            cluster, start, own, launcher::subjects_command(python, surroundings.programs, own));
      },
      cluster.queue_limit_ms);
  if (static_cast<int>(device.stack.gpus.size()) < cluster.slots)
    refuse("a node has fewer GPUs than --slots", std::to_string(device.stack.gpus.size()) + " GPUs",
           std::to_string(cluster.slots) + " slots", "each slot is a GPU",
           "add --slots " + std::to_string(std::max<std::size_t>(1, device.stack.gpus.size())));
  return device;
}

std::shared_ptr<launcher::Allocation> allocation(const record::Cluster& cluster,
                                                 const launcher::RunSetup& setup,
                                                 const Surroundings& surroundings) {
  if (cluster.engine == "local") return nullptr;
  const cluster::AgentStart start =
      agents(setup.run, setup.folder, setup.rank_program, surroundings);
  const launcher::Environment own = launcher::own_environment();
  if (cluster.engine == "slurm-array")
    return std::make_shared<cluster::TaskArray>(cluster, start, own);
  cluster::PilotSetup pilot{.run_folder = setup.folder,
                            .nodes = cluster.nodes,
                            .slots = cluster.slots,
                            .command =
                                [=](const fs::path& channels) {
                                  cluster::AgentStart here = start;
                                  here.channels = channels;
                                  return cluster::pilot_command(cluster, here, own);
                                },
                            .cancel = {},
                            .queue_limit_ms = cluster.queue_limit_ms,
                            .granted = cluster::granted_message(cluster)};
  if (is_slurm(cluster)) pilot.cancel = cluster::cancel_command(setup.run.run_id, own);
  return std::make_shared<cluster::Pilot>(std::move(pilot));
}

record::Cluster recorded_cluster(const fs::path& run_folder) {
  const fs::path file = run_folder / "cluster.json";
  std::error_code absent;
  if (!fs::exists(file, absent)) return {};
  return record::cluster_from(record::read_json(file), file);
}

void write_cluster(const record::Cluster& cluster, const fs::path& run_folder) {
  if (cluster.engine != "local")
    record::write_json(run_folder / "cluster.json", record::to_json(cluster));
}

}  // namespace graphproof::cli
