#include "reports/record/watched/nccl_log.h"

namespace graphproof::record {
namespace {

constexpr std::size_t kMostNotes = 16, kLongestNote = 300;

bool has(std::string_view line, std::string_view part) {
  return line.find(part) != std::string_view::npos;
}

}  // namespace

NcclRegistrationLine registrations_in(std::string_view log, std::string file) {
  NcclRegistrationLine found{.file = std::move(file)};
  while (!log.empty()) {
    const std::size_t end = log.find('\n');
    const std::string_view line = log.substr(0, end);
    log.remove_prefix(end == std::string_view::npos ? log.size() : end + 1);
    if (has(line, "deregister")) continue;
    found.registered += has(line, "register comm ");
    found.ipc += has(line, "IPC register buffer") || has(line, "IPC registering buffer");
    found.nvls += has(line, "registered NVLS sendbuff");
    found.network += has(line, "NET register userbuff") && !has(line, "failed");
    const bool skipped = has(line, "Skipping graph registration");
    found.graph_skipped += skipped;
    const bool failed = has(line, "failed to ") && has(line, " register");
    if ((skipped || failed || has(line, "Skipping registration")) &&
        found.notes.size() < kMostNotes)
      found.notes.emplace_back(line.substr(0, kLongestNote));
  }
  return found;
}

}  // namespace graphproof::record
