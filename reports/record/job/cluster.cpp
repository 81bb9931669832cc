#include "reports/record/job/cluster.h"

namespace graphproof::record {

Json to_json(const Cluster& cluster) {
  return {{"schema", kClusterSchema},
          {"engine", cluster.engine},
          {"nodes", cluster.nodes},
          {"slots", cluster.slots},
          {"cpus_per_slot", cluster.cpus_per_slot},
          {"hosts", cluster.hosts},
          {"partition", cluster.partition},
          {"account", cluster.account},
          {"qos", cluster.qos},
          {"time_limit", cluster.time_limit},
          {"constraints", cluster.constraints},
          {"arch", cluster.arch},
          {"slurm_arguments", cluster.slurm_arguments},
          {"container_image", cluster.container_image},
          {"container_mounts", cluster.container_mounts},
          {"apptainer_image", cluster.apptainer_image},
          {"environment_file", cluster.environment_file},
          {"queue_limit_ms", cluster.queue_limit_ms}};
}

Cluster cluster_from(const nlohmann::json& value, const std::string& where) {
  const Fields in(value, where);
  in.schema(kClusterSchema);
  const auto text = [&in](const char* key) { return in.required<std::string>(key); };
  const auto list = [&in](const char* key) { return in.required<std::vector<std::string>>(key); };
  return {.engine = in.word("engine", {"mpirun", "slurm", "slurm-array"}),
          .nodes = in.required<int>("nodes"),
          .slots = in.required<int>("slots"),
          .cpus_per_slot = in.required<int>("cpus_per_slot"),
          .hosts = list("hosts"),
          .partition = text("partition"),
          .account = text("account"),
          .qos = text("qos"),
          .time_limit = text("time_limit"),
          .constraints = list("constraints"),
          .arch = text("arch"),
          .slurm_arguments = list("slurm_arguments"),
          .container_image = text("container_image"),
          .container_mounts = text("container_mounts"),
          .apptainer_image = text("apptainer_image"),
          .environment_file = text("environment_file"),
          .queue_limit_ms = in.required<std::int64_t>("queue_limit_ms")};
}

}  // namespace graphproof::record
