// A Slurm of the test's own: real slurmctld and slurmd from the distribution's packages, several
// nodes on this host, GPUs declared as GRES, no munge, no systemd, nothing outside its folder. It
// starts in about 0.2 s.
//
// Its configuration depends on facts that were seen with Slurm 22.05: TmpFS and the spool folder
// need %n where slurmds share a host ("Cannot create directory spmix_appdir"); job ids begin at 1
// again, so spool and state are removed together; a GRES file must be a device, or jobs get no
// CUDA_VISIBLE_DEVICES; CgroupPlugin=disabled does not exist before 23.02.
#pragma once

#include <chrono>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "launcher/cluster/testing/node_networks.h"
#include "launcher/host/child.h"
#include "reports/record/testing/scratch_folder.h"

namespace graphproof::cluster {

/// The cluster of one test; it ends with it.
class OwnSlurm {
 public:
  /// The nodes of the cluster, which are alike.
  struct Size {
    int nodes = 3, gpus = 2, cpus = 8;
    bool networks =
        false;  // every node has a network of its own, whose link can be cut: see node_networks.h
  };

  /// Why this machine can have none: a missing program, or no place where they may run. "" where it
  /// can.
  static std::string missing();

  /// Starts the daemons and waits until every node is idle, 20 s at most. Throws std::runtime_error
  /// with their logs.
  explicit OwnSlurm(Size size);
  /// Ends the daemons and every job.
  ~OwnSlurm();
  OwnSlurm(const OwnSlurm&) = delete;
  OwnSlurm& operator=(const OwnSlurm&) = delete;

  /// The environment of this process with the cluster's SLURM_CONF.
  launcher::Environment environment() const;
  /// Runs a Slurm command to its end, 20 s at most, and returns its output. Throws
  /// std::runtime_error when it fails.
  std::string command(std::vector<std::string> arguments) const;

  /// A line "JOBID STATE" for every job that is not over.
  std::string queue() const { return command({"squeue", "-h", "-o", "%i %T"}); }
  /// True when no job is left within `limit`.
  bool empty_within(std::chrono::milliseconds limit) const;

  void kill_controller();
  void start_controller();
  /// Sends SIGKILL to the daemon of a node (n1, n2, ...): Slurm takes the node for down 10 s later.
  void kill_node(const std::string& name);
  /// Starts the daemon that was killed.
  void repair();
  /// Cuts the node's link: no packet reaches the node, or leaves it. REQUIRES: networks.
  void cut(const std::string& name) const { networks_->link(number_of(name), false); }
  void mend(const std::string& name) const { networks_->link(number_of(name), true); }

 private:
  std::optional<int> pid(const std::string& file) const;
  void end(const std::string& pid_file, int signal) const;
  void start(const std::vector<std::string>& arguments) const;
  void start_node(int number) const;
  static int number_of(const std::string& name) { return std::stoi(name.substr(1)); }
  bool runs(const std::string& pid_file) const;
  bool up() const;
  std::string logs() const;

  const record::ScratchFolder scratch_{"/tmp"};
  const std::filesystem::path top_ = scratch_.path();
  const Size size_;
  const std::unique_ptr<NodeNetworks> networks_;
  int port_ = 0;
};

}  // namespace graphproof::cluster
