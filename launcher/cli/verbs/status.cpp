// status: prints how far a run is. It reads only the files of the run, so it works while a launcher
// runs and after one was killed. Of a watched run it prints what each watched process is doing.
#include <fmt/format.h>

#include <chrono>
#include <memory>
#include <thread>

#include "launcher/cli/verb.h"
#include "launcher/host/run_lock.h"
#include "launcher/run/run_folder.h"
#include "launcher/run/tally.h"
#include "launcher/watch/probe_look.h"
#include "launcher/watch/watch.h"
#include "reports/outcome/run_result.h"
#include "reports/print/terminal.h"
#include "reports/record/job/live.h"
#include "reports/record/run/run.h"
#include "reports/record/run/summary.h"
#include "reports/record/text/file.h"
#include "reports/record/text/printable.h"

namespace graphproof::cli {
namespace {

namespace fs = std::filesystem;

// A launcher writes live.json once a second.
constexpr std::chrono::seconds kRefresh{1};

struct StatusOptions {
  std::string run = "latest";
  bool json = false, watch = false;
};

struct Status {
  std::string run_id;
  launcher::Tally tally;
  std::string ending = "interrupted";
  std::optional<std::string> owner;  // of the run's lock; present while the launcher runs
  std::optional<record::Live> live;  // what the launcher last wrote about its work
  double live_age_seconds = 0;
  std::optional<launcher::Resumable> resumable;  // present if the run can be resumed

  bool finished() const { return ending == reports::name(reports::Ending::finished); }
  std::string state() const { return owner ? "running" : finished() ? "finished" : "ended early"; }
  int left() const { return tally.not_run; }
};

/// How the run ended, from its summary; "interrupted" if it has none. The summary of a large run is
/// large, so only the one value is read if possible.
std::string ending_of(const fs::path& folder) {
  std::error_code absent;
  if (!fs::exists(folder / "summary.json", absent))
    return std::string(reports::name(reports::Ending::interrupted));
  const std::string text = record::read_text(folder / "summary.json");
  static constexpr std::string_view kKey =
      "\n  \"ending\": \"";  // two blanks: a member of the outermost object
  if (const std::size_t at = text.find(kKey); at != text.npos)
    return text.substr(at + kKey.size(), text.find('"', at + kKey.size()) - at - kKey.size());
  return record::summary_from(record::parse_json(text, folder / "summary.json"),
                              folder / "summary.json")
      .ending;
}

Status read_status(const fs::path& folder) {
  Status status;
  // The lock is read first. So a run that ends meanwhile is reported as running, not as ended with
  // old counts.
  status.owner = launcher::RunLock::owner(folder);
  status.run_id =
      record::run_from(record::read_json(folder / "run.json"), folder / "run.json").run_id;
  status.ending = ending_of(folder);
  status.tally = launcher::tally(folder);
  if (std::error_code absent; fs::exists(folder / "live.json", absent)) {
    status.live = record::live_from(record::read_json(folder / "live.json"), folder / "live.json");
    using namespace std::chrono;
    const std::int64_t now_ms =
        duration_cast<milliseconds>(system_clock::now().time_since_epoch()).count();
    status.live_age_seconds =
        std::max<double>(0, static_cast<double>(now_ms - status.live->updated_ms) / 1000);
  }
  if (!status.owner && !status.finished()) status.resumable = launcher::resumable(folder);
  return status;
}

nlohmann::json as_json(const Status& status) {
  std::map<std::string, int> counts = status.tally.counts;
  if (status.left() > 0) counts["not_run"] += status.left();
  nlohmann::json value{
      {"run_id", status.run_id}, {"state", status.state()}, {"planned", status.tally.planned},
      {"left", status.left()},   {"counts", counts},        {"ending", status.ending},
      {"launcher", nullptr},     {"live", nullptr},         {"resume", nullptr}};
  if (status.owner) value["launcher"] = *status.owner;
  if (status.owner) value["ending"] = nullptr;
  if (status.live) {
    value["live"] = nlohmann::json::parse(record::to_json(*status.live).dump());
    value["live"]["age_seconds"] = status.live_age_seconds;
  }
  if (const auto& left = status.resumable)
    value["resume"] = {{"kept", left->kept},
                       {"run", left->run},
                       {"cut_off", left->cut_off},
                       {"alone", left->alone},
                       {"judge", left->judge}};
  return value;
}

void print(const record::Live& live, bool alive, double age_seconds, std::ostream& out) {
  out << fmt::format("{} {:.0f} s ago; {} elapsed{}{}\n", alive ? "updated" : "last updated",
                     age_seconds, reports::clock_text(live.elapsed_seconds),
                     live.remaining_seconds && alive
                         ? ", " + reports::clock_text(*live.remaining_seconds) + " left"
                         : "",
                     live.stopping.empty() ? "" : ", starts no more cases (" + live.stopping + ")");
  for (const record::LiveCase& one : live.running) {
    out << fmt::format("  {} {}{}\n", one.batch, record::printable(one.name),
                       one.attempt > 1 ? fmt::format(" (attempt {})", one.attempt) : "");
    for (const record::LiveRank& rank : one.ranks)
      out << fmt::format(
          "    rank {}  {:<16} {}  pid {}  heartbeat {:.1f} s ago\n", rank.rank,
          rank.phase ? record::name(*rank.phase) : "starting",
          rank.arm.empty() ? "" : fmt::format("{} step {}", record::printable(rank.arm), rank.step),
          rank.pid, static_cast<double>(rank.silent_ms) / 1000 + (alive ? age_seconds : 0));
  }
}

void print(const Status& status, std::ostream& out) {
  out << fmt::format("run {}  {}  {} of {} cases done{}\n", status.run_id, status.state(),
                     status.tally.planned - status.left(), status.tally.planned,
                     status.owner        ? "  (" + *status.owner + ")"
                     : status.finished() ? ""
                                         : "  (" + status.ending + ")");
  for (const auto& [verdict, count] : status.tally.counts)
    out << fmt::format("  {:>5} {}\n", count, verdict);
  if (status.live) print(*status.live, status.owner.has_value(), status.live_age_seconds, out);
  if (!status.resumable) return;
  const launcher::Resumable& left = *status.resumable;
  out << fmt::format(
      "graphproof resume {} would keep {} cases, run {} ({} of them were cut off), run {} alone "
      "and judge {} that ended but have no verdict\n",
      status.run_id, left.kept, left.run, left.cut_off, left.alone, left.judge);
}

/// A watched run and what its probes have written up to now.
struct WatchedStatus {
  reports::WatchedReport report;
  std::optional<std::string> owner;
  std::vector<launcher::ProbeLook> probes;

  /// "interrupted" where the launcher was killed.
  std::string state() const {
    if (owner) return "running";
    return report.run.ending == "running" ? "interrupted" : report.run.ending;
  }
};

WatchedStatus read_watched_status(const fs::path& folder) {
  WatchedStatus status;
  status.owner = launcher::RunLock::owner(folder);
  status.report = launcher::read_watched(folder);
  status.probes = launcher::look_at_probes(folder / record::kProbeFolder);
  return status;
}

std::string_view state_of(const launcher::ProbeLook& probe) {
  switch (probe.state) {
    case record::probe_file::State::watching:
      return "watching";  // also of a process that was killed
    case record::probe_file::State::switched_off:
      return "switched off";
    case record::probe_file::State::ended:
      return "ended";
  }
  return "unknown";
}

nlohmann::json as_json(const WatchedStatus& status) {
  nlohmann::json processes = nlohmann::json::array();
  for (const launcher::ProbeLook& probe : status.probes) {
    nlohmann::json inside = nlohmann::json::array();
    for (const launcher::OpenCall& call : probe.open_calls)
      inside.push_back({{"thread", call.thread}, {"name", call.name}, {"call", call.call}});
    processes.push_back({{"name", probe.name},
                         {"pid", probe.pid},
                         {"host", probe.host},
                         {"state", state_of(probe)},
                         {"inside", inside}});
  }
  nlohmann::json value{{"run_id", status.report.run.id},
                       {"watched", true},
                       {"state", status.state()},
                       {"command", status.report.run.command},
                       {"processes", processes},
                       {"launcher", nullptr},
                       {"verdict", nullptr}};
  if (status.owner)
    value["launcher"] = *status.owner;
  else
    value["verdict"] = reports::name(status.report.outcome.verdict);
  return value;
}

void print(const WatchedStatus& status, std::ostream& out) {
  const reports::WatchedReport& report = status.report;
  out << fmt::format("watched run {}  {}  {}{}\n", report.run.id, status.state(),
                     record::printable(reports::command_text(report.run.command)),
                     status.owner ? "  (" + *status.owner + ")" : "");
  for (const launcher::ProbeLook& probe : status.probes) {
    std::string inside;
    for (const launcher::OpenCall& call : probe.open_calls)
      inside += fmt::format("{}{} ({}) inside {}", inside.empty() ? "  thread " : ", ", call.thread,
                            record::printable(call.name), record::printable(call.call));
    out << fmt::format("  {}  {}{}\n", record::printable(probe.name), state_of(probe), inside);
  }
  if (!status.owner)
    out << fmt::format("  {}: {}\n", reports::name(report.outcome.verdict),
                       record::printable(report.outcome.reason));
}

/// Prints what `read` gives, again and again with --watch until its launcher has ended.
template <class Read>
record::ExitCode show(const StatusOptions& options, Surroundings& surroundings, const Read& read) {
  for (;;) {
    const auto status = read();
    // On a terminal the new text replaces the old one.
    if (options.watch && surroundings.terminal && !options.json)
      surroundings.out << "\x1b[H\x1b[2J";
    if (options.json)
      surroundings.out << as_json(status).dump(options.watch ? -1 : 2) << "\n";
    else
      print(status, surroundings.out);
    surroundings.out.flush();
    if (!options.watch || !status.owner) return record::ExitCode::ok;
    std::this_thread::sleep_for(kRefresh);
  }
}

record::ExitCode execute_status(const StatusOptions& options, Surroundings& surroundings) {
  if (const auto watched = launcher::named_watched_run(surroundings.runs, options.run))
    return show(options, surroundings, [&] { return read_watched_status(*watched); });
  const fs::path folder = launcher::find_run(surroundings.runs, options.run);
  return show(options, surroundings, [&] { return read_status(folder); });
}

}  // namespace

Action declare_status(CLI::App& app) {
  const auto options = std::make_shared<StatusOptions>();
  app.add_option("RUN", options->run, "the folder or id of a run, or latest (default: latest)")
      ->type_name("RUN");
  app.add_flag("--watch", options->watch, "print again every second until the run has ended");
  app.add_flag("--json", options->json, "print one JSON object; with --watch one in each line");
  return [options](Surroundings& surroundings) { return execute_status(*options, surroundings); };
}

}  // namespace graphproof::cli
