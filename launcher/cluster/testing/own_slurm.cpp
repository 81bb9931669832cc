#include "launcher/cluster/testing/own_slurm.h"

#include <netinet/in.h>
#include <pwd.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <thread>

#include "launcher/backend/local_command.h"
#include "launcher/host/processes.h"
#include "reports/record/text/file.h"

namespace graphproof::cluster {
namespace {

namespace fs = std::filesystem;
using launcher::Command;
using launcher::Environment;
using launcher::Output;

// It starts in 0.2 s on an idle machine; a busy one may take many times as long.
constexpr std::chrono::milliseconds kUp{20000}, kDown{10000}, kLook{20};
constexpr std::int64_t kCommand_ms = 20000;

/// Any character devices serve as GPUs, because they are not opened.
constexpr std::array<const char*, 6> kDevices = {"/dev/null",   "/dev/zero",    "/dev/full",
                                                 "/dev/random", "/dev/urandom", "/dev/tty"};

std::string user() {
  const passwd* entry = getpwuid(getuid());
  return entry != nullptr ? entry->pw_name : std::to_string(getuid());
}

std::string host() {
  char name[256] = "";
  gethostname(name, sizeof name - 1);
  return std::string(name).substr(0, std::string(name).find('.'));
}

/// The first of `count` free ports in a row, outside the range from which the kernel takes ports
/// for other sockets.
int free_ports(int count) {
  for (int first = 20000 + getpid() % 200 * 40; first < 30000; first += 40) {
    int port = first;
    for (; port < first + count; ++port) {
      const int probe = socket(AF_INET, SOCK_STREAM, 0);
      sockaddr_in address{};
      address.sin_family = AF_INET;
      address.sin_addr.s_addr = htonl(INADDR_ANY);
      address.sin_port = htons(static_cast<std::uint16_t>(port));
      const bool free = bind(probe, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
      close(probe);
      if (!free) break;
    }
    if (port == first + count) return first;
  }
  throw std::runtime_error("no " + std::to_string(count) +
                           " free ports in a row between 20000 and 30000");
}

/// slurmd and slurmctld are in /usr/sbin, which may be missing in a user's PATH.
Environment with_sbin(Environment environment) {
  environment["PATH"] += ":/usr/sbin:/sbin";
  return environment;
}

bool wait_until(std::chrono::milliseconds limit, const auto& what) {
  for (const auto end = std::chrono::steady_clock::now() + limit;
       std::chrono::steady_clock::now() < end; std::this_thread::sleep_for(kLook))
    if (what()) return true;
  return what();
}

}  // namespace

std::string OwnSlurm::missing() {
  const Environment environment = with_sbin(launcher::own_environment());
  for (const char* program :
       {"slurmctld", "slurmd", "salloc", "srun", "sbatch", "squeue", "sinfo", "scancel"})
    if (launcher::find_program(program, environment).empty())
      return std::string("this machine has no ") + program;
  return {};
}

OwnSlurm::OwnSlurm(Size size)
    : size_(size),
      networks_(size.networks ? std::make_unique<NodeNetworks>(size.nodes) : nullptr),
      port_(free_ports(size.nodes + 1)) {
  for (const char* folder : {"etc", "state", "log"}) fs::create_directories(top_ / folder);
  std::ofstream conf(top_ / "etc/slurm.conf");
  conf << "ClusterName=graphproof\nSlurmctldHost=" << host() << "("
       << (networks_ ? networks_->host_address() : "127.0.0.1") << ")\nSlurmUser=" << user()
       << "\nSlurmdUser=" << user()
       << "\nAuthType=auth/none\nCredType=cred/none\nSlurmctldPort=" << port_
       << "\nStateSaveLocation=" << (top_ / "state").string()
       << "\nSlurmdSpoolDir=" << (top_ / "spool-%n").string()
       << "\nTmpFS=" << (top_ / "tmp-%n").string()
       << "\nSlurmctldPidFile=" << (top_ / "slurmctld.pid").string()
       << "\nSlurmdPidFile=" << (top_ / "slurmd-%n.pid").string()
       << "\nSlurmctldLogFile=" << (top_ / "log/slurmctld.log").string()
       << "\nSlurmdLogFile=" << (top_ / "log/slurmd-%n.log").string()
       << "\nProctrackType=proctrack/linuxproc\nTaskPlugin=task/"
          "none\nJobAcctGatherType=jobacct_gather/none\n"
          "AccountingStorageType=accounting_storage/"
          "none\nReturnToService=2\nSlurmdTimeout=10\nKillWait=5\nMaxArraySize=1001\n"
          "SelectType=select/cons_tres\nSelectTypeParameters=CR_CPU\n"
          "SchedulerParameters=bf_interval=1,sched_min_interval=0,batch_sched_delay=0\nGresTypes="
          "gpu\nSlurmdParameters=config_overrides\n";
  for (int node = 1; node <= size_.nodes; ++node) {
    const std::string name = "n" + std::to_string(node);
    for (const char* folder : {"spool-", "tmp-"}) fs::create_directories(top_ / (folder + name));
    conf << "NodeName=" << name << " NodeHostname=" << host()
         << " NodeAddr=" << (networks_ ? networks_->address(node) : "127.0.0.1")
         << " Port=" << port_ + node << " CPUs=" << size_.cpus
         << " RealMemory=4000 Gres=gpu:h200:" << size_.gpus << " Feature=hopper State=UNKNOWN\n";
  }
  conf << "PartitionName=gpu Nodes=n[1-" << size_.nodes << "] Default=YES MaxTime=60 State=UP\n";
  std::ofstream gres(top_ / "etc/gres.conf");
  for (int gpu = 0; gpu < size_.gpus; ++gpu)
    gres << "Name=gpu Type=h200 File=" << kDevices.at(static_cast<std::size_t>(gpu))
         << " Flags=nvidia_gpu_env\n";
  std::ofstream(top_ / "etc/cgroup.conf") << "CgroupPlugin=cgroup/v1\nCgroupAutomount=no\n";
  conf.close();
  gres.close();
  start_controller();
  for (int node = 1; node <= size_.nodes; ++node) start_node(node);
  if (!wait_until(kUp, [&] { return up(); })) {
    const std::string text = logs();
    for (int node = 1; node <= size_.nodes; ++node)
      end("slurmd-n" + std::to_string(node) + ".pid", SIGKILL);
    end("slurmctld.pid", SIGKILL);
    throw std::runtime_error("Slurm's nodes did not come up:\n" + text);
  }
}

OwnSlurm::~OwnSlurm() {
  // Only jobs that still run are cancelled: a job that ends by itself needs no controller, which
  // may be dead.
  try {
    launcher::run_to_end({{"scancel", "-u", user()}, environment()}, 5000);
  } catch (const std::exception&) {
    // The daemons then end with their jobs.
  }
  for (int node = 1; node <= size_.nodes; ++node)
    end("slurmd-n" + std::to_string(node) + ".pid", SIGTERM);
  end("slurmctld.pid", SIGTERM);
}

Environment OwnSlurm::environment() const {
  Environment environment = with_sbin(launcher::without_outer_starter(launcher::own_environment()));
  environment["SLURM_CONF"] = top_ / "etc/slurm.conf";
  return environment;
}

std::string OwnSlurm::command(std::vector<std::string> arguments) const {
  const std::string name = arguments.front();
  const Output output = launcher::run_to_end({std::move(arguments), environment()}, kCommand_ms);
  if (output.timed_out || output.exit != launcher::Exit{})
    throw std::runtime_error(name + " failed: " + output.out + output.error + logs());
  return output.out;
}

bool OwnSlurm::up() const {
  const Output output =
      launcher::run_to_end({{"sinfo", "-h", "-t", "idle", "-o", "%D"}, environment()}, kCommand_ms);
  std::istringstream count(output.out);
  int idle = 0;
  count >> idle;
  return idle == size_.nodes;
}

bool OwnSlurm::empty_within(std::chrono::milliseconds limit) const {
  return wait_until(limit, [&] { return queue().empty(); });
}

void OwnSlurm::start(const std::vector<std::string>& arguments) const {
  const Output output = launcher::run_to_end({arguments, environment()}, kCommand_ms);
  if (output.timed_out || output.exit != launcher::Exit{})
    throw std::runtime_error(arguments.front() + " did not start: " + output.out + output.error +
                             logs());
}

void OwnSlurm::start_controller() {
  start(fs::exists(top_ / "state/last_config_lite") ? std::vector<std::string>{"slurmctld"}
                                                    : std::vector<std::string>{"slurmctld", "-i"});
}
void OwnSlurm::start_node(int number) const {
  std::vector<std::string> words =
      networks_ ? networks_->inside(number) : std::vector<std::string>();
  words.insert(words.end(), {"slurmd", "-N", "n" + std::to_string(number)});
  start(words);
}

bool OwnSlurm::runs(const std::string& pid_file) const {
  const auto daemon = pid(pid_file);
  return daemon && launcher::running_process(*daemon);
}

void OwnSlurm::repair() {
  if (!runs("slurmctld.pid")) start_controller();
  for (int node = 1; node <= size_.nodes; ++node)
    if (!runs("slurmd-n" + std::to_string(node) + ".pid")) start_node(node);
}

void OwnSlurm::kill_controller() { end("slurmctld.pid", SIGKILL); }
void OwnSlurm::kill_node(const std::string& name) { end("slurmd-" + name + ".pid", SIGKILL); }

std::optional<int> OwnSlurm::pid(const std::string& file) const {
  std::ifstream in(top_ / file);
  int pid = 0;
  return in >> pid && pid > 1 ? std::optional(pid) : std::nullopt;
}

void OwnSlurm::end(const std::string& pid_file, int signal) const {
  const auto daemon = pid(pid_file);
  if (!daemon) return;
  kill(*daemon, signal);
  // A daemon is a child of init, which may be slow to collect it: a zombie counts as gone.
  if (!wait_until(kDown, [&] { return !launcher::running_process(*daemon); }))
    kill(*daemon, SIGKILL);
}

std::string OwnSlurm::logs() const {
  std::string text;
  std::error_code absent;
  for (const auto& entry : fs::directory_iterator(top_ / "log", absent)) {
    std::string log = record::read_text(entry.path());
    if (log.size() > 2000) log = "..." + log.substr(log.size() - 2000);
    text += "\n" + entry.path().filename().string() + ":\n" + log;
  }
  return text;
}

}  // namespace graphproof::cluster
