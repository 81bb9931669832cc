#include "launcher/run/run_status.h"

#include <unistd.h>

#include <string>
#include <system_error>

#include "launcher/host/clocks.h"
#include "reports/record/job/live.h"
#include "reports/record/text/file.h"

namespace graphproof::launcher {
namespace {

constexpr std::int64_t kProgress_ms = 200;
// What other programs see of a run may be this old. Agents take a launcher for dead whose live.json
// is not written for much longer.
constexpr std::int64_t kLive_ms = 1000;

std::string host_name() {
  char name[256] = "";
  gethostname(name, sizeof name - 1);
  return name;
}

}  // namespace

RunStatus::RunStatus(const RunSetup& setup, const RunListener& listener, double earlier_seconds)
    : setup_(setup),
      listener_(listener),
      earlier_seconds_(earlier_seconds),
      started_ms_(steady_ms()) {}

double RunStatus::wall_seconds(std::int64_t now_ms) const {
  return earlier_seconds_ + static_cast<double>(now_ms - started_ms_) / 1000.0;
}

reports::Progress RunStatus::progress(std::int64_t now_ms, reports::Progress recorded,
                                      const RunningBatches& running) const {
  recorded.running = static_cast<int>(running.size());
  recorded.elapsed_seconds = static_cast<double>(now_ms - started_ms_) / 1000.0;
  for (const auto& batch : running) recorded.now.push_back(batch->now_doing());
  return recorded;
}

void RunStatus::show(std::int64_t now_ms, const reports::Progress& recorded,
                     const RunningBatches& running, std::optional<reports::Ending> ending) {
  if (now_ms - live_ms_ >= kLive_ms) {
    live_ms_ = now_ms;
    record::Live live{
        .run_id = setup_.run.run_id,
        .pid = getpid(),
        .host = host_name(),
        .updated_ms = utc_ms(),
        .elapsed_seconds = wall_seconds(now_ms),
        .remaining_seconds = reports::remaining_seconds(progress(now_ms, recorded, running)),
        .planned = recorded.planned,
        .done = recorded.done,
        .failed = recorded.failed,
        .stopping = ending ? std::string(reports::name(*ending)) : "",
        .running = {}};
    for (const auto& batch : running) live.running.push_back(batch->live(now_ms));
    record::write_json(setup_.folder / "live.json", record::to_json(live));
  }
  if (now_ms - progress_ms_ >= kProgress_ms && listener_.progress) {
    progress_ms_ = now_ms;
    listener_.progress(progress(now_ms, recorded, running));
  }
}

void RunStatus::remove() const {
  std::error_code ignored;
  std::filesystem::remove(setup_.folder / "live.json", ignored);
}

}  // namespace graphproof::launcher
