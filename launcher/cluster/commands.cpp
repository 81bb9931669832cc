#include "launcher/cluster/commands.h"

#include <algorithm>
#include <fstream>

#include "launcher/backend/local_command.h"
#include "matrix/input/input_error.h"

namespace graphproof::cluster {
namespace {

using launcher::Command;
using launcher::Environment;
using Words = std::vector<std::string>;

void append(Words& words, const Words& more) {
  words.insert(words.end(), more.begin(), more.end());
}

void option(Words& words, const std::string& name, const std::string& value) {
  if (!value.empty()) words.push_back(name + "=" + value);
}

Words agent_words(const AgentStart& start, int slots) {
  return {start.program,    "agent",           "--run",   start.run_folder,
          "--channels",     start.channels,    "--slots", std::to_string(slots),
          "--rank-program", start.rank_program};
}

/// A program inside an image sees the run and the programs under the same paths as outside.
Words folders(const AgentStart& start) {
  Words folders;
  for (const std::filesystem::path& folder :
       {start.run_folder, start.program.parent_path(), start.rank_program.parent_path()})
    if (!folder.empty() &&
        std::find(folders.begin(), folders.end(), folder.string()) == folders.end())
      folders.push_back(folder);
  return folders;
}

Words apptainer_words(const record::Cluster& options, const AgentStart& start) {
  if (options.apptainer_image.empty()) return {};
  Words words = {"apptainer", "exec"};
  if (start.device == "cuda") words.push_back("--nv");
  for (const std::string& folder : folders(start)) append(words, {"--bind", folder});
  words.push_back(options.apptainer_image);
  return words;
}

Words pyxis_words(const record::Cluster& options, const AgentStart& start) {
  if (options.container_image.empty()) return {};
  std::string mounts;
  for (const std::string& folder : folders(start))
    mounts += (mounts.empty() ? "" : ",") + folder + ":" + folder;
  if (!options.container_mounts.empty()) mounts += "," + options.container_mounts;
  return {"--container-image=" + options.container_image, "--container-mounts=" + mounts};
}

Words node_words(const record::Cluster& options, const AgentStart& start, int nodes, int slots) {
  Words words = {"--nodes=" + std::to_string(nodes), "--ntasks-per-node=1",
                 "--cpus-per-task=" + std::to_string(slots * options.cpus_per_slot)};
  if (start.device == "cuda") words.push_back("--gres=gpu:" + std::to_string(slots));
  return words;
}

Words job_words(const record::Cluster& options, const AgentStart& start) {
  Words words;
  option(words, "--job-name", job_name(start.run_id));
  option(words, "--partition", options.partition);
  option(words, "--account", options.account);
  option(words, "--qos", options.qos);
  option(words, "--time", options.time_limit);
  option(words, "--constraint", constraint(options.constraints, options.arch));
  append(words, options.slurm_arguments);
  return words;
}

Words step_words(const record::Cluster& options, const AgentStart& start, int nodes, int slots) {
  Words words = {"srun"};
  append(words, node_words(options, start, nodes, slots));
  append(words, {"--kill-on-bad-exit=1", "--mpi=none", "--cpu-bind=none", "--input=none"});
  // A task of an array has a log of its own already.
  if (options.engine != "slurm-array")
    words.push_back("--output=" + (start.channels / "agent-%n.log").string());
  append(words, pyxis_words(options, start));
  append(words, apptainer_words(options, start));
  append(words, agent_words(start, slots));
  return words;
}

Environment environment_of(const record::Cluster& options, const Environment& own) {
  Environment environment = launcher::without_outer_starter(own);
  if (!options.environment_file.empty())
    for (const auto& [name, value] : environment_file(options.environment_file))
      environment[name] = value;
  return environment;
}

Command hosts_command(const record::Cluster& options, const AgentStart& start,
                      const Environment& own) {
  std::string hosts;
  for (const std::string& host : options.hosts) hosts += (hosts.empty() ? "" : ",") + host + ":1";
  Environment environment = environment_of(options, own);
  environment.insert({{"OMPI_ALLOW_RUN_AS_ROOT", "1"},
                      {"OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"},
                      {"PMIX_MCA_gds", "hash"}});
  // Only a variable of the environment file is certainly wanted on other hosts; the rest are those
  // that ranks inherit on this host too.
  const Environment file =
      options.environment_file.empty() ? Environment{} : environment_file(options.environment_file);
  Words words = {"mpirun", "-np",       std::to_string(options.hosts.size()),
                 "--host", hosts,       "--map-by",
                 "node",   "--bind-to", "none"};
  for (const auto& [name, value] : environment)
    if (launcher::passed_on(name) || file.contains(name)) append(words, {"-x", name});
  append(words, apptainer_words(options, start));
  append(words, agent_words(start, options.slots));
  return {words, environment};
}

}  // namespace

std::string job_name(const std::string& run_id) { return "graphproof-" + run_id; }

std::string constraint(const std::vector<std::string>& constraints, const std::string& arch) {
  std::string all;
  for (const std::string& one : constraints) {
    const std::size_t equals = one.find('=');
    if (equals != one.npos && one.substr(0, equals) != arch) continue;
    all += (all.empty() ? "" : "&") + (equals == one.npos ? one : one.substr(equals + 1));
  }
  return all;
}

Command pilot_command(const record::Cluster& options, const AgentStart& start,
                      const Environment& own) {
  if (options.engine == "mpirun") return hosts_command(options, start, own);
  // Without --kill-command salloc waits for an srun whose nodes were taken away, for ever if they
  // are out of reach.
  Words words = {"salloc", "--kill-command=TERM"};
  append(words, node_words(options, start, options.nodes, options.slots));
  append(words, job_words(options, start));
  append(words, step_words(options, start, options.nodes, options.slots));
  return {words, environment_of(options, own)};
}

std::string granted_message(const record::Cluster& options) {
  return options.engine == "slurm" ? "Granted job allocation" : "";
}

Command fingerprint_command(const record::Cluster& options, const AgentStart& start,
                            const Environment& own) {
  return node_command(options, start, own, {start.rank_program, "--fingerprint"});
}

Command node_command(const record::Cluster& options, const AgentStart& start,
                     const Environment& own, const Words& program) {
  Words words;
  if (options.engine == "mpirun") {
    words = {"mpirun", "-np", "1", "--host", options.hosts.at(0)};
  } else {
    words = {"srun"};
    append(words, node_words(options, start, 1, options.slots));
    append(words, job_words(options, start));
    append(words, {"--mpi=none", "--input=none"});
    append(words, pyxis_words(options, start));
  }
  append(words, apptainer_words(options, start));
  append(words, program);
  Environment environment = environment_of(options, own);
  if (options.engine == "mpirun")
    environment.insert({{"OMPI_ALLOW_RUN_AS_ROOT", "1"}, {"OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"}});
  return {words, environment};
}

Command array_command(const record::Cluster& options, const AgentStart& start, int tasks, int slots,
                      const std::filesystem::path& script, const Environment& own) {
  Words words = {"sbatch", "--parsable", "--no-requeue",
                 "--array=0-" + std::to_string(tasks - 1) + "%" + std::to_string(options.nodes),
                 "--output=" + (start.channels / "task-%a.log").string()};
  append(words, node_words(options, start, 1, slots));
  append(words, job_words(options, start));
  words.push_back(script);
  append(words, step_words(options, start, 1, slots));
  return {words, environment_of(options, own)};
}

Command cancel_command(const std::string& run_id, const Environment& own) {
  return {{"scancel", "--name=" + job_name(run_id)}, launcher::without_outer_starter(own)};
}

Environment environment_file(const std::filesystem::path& file) {
  const auto refuse = [&](const std::string& got, const std::string& next) {
    throw matrix::InputError({"the environment file can't be read", got, "NAME=VALUE lines",
                              "agents and ranks get them", next});
  };
  std::ifstream in(file);
  if (!in) refuse("no " + file.string(), "check the path");
  Environment environment;
  int number = 0;
  for (std::string line; std::getline(in, line);) {
    ++number;
    if (line.empty() || line.front() == '#') continue;
    const std::size_t equals = line.find('=');
    const std::string name = line.substr(0, equals);
    if (equals == line.npos || name.empty() || name.find_first_of(" \t'\"$") != name.npos)
      refuse(file.string() + " line " + std::to_string(number) + ": " + line.substr(0, 60),
             "write NAME=VALUE: no `export`, no quotes, nothing is expanded");
    environment[name] = line.substr(equals + 1);
  }
  return environment;
}

}  // namespace graphproof::cluster
