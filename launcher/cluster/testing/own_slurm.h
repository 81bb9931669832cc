// A Slurm of the test's own: real slurmctld and slurmd from the distribution's packages, several
// nodes on this host, GPUs declared as GRES, no munge, no systemd, nothing outside its folder. Up
// in about 0.2 s.
//
// What its configuration has to respect, each seen with Slurm 22.05: TmpFS and the spool folder
// need %n where slurmds share a host ("Cannot create directory spmix_appdir"); job ids begin at 1
// again, so spool and state go together; a GRES file must be a device, or jobs get no
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

class OwnSlurm {
 public:
  struct Size {
    int nodes = 3, gpus = 2, cpus = 8;
    bool networks =
        false;  // every node in a network of its own, whose link can be cut: see node_networks.h
  };

  /// Why there is none on this machine: a missing program or a machine that lets it run nowhere. ""
  /// where there is one.
  static std::string missing();

  /// Starts it and waits until every node is idle, 20 s at most. Throws std::runtime_error with the
  /// daemons' logs.
  explicit OwnSlurm(Size size);
  /// Ends the daemons and every job.
  ~OwnSlurm();
  OwnSlurm(const OwnSlurm&) = delete;
  OwnSlurm& operator=(const OwnSlurm&) = delete;

  /// This process's environment with the cluster's SLURM_CONF.
  launcher::Environment environment() const;
  /// Runs one of Slurm's commands to its end, 20 s at most; its output. Throws std::runtime_error
  /// when it fails.
  std::string command(std::vector<std::string> arguments) const;

  /// "JOBID STATE" of every job that is not over, one a line.
  std::string queue() const { return command({"squeue", "-h", "-o", "%i %T"}); }
  /// True when no job is left within `limit`.
  bool empty_within(std::chrono::milliseconds limit) const;

  void kill_controller();
  void start_controller();
  /// SIGKILL to the daemon of a node (n1, n2, ...): for Slurm the node is down, 10 s later.
  void kill_node(const std::string& name);
  /// Starts what was killed.
  void repair();
  /// No packet reaches the node, or leaves it. REQUIRES: networks.
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
