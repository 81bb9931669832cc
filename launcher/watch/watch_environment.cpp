#include "launcher/watch/watch_environment.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace graphproof::launcher {
namespace {

constexpr const char* kInjection = "CUDA_INJECTION64_PATH";
constexpr const char* kNcclLog[] = {"NCCL_DEBUG", "NCCL_DEBUG_FILE", "NCCL_DEBUG_SUBSYS"};

/// The value of a variable; empty where it is not set.
std::string value_of(const Environment& variables, const char* name) {
  const auto found = variables.find(name);
  return found == variables.end() ? "" : found->second;
}

bool starts_ranks_by_open_mpi(const std::vector<std::string>& command) {
  if (command.empty()) return false;
  const std::string name = std::filesystem::path(command.front()).filename();
  return name == "mpirun" || name == "mpiexec" || name == "orterun";
}

/// See Open MPI's help for the MCA parameter mca_base_env_list.
void hand_on_by_open_mpi(const Environment& own, const std::vector<std::string>& command,
                         WatchEnvironment& made) {
  constexpr const char* kList = "OMPI_MCA_mca_base_env_list";
  if (!starts_ranks_by_open_mpi(command)) return;
  bool named_by_user = own.contains(kList);
  for (const std::string& word : command)
    named_by_user |= word == "-x" || word == "--x" || word == "mca_base_env_list";
  std::string list, options;
  for (const auto& [name, value] : made.variables) {
    list += (list.empty() ? "" : ";") + name;
    options += " -x " + name;
  }
  if (!named_by_user)
    made.variables[kList] = list;
  else
    made.notes.push_back(
        "processes on other hosts: the command names the variables that mpirun hands on, and ours "
        "are not among them; add" +
        options);
}

/// In quotes for a shell.
std::string quoted(std::string value) {
  for (std::size_t at = 0; (at = value.find('\'', at)) != std::string::npos; at += 4)
    value.replace(at, 1, "'\\''");
  return "'" + value + "'";
}

/// The folders that a container needs under the same paths, each after `option`: that of the probe
/// for reading, that of the run for writing.
std::string folders_of(const Environment& variables, const std::filesystem::path& folder,
                       const std::string& option) {
  const std::filesystem::path probe =
      std::filesystem::path(value_of(variables, kInjection)).parent_path();
  const auto bound = [&](const std::filesystem::path& path, const char* how) {
    return option + quoted(path.string() + ":" + path.string() + how) + " ";
  };
  return bound(probe, ":ro") + bound(folder, "");
}

}  // namespace

WatchEnvironment watch_environment(const Environment& own, const WatchSettings& settings) {
  WatchEnvironment made;
  Environment& set = made.variables;
  set[kInjection] = settings.probe;
  set["GRAPHPROOF_PROBE_DIR"] = settings.probe_folder;
  set["GRAPHPROOF_PROBE_PROFILE"] = settings.profile;
  // The other value, 1, takes CUPTI even from a library that the user injects.
  if (!settings.cupti) set["GRAPHPROOF_PROBE_CUPTI"] = "0";
  // A probe that is set already belongs to a `watch` around this one.
  const std::filesystem::path next = value_of(own, kInjection);
  if (!next.empty() && next.filename() != settings.probe.filename()) {
    set["GRAPHPROOF_PROBE_NEXT"] = next;
    if (settings.cupti)
      made.notes.push_back(
          "driver calls: CUPTI is left to " + next.string() +
          ", which the environment injects, since it serves one library a process");
  }
  if (!settings.cupti)
    made.notes.push_back(
        "driver calls: --no-cupti leaves CUPTI to the program's own profiler; a hang is noticed "
        "only where no thread spins");
  if (const std::string plugin = value_of(own, "NCCL_PROFILER_PLUGIN"); plugin.empty())
    set["NCCL_PROFILER_PLUGIN"] = settings.probe;
  else if (plugin != settings.probe)
    made.notes.push_back("NCCL's calls: NCCL_PROFILER_PLUGIN is set to " + plugin +
                         ", and NCCL loads one plugin");
  if (!settings.ras_address.empty() && !own.contains("NCCL_RAS_ADDR"))
    set["NCCL_RAS_ADDR"] = settings.ras_address;
  const auto* const set_by_user =
      std::ranges::find_if(kNcclLog, [&](const char* name) { return own.contains(name); });
  if (set_by_user != std::end(kNcclLog)) {
    made.notes.push_back(std::string("buffer registrations: ") + *set_by_user +
                         " is set, so NCCL's log stays where the user wants it");
  } else {
    set["NCCL_DEBUG"] = "INFO";
    set["NCCL_DEBUG_SUBSYS"] = "REG";
    set["NCCL_DEBUG_FILE"] = settings.nccl_folder / "%h.%p.log";
  }
  hand_on_by_open_mpi(own, settings.command, made);
  return made;
}

std::optional<EnvironmentForm> environment_form(std::string_view name) {
  constexpr std::pair<std::string_view, EnvironmentForm> kForms[] = {
      {"shell", EnvironmentForm::shell},
      {"env", EnvironmentForm::env},
      {"docker", EnvironmentForm::docker},
      {"apptainer", EnvironmentForm::apptainer}};
  for (const auto& [known, form] : kForms)
    if (known == name) return form;
  return std::nullopt;
}

std::string in_form(EnvironmentForm form, const Environment& variables,
                    const std::filesystem::path& folder) {
  const bool lines = form == EnvironmentForm::shell;
  const std::string before = lines                                ? "export "
                             : form == EnvironmentForm::docker    ? "-e "
                             : form == EnvironmentForm::apptainer ? "--env "
                                                                  : "";
  std::string text = form == EnvironmentForm::env ? "env " : "";
  for (const auto& [name, value] : variables)
    text += before + name + "=" + quoted(value) + (lines ? "\n" : " ");
  if (form == EnvironmentForm::docker) text += folders_of(variables, folder, "-v ");
  if (form == EnvironmentForm::apptainer) text += folders_of(variables, folder, "--bind ");
  if (text.ends_with(' ')) text.back() = '\n';
  return text;
}

std::string container_options(const Environment& variables, const std::filesystem::path& folder) {
  std::string text;
  for (const auto& [name, value] : variables) text += "-e " + name + " ";
  text += folders_of(variables, folder, "-v ");
  text.pop_back();
  return text;
}

}  // namespace graphproof::launcher
