// status: how far a run is, read from its files alone, so it works beside a running launcher and after a killed one.
#include <fmt/format.h>

#include <chrono>
#include <memory>

#include "launcher/cli/verb.h"
#include "launcher/remains.h"
#include "launcher/run_folder.h"
#include "launcher/run_lock.h"
#include "launcher/run_reports.h"
#include "reports/printable.h"
#include "reports/record/file.h"
#include "reports/record/journal.h"
#include "reports/record/live.h"
#include "reports/summary.h"
#include "reports/terminal.h"

namespace graphproof::cli {
namespace {

namespace fs = std::filesystem;

struct Options {
  std::string run = "latest";
  bool json = false;
};

struct Status {
  reports::RunResult result;
  record::Summary summary;
  std::optional<std::string> owner;   // of the lock: the launcher lives
  std::optional<record::Live> live;   // its last word; after a kill, of what was going on then
  double live_age_seconds = 0;
  std::optional<launcher::Remains> remains;  // of a run that can be resumed

  std::string state() const { return owner ? "running" : summary.finished ? "finished" : "ended early"; }
  int left() const { return owner || !summary.finished ? summary.coverage.not_run : 0; }
};

Status read_status(const fs::path& folder) {
  Status status{.result = launcher::read_run(folder), .summary = {}, .owner = launcher::RunLock::owner(folder), .live = {},
                .live_age_seconds = 0, .remains = {}};
  status.summary = reports::summary(status.result);
  if (std::error_code absent; fs::exists(folder / "live.json", absent)) {
    status.live = record::live_from(record::read_json(folder / "live.json"), folder / "live.json");
    using namespace std::chrono;
    const std::int64_t now_ms = duration_cast<milliseconds>(system_clock::now().time_since_epoch()).count();
    status.live_age_seconds = std::max<double>(0, static_cast<double>(now_ms - status.live->updated_ms) / 1000);
  }
  if (!status.owner && !status.summary.finished) {
    const auto plan = record::plan_from(record::read_text(folder / "plan.jsonl"), folder / "plan.jsonl");
    status.remains = launcher::remains(folder, plan, record::read_journal(folder / "journal.jsonl").records);
  }
  return status;
}

nlohmann::json as_json(const Status& status) {
  nlohmann::json value{{"run_id", status.summary.run_id}, {"state", status.state()}, {"planned", status.summary.coverage.planned},
                       {"left", status.left()},           {"counts", status.summary.counts}, {"ending", status.summary.ending},
                       {"launcher", nullptr},             {"live", nullptr},                 {"resume", nullptr}};
  if (status.owner) value["launcher"] = *status.owner;
  if (status.owner) value["ending"] = nullptr;
  if (status.live) {
    value["live"] = nlohmann::json::parse(record::to_json(*status.live).dump());
    value["live"]["age_seconds"] = status.live_age_seconds;
  }
  if (status.remains)
    value["resume"] = {{"kept", status.remains->kept},
                       {"run", status.remains->attempts.size() + status.remains->diagnoses.size()},
                       {"cut_off", status.remains->cut_off},
                       {"alone", status.remains->diagnoses.size()},
                       {"judge", status.remains->unjudged.size()}};
  return value;
}

void print(const record::Live& live, bool alive, double age_seconds, std::ostream& out) {
  out << fmt::format("{} {:.0f} s ago; {} elapsed{}{}\n", alive ? "told" : "last told", age_seconds,
                     reports::clock_text(live.elapsed_seconds),
                     live.remaining_seconds && alive ? ", " + reports::clock_text(*live.remaining_seconds) + " left" : "",
                     live.stopping.empty() ? "" : ", starts no more cases (" + live.stopping + ")");
  for (const record::LiveCase& one : live.running) {
    out << fmt::format("  {} {}{}\n", one.batch, reports::printable(one.name),
                       one.attempt > 1 ? fmt::format(" (attempt {})", one.attempt) : "");
    for (const record::LiveRank& rank : one.ranks)
      out << fmt::format("    rank {}  {:<16} {}  pid {}  heartbeat {:.1f} s ago\n", rank.rank,
                         rank.phase ? record::name(*rank.phase) : "starting",
                         rank.arm.empty() ? "" : fmt::format("{} step {}", reports::printable(rank.arm), rank.step), rank.pid,
                         static_cast<double>(rank.silent_ms) / 1000 + (alive ? age_seconds : 0));
  }
}

void print(const Status& status, std::ostream& out) {
  const record::Summary& summary = status.summary;
  out << fmt::format("run {}  {}  {} of {} cases done{}\n", summary.run_id, status.state(),
                     summary.coverage.planned - status.left(), summary.coverage.planned,
                     status.owner ? "  (" + *status.owner + ")" : summary.finished ? "" : "  (" + summary.ending + ")");
  for (const auto& [verdict, count] : summary.counts) out << fmt::format("  {:>5} {}\n", count, verdict);
  if (status.live) print(*status.live, status.owner.has_value(), status.live_age_seconds, out);
  if (!status.remains) return;
  const launcher::Remains& remains = *status.remains;
  out << fmt::format("graphproof resume {} would keep {} cases, run {} ({} of them were cut off), run {} alone and judge {}\n",
                     summary.run_id, remains.kept, remains.attempts.size() + remains.diagnoses.size(), remains.cut_off,
                     remains.diagnoses.size(), remains.unjudged.size());
}

record::ExitCode execute(const Options& options, Surroundings& surroundings) {
  const Status status = read_status(launcher::find_run(surroundings.runs, options.run));
  if (options.json)
    surroundings.out << as_json(status).dump(2) << "\n";
  else
    print(status, surroundings.out);
  return record::ExitCode::ok;
}

}  // namespace

Action declare_status(CLI::App& app) {
  const auto options = std::make_shared<Options>();
  app.add_option("RUN", options->run, "a run's folder, id, or latest (default: latest)");
  app.add_flag("--json", options->json, "print one JSON object");
  return [options](Surroundings& surroundings) { return execute(*options, surroundings); };
}

}  // namespace graphproof::cli
