#include "launcher/watch/started_elsewhere.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <span>
#include <string_view>

namespace graphproof::launcher {
namespace {

using Words = std::span<const std::string>;
using Place = StartsElsewhere::Place;

/// A program, and which of its verbs start something; any if there are none.
struct Row {
  std::string_view program;
  Place place;
  std::array<std::string_view, 5> verbs;
};

// The command lines of these programs, as their manuals have them. What podman, apptainer, enroot
// and sudo start are descendants and are looked at as such. mpirun, srun and flux run hand the
// environment on.
constexpr Row kRows[] = {
    {"docker", Place::container, {"run", "exec", "start", "create", "compose"}},
    {"docker-compose", Place::container, {"up", "run", "exec", "start", "compose"}},
    {"nvidia-docker", Place::container, {"run", "exec", "start"}},
    {"nerdctl", Place::container, {"run", "exec", "start", "create", "compose"}},
    {"lxc", Place::container, {"exec", "start", "launch"}},
    {"incus", Place::container, {"exec", "start", "launch"}},
    {"rsh", Place::host, {}},
    {"ssh", Place::host, {}},
    {"pdsh", Place::host, {}},
    {"clush", Place::host, {}},
    {"sbatch", Place::job, {}},
    {"bsub", Place::job, {}},
    {"qsub", Place::job, {}},
    {"flux", Place::job, {"submit", "batch", "bulksubmit"}},
    {"condor_submit", Place::job, {}},
    {"kubectl", Place::job, {"run", "exec", "create", "apply"}},
    {"oc", Place::job, {"run", "exec", "create", "apply"}},
    {"ray", Place::job, {"job", "submit"}},
    {"systemd-run", Place::job, {}},
};

std::string name_of(const std::string& path) { return path.substr(path.rfind('/') + 1); }

bool is_option(const std::string& word) { return word.starts_with("-") && word.size() > 1; }

bool any_contains(Words words, std::string_view part) {
  return std::ranges::any_of(
      words, [&](const std::string& word) { return word.find(part) != std::string::npos; });
}

/// The words without an interpreter of the script that they name: /bin/sh /usr/bin/docker run.
Words without_interpreter(Words words) {
  if (words.size() < 2 || words[1].find('/') == std::string::npos) return words;
  const std::string name = name_of(words[0]);
  const bool interpreter =
      name == "sh" || name == "bash" || name == "dash" || name.starts_with("python");
  return interpreter ? words.subspan(1) : words;
}

/// The host and what is run on it, of the words after `ssh`; empty if it runs nothing.
struct Remote {
  std::string host;
  Words command;
};
std::optional<Remote> remote_of(Words words) {
  // Options of OpenSSH that have a value, and those with which nothing is run.
  constexpr std::string_view kWithValue = "BbcDEeFIiJLlmOopQRSWw", kRunsNothing = "NOGQVW";
  for (std::size_t at = 0; at < words.size(); ++at) {
    const std::string& word = words[at];
    if (!is_option(word)) return Remote{word, words.subspan(at + 1)};
    for (std::size_t letter = 1; letter < word.size(); ++letter) {
      if (kRunsNothing.find(word[letter]) != std::string_view::npos) return std::nullopt;
      if (kWithValue.find(word[letter]) == std::string_view::npos) continue;
      at += letter + 1 == word.size() ? 1 : 0;
      break;
    }
  }
  return std::nullopt;
}

/// What git, rsync and the copying programs of OpenSSH run on the other side.
bool moves_files(Words command) {
  constexpr std::string_view kParts[] = {"git-upload-pack", "git-receive-pack", "rsync --server",
                                         "sftp"};
  std::string line;
  for (const std::string& word : command) line += (line.empty() ? "" : " ") + word;
  return line.starts_with("scp -") || std::ranges::any_of(kParts, [&](std::string_view part) {
           return line.find(part) != std::string::npos;
         });
}

/// srun hands everything on unless it is told otherwise, also to containers of its own.
std::optional<StartsElsewhere> srun_of(Words words) {
  for (const std::string& word : words) {
    if (word.starts_with("--container-image"))
      return StartsElsewhere{.by = "srun " + word, .place = Place::container};
    constexpr std::string_view kExport = "--export=";
    if (word.starts_with(kExport) && word.find("ALL") == std::string::npos)
      return StartsElsewhere{.by = "srun " + word, .place = Place::job};
    if (!word.starts_with("-") && word.find('/') != std::string::npos) break;  // its program
  }
  return std::nullopt;
}

}  // namespace

std::optional<StartsElsewhere> starts_elsewhere(const std::vector<std::string>& all) {
  const Words words = without_interpreter(all);
  if (words.empty()) return std::nullopt;
  const std::string program = name_of(words[0]);
  const Words rest = words.subspan(1);
  std::optional<StartsElsewhere> found;
  if (program == "srun") {
    found = srun_of(rest);
  } else {
    const auto* const row = std::ranges::find(kRows, program, &Row::program);
    if (row == std::end(kRows)) return std::nullopt;
    found = {.by = program, .place = row->place};
    if (!row->verbs.front().empty()) {
      const auto verb = std::ranges::find_if(rest, [&](const std::string& word) {
        return std::ranges::find(row->verbs, word) != row->verbs.end();
      });
      if (verb == rest.end()) return std::nullopt;
      found->by += " " + *verb;
    } else if (row->place == Place::host) {
      const std::optional<Remote> remote = remote_of(rest);
      if (!remote || moves_files(remote->command)) return std::nullopt;
      found->where = remote->host;
      found->by_a_launcher = any_contains(remote->command, "orted") ||
                             any_contains(remote->command, "prted") ||
                             any_contains(remote->command, "hydra_pmi_proxy");
    }
    if (program == "systemd-run" && any_contains(rest, "--scope")) return std::nullopt;
  }
  if (found) found->hands_probe_on = any_contains(rest, "CUDA_INJECTION64_PATH");
  return found;
}

std::vector<StartsElsewhere> without_evidence(const std::vector<StartsElsewhere>& commands,
                                              const EvidenceElsewhere& evidence) {
  std::set<std::string> hosts;
  const auto cannot_be_watched = [](const StartsElsewhere& one) {
    return one.place == Place::container && !one.hands_probe_on;
  };
  std::size_t others = 0;
  for (const StartsElsewhere& one : commands) {
    if (one.place == Place::host)
      hosts.insert(one.where);
    else
      others += !cannot_be_watched(one);
  }
  const bool all_hosts = hosts.size() <= evidence.hosts;
  const std::size_t left = all_hosts ? evidence.hosts - hosts.size() : 0;
  const bool all_others = others <= left + evidence.processes;
  std::vector<StartsElsewhere> without;
  for (const StartsElsewhere& one : commands)
    if (cannot_be_watched(one) || !(one.place == Place::host ? all_hosts : all_others))
      without.push_back(one);
  return without;
}

std::string how_to_watch(const StartsElsewhere& command, const std::string& container) {
  switch (command.place) {
    case Place::container:
      return "hand the probe on, as in `docker run " + container +
             " IMAGE COMMAND`, or start graphproof watch inside the container";
    case Place::host:
      return "hand the variables on, as in `ssh HOST env CUDA_INJECTION64_PATH=...` with the lines "
             "of graphproof watch --attach-only, with the folder of the run where both hosts see "
             "it (--run-dir)";
    case Place::job:
      return command.by.starts_with("srun")
                 ? "hand the variables on with --export=ALL"
                 : "write graphproof watch -- before the command in the job itself";
  }
  return "";
}

}  // namespace graphproof::launcher
