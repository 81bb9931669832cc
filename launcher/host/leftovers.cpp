#include "launcher/host/leftovers.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <system_error>
#include <utility>

#include "reports/record/job/rank_orders.h"

namespace graphproof::launcher {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kShm = "/dev/shm/";

/// mpirun and its runtime keep these in the node folder for as long as the batch runs. The FIFO and
/// the pipes of flight_data.h are made by this project.
constexpr std::array<std::string_view, 6> kRuntimeFiles = {"heartbeat", "flight-", "ompi.",
                                                           "openmpi-",  "pmix",    "prte"};

bool is_runtime_file(const std::string& name) {
  return std::any_of(kRuntimeFiles.begin(), kRuntimeFiles.end(),
                     [&](std::string_view prefix) { return name.starts_with(prefix); });
}

/// The entries of this user in /dev/shm that are not the private folder of a launcher.
std::set<std::string> own_shm() {
  std::set<std::string> names;
  std::error_code absent;
  for (const auto& entry : fs::directory_iterator("/dev/shm", absent)) {
    struct stat facts;
    if (lstat(entry.path().c_str(), &facts) == 0 && facts.st_uid == getuid() &&
        !S_ISDIR(facts.st_mode))
      names.insert(entry.path());
  }
  return names;
}

/// True if a run of digits in `name` is one of `pids`: NCCL, PyTorch and others put their process
/// id into the name.
bool names_one_of(const std::string& name, const std::set<int>& pids) {
  for (std::size_t at = name.find_first_of("0123456789"); at != name.npos;) {
    const std::size_t end = std::min(name.find_first_not_of("0123456789", at), name.size());
    if (end - at < 10 && pids.contains(std::atoi(name.substr(at, end - at).c_str()))) return true;
    at = name.find_first_of("0123456789", end);
  }
  return false;
}

template <class Value>
void remove_all_of(std::vector<Value>& values, const std::vector<Value>& others) {
  std::erase_if(values, [&](const Value& value) {
    return std::find(others.begin(), others.end(), value) != others.end();
  });
}

template <class Value>
void append(std::vector<Value>& values, const std::vector<Value>& others) {
  values.insert(values.end(), others.begin(), others.end());
}

}  // namespace

std::vector<std::string> named(const std::vector<Process>& processes) {
  std::vector<std::string> names;
  for (const Process& process : processes)
    names.push_back(std::to_string(process.pid) + " " + process.command);
  return names;
}

Leftovers::Leftovers(const ProcessTable& processes, const PrivateFolder& node_folder,
                     const PrivateFolder& shm_folder, bool ports_between_cases)
    : processes_(processes),
      node_folder_(node_folder),
      shm_folder_(shm_folder),
      ports_between_cases_(ports_between_cases),
      looks_before_(processes.looks()),
      shm_before_(own_shm()) {
  for (const SystemV& object : own_system_v()) system_v_before_.insert(object.name());
}

void Leftovers::started(int session, std::string mark) {
  session_ = session;
  mark_ = std::move(mark);
}

void Leftovers::look(const std::vector<int>& ranks) {
  ranks_.insert(ranks.begin(), ranks.end());
  bool unknown = false;
  for (const std::string& name : own_shm()) {
    if (!is_new(name) || shm_ours_.contains(name)) continue;
    if (names_one_of(name.substr(kShm.size()), ranks_))
      shm_ours_.insert(name);
    else
      unknown = true;
  }
  // The memory maps of a rank are long. They are read only while a new segment has no owner yet.
  if (!unknown) return;
  for (const int rank : ranks)
    for (const std::string& name : shm_in_use(rank))
      if (is_new(name) && fs::path(name).parent_path() == fs::path(kShm).parent_path())
        shm_ours_.insert(name);
}

std::vector<SystemV> Leftovers::forgotten_system_v(const std::vector<int>& living) const {
  std::vector<SystemV> found = own_system_v();
  const auto used_by = [](const SystemV& object, const auto& pids) {
    return std::any_of(object.pids.begin(), object.pids.end(), [&](int pid) {
      return std::find(pids.begin(), pids.end(), pid) != pids.end();
    });
  };
  std::erase_if(found, [&](const SystemV& object) {
    return system_v_before_.contains(object.name()) || !used_by(object, ranks_) ||
           used_by(object, living) || object.attached;
  });
  return found;
}

void Leftovers::look_at_ports(const std::vector<int>& pids) {
  listeners_seen_.merge(listeners_of(pids));
}

record::Cleanup Leftovers::between_cases(const std::vector<int>& ranks) {
  look(ranks);
  record::Cleanup found;
  std::vector<Process> others = processes_.of(session_, mark_, looks_before_);
  // These are mpirun, what it started, and ranks that another program started for it.
  std::erase_if(others, [&](const Process& process) {
    return process.pid == session_ || process.parent == session_ ||
           std::find(ranks.begin(), ranks.end(), process.pid) != ranks.end();
  });
  found.processes = named(others);
  for (const std::string& name : node_folder_.content())
    if (!is_runtime_file(name)) found.files.push_back(name);
  // A segment that a rank still uses may belong to a cached communicator. One that no process uses
  // was forgotten.
  std::set<std::string> used;
  bool any = false;
  for (const std::string& name : shm_ours_) any = any || access(name.c_str(), F_OK) == 0;
  if (any)
    for (const int rank : ranks)
      for (const std::string& name : shm_in_use(rank)) used.insert(name);
  for (const std::string& name : shm_ours_)
    if (!used.contains(name) && access(name.c_str(), F_OK) == 0) found.shm.push_back(name);
  for (const SystemV& object : forgotten_system_v(ranks)) found.shm.push_back(object.name());
  if (ports_between_cases_)
    for (const auto& [socket, port] : listeners_of(ranks)) found.ports.push_back(port);
  leave_out_reported(found);
  return found;
}

record::Cleanup Leftovers::still_there(const record::Cleanup& found) const {
  record::Cleanup still = found;
  const std::vector<std::string> processes = named(processes_.of(session_, mark_, looks_before_)),
                                 files = node_folder_.content();
  std::set<int> ports;
  for (const auto& [socket, port] : all_listeners()) ports.insert(port);
  const auto among = [](const auto& values, const auto& value) {
    return std::find(values.begin(), values.end(), value) != values.end();
  };
  std::erase_if(still.processes,
                [&](const std::string& process) { return !among(processes, process); });
  std::erase_if(still.files, [&](const std::string& file) { return !among(files, file); });
  std::set<std::string> system_v;
  for (const SystemV& object : own_system_v()) system_v.insert(object.name());
  std::erase_if(still.shm, [&](const std::string& name) {
    return access(name.c_str(), F_OK) != 0 && !system_v.contains(name);
  });
  std::erase_if(still.ports, [&](int port) { return !ports.contains(port); });
  return still;
}

void Leftovers::report(const record::Cleanup& found) {
  append(reported_.processes, found.processes);
  append(reported_.files, found.files);
  append(reported_.shm, found.shm);
  append(reported_.ports, found.ports);
}

void Leftovers::leave_out_reported(record::Cleanup& found) const {
  remove_all_of(found.processes, reported_.processes);
  remove_all_of(found.files, reported_.files);
  remove_all_of(found.shm, reported_.shm);
  remove_all_of(found.ports, reported_.ports);
}

record::Cleanup Leftovers::after_batch(bool remove_first) {
  record::Cleanup found;
  look({});
  const std::vector<SystemV> system_v = forgotten_system_v({});
  if (remove_first)
    for (const std::string& name : shm_ours_) unlink(name.c_str());
  for (const std::string& name : shm_ours_)
    if (access(name.c_str(), F_OK) == 0) found.shm.push_back(name);
  for (const std::string& name : shm_ours_) unlink(name.c_str());
  for (const SystemV& object : system_v)
    if (const bool removed = remove(object); !remove_first || !removed)
      found.shm.push_back(object.name());
  for (const auto& [socket, port] : all_listeners())
    if (listeners_seen_.contains(socket)) found.ports.push_back(port);
  if (!remove_first) {
    for (const std::string& name : shm_folder_.content())
      if (!name.starts_with(record::kGoFile) && name != record::kStopFile)
        found.shm.push_back(name);
    for (const std::string& name : node_folder_.content())
      if (name != "heartbeat" && !name.starts_with("flight-")) found.files.push_back(name);
  }
  return found;
}

}  // namespace graphproof::launcher
