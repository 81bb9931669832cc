// Which commands start programs where the probe does not follow, and when evidence came from there.
#include "launcher/watch/started_elsewhere.h"

#include <gtest/gtest.h>

#include <sstream>

namespace graphproof::launcher {
namespace {

using Place = StartsElsewhere::Place;

std::vector<std::string> words(const std::string& line) {
  std::istringstream in(line);
  std::vector<std::string> list;
  for (std::string word; in >> word;) list.push_back(word);
  return list;
}

struct CommandRow {
  const char* line;
  const char* by;  // empty: it starts nothing elsewhere
  Place place = Place::container;
  const char* where = "";
};

TEST(StartsElsewhere, FollowsFromTheWordsOfTheCommand) {
  const CommandRow rows[] = {
      {"docker run --gpus all image python3 train.py", "docker run"},
      {"/usr/bin/docker --context far exec box nvidia-smi", "docker exec"},
      {"/bin/sh /opt/bin/docker run image", "docker run"},
      {"docker compose -f a.yaml up", "docker compose"},
      {"docker ps -a", ""},
      {"docker pull image", ""},
      {"podman run image python3 train.py", ""},
      {"apptainer exec --nv image.sif python3 train.py", ""},
      {"ssh -p 22 -o StrictHostKeyChecking=no user@node2 python3 train.py", "ssh", Place::host,
       "user@node2"},
      {"ssh node2", "ssh", Place::host, "node2"},
      {"ssh -N -L 80:localhost:80 node2", ""},
      {"ssh -vNp 22 node2", ""},
      {"ssh git@github.com git-upload-pack 'a/b.git'", ""},
      {"ssh node2 rsync --server -e . /data", ""},
      {"ssh node2 scp -t /data", ""},
      {"ssh", ""},
      {"srun -N2 python3 train.py", ""},
      {"srun --export=ALL,A=1 -N2 python3 train.py", ""},
      {"srun --export=NONE -N2 python3 train.py", "srun --export=NONE", Place::job},
      {"srun -N2 --container-image=image python3 train.py", "srun --container-image=image"},
      {"sbatch --wait job.sh", "sbatch", Place::job},
      {"kubectl get pods", ""},
      {"kubectl apply -f job.yaml", "kubectl apply", Place::job},
      {"/usr/bin/python3 /usr/local/bin/ray job submit -- python3 train.py", "ray job", Place::job},
      {"systemd-run --user python3 train.py", "systemd-run", Place::job},
      {"systemd-run --user --scope python3 train.py", ""},
      {"python3 train.py docker run", ""},
      {"sh -c true", ""},
      {"", ""},
  };
  for (const CommandRow& row : rows) {
    const auto found = starts_elsewhere(words(row.line));
    EXPECT_EQ(found ? found->by : "", row.by) << row.line;
    if (!found) continue;
    EXPECT_EQ(found->place, row.place) << row.line;
    EXPECT_EQ(found->where, row.where) << row.line;
    EXPECT_FALSE(found->hands_probe_on) << row.line;
    EXPECT_FALSE(found->by_a_launcher) << row.line;
    EXPECT_FALSE(how_to_watch(*found, "-e A").empty()) << row.line;
  }
  EXPECT_TRUE(starts_elsewhere(words("docker run -e CUDA_INJECTION64_PATH i"))->hands_probe_on);
  EXPECT_TRUE(starts_elsewhere(words("ssh node2 PATH=/opt orted -mca a b"))->by_a_launcher);
}

struct EvidenceRow {
  const char* name;
  std::vector<std::string> lines;
  EvidenceElsewhere evidence;
  std::size_t without;
};

TEST(StartsElsewhere, IsCoveredByEvidenceThatNoDescendantLeft) {
  const char* const kWatchedBox = "docker run -e CUDA_INJECTION64_PATH image";
  const EvidenceRow rows[] = {
      {"nothing came from the container", {kWatchedBox}, {}, 1},
      {"a process with the container's host name", {kWatchedBox}, {.hosts = 1}, 0},
      {"a process with this host's name", {kWatchedBox}, {.processes = 1}, 0},
      {"two containers, and one left evidence", {kWatchedBox, kWatchedBox}, {.hosts = 1}, 2},
      {"the container cannot have the probe", {"docker run image"}, {.hosts = 1}, 1},
      {"nothing came from the other host", {"ssh node2 orted"}, {}, 1},
      {"evidence of this host is not that of the other", {"ssh node2 orted"}, {.processes = 1}, 1},
      {"the other host left evidence", {"ssh node2 orted"}, {.hosts = 1}, 0},
      {"one of two hosts", {"ssh node2 orted", "ssh node3 orted"}, {.hosts = 1}, 2},
      {"one host by two commands", {"ssh node2 a", "ssh node2 b"}, {.hosts = 1}, 0},
      {"a host, and nothing of the container", {"ssh node2 a", kWatchedBox}, {.hosts = 1}, 1},
      {"a host and the container", {"ssh node2 a", kWatchedBox}, {.hosts = 1, .processes = 1}, 0},
      {"a job", {"sbatch job.sh"}, {}, 1},
      {"a job on another host", {"sbatch job.sh"}, {.hosts = 1}, 0},
      {"a job on this host", {"sbatch job.sh"}, {.processes = 1}, 0},
      {"two jobs, and one left evidence", {"sbatch a.sh", "sbatch b.sh"}, {.processes = 1}, 2},
  };
  for (const EvidenceRow& row : rows) {
    std::vector<StartsElsewhere> commands;
    for (const std::string& line : row.lines) commands.push_back(*starts_elsewhere(words(line)));
    EXPECT_EQ(without_evidence(commands, row.evidence).size(), row.without) << row.name;
  }
}

}  // namespace
}  // namespace graphproof::launcher
