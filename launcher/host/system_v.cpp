#include "launcher/host/system_v.h"

#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <sstream>
#include <string_view>

#include "launcher/host/processes.h"

namespace graphproof::launcher {
namespace {

/// The columns of /proc/sysvipc/FILE, found by its header; -1 where a kind has no such column.
struct Table {
  SystemV::Kind kind;
  const char* file;
  std::string_view name;
  int id, uid, size, attached;
  std::array<int, 2> pids;
};
constexpr std::array<Table, 3> kTables = {{
    {SystemV::Kind::semaphores, "/proc/sysvipc/sem", "semaphores", 1, 4, 3, -1, {-1, -1}},
    {SystemV::Kind::shared_memory, "/proc/sysvipc/shm", "shared memory", 1, 7, 3, 6, {4, 5}},
    {SystemV::Kind::messages, "/proc/sysvipc/msg", "messages", 1, 7, 3, -1, {5, 6}},
}};

// A set may have thousands of semaphores. A process that used one of the first has used the set.
constexpr long kSemaphoresAsked = 16;

}  // namespace

std::string SystemV::name() const {
  const auto table = std::find_if(kTables.begin(), kTables.end(),
                                  [this](const Table& one) { return one.kind == kind; });
  return "System V " + std::string(table->name) + " " + std::to_string(id);
}

std::vector<SystemV> own_system_v() {
  std::vector<SystemV> found;
  for (const Table& table : kTables) {
    std::istringstream lines(proc_text(table.file));
    std::string header;
    std::getline(lines, header);
    for (std::string line; std::getline(lines, line);) {
      std::vector<long> columns;
      std::istringstream words(line);
      for (long word; words >> word;) columns.push_back(word);
      if (columns.size() < 8 ||
          columns[static_cast<std::size_t>(table.uid)] != static_cast<long>(getuid()))
        continue;
      SystemV object{.kind = table.kind,
                     .id = static_cast<int>(columns[static_cast<std::size_t>(table.id)]),
                     .pids = {}};
      object.attached =
          table.attached >= 0 && columns[static_cast<std::size_t>(table.attached)] > 0;
      for (const int column : table.pids)
        if (column >= 0)
          object.pids.push_back(static_cast<int>(columns[static_cast<std::size_t>(column)]));
      if (table.kind == SystemV::Kind::semaphores)
        for (long number = 0;
             number < std::min(columns[static_cast<std::size_t>(table.size)], kSemaphoresAsked);
             ++number)
          object.pids.push_back(semctl(object.id, static_cast<int>(number), GETPID));
      found.push_back(std::move(object));
    }
  }
  return found;
}

bool remove(const SystemV& object) {
  switch (object.kind) {
    case SystemV::Kind::semaphores:
      return semctl(object.id, 0, IPC_RMID) == 0;
    case SystemV::Kind::shared_memory:
      return shmctl(object.id, IPC_RMID, nullptr) == 0;
    case SystemV::Kind::messages:
      return msgctl(object.id, IPC_RMID, nullptr) == 0;
  }
  return false;
}

}  // namespace graphproof::launcher
