// status: how far a run is, read from its files alone, so it works beside a running launcher and after a killed one.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <memory>

#include "launcher/cli/verb.h"
#include "launcher/run.h"
#include "launcher/run_folder.h"
#include "reports/summary.h"

namespace graphproof::cli {
namespace {

struct Options {
  std::string run = "latest";
  bool json = false;
};

/// The journal's one writer holds a lock as long as it lives.
bool is_written(const std::filesystem::path& journal) {
  const int file = open(journal.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return false;
  const bool locked = flock(file, LOCK_SH | LOCK_NB) != 0;
  close(file);
  return locked;
}

record::ExitCode execute(const Options& options, Surroundings& surroundings) {
  const std::filesystem::path folder = launcher::find_run(surroundings.runs, options.run);
  const bool running = is_written(folder / "journal.jsonl");
  const reports::RunResult result = launcher::read_run(folder);
  const record::Summary summary = reports::summary(result);
  const std::string state = running ? "running" : summary.finished ? "finished" : "ended early";
  const int left = running || !summary.finished ? summary.coverage.not_run : 0;
  if (options.json) {
    surroundings.out << nlohmann::json{{"run_id", summary.run_id}, {"state", state}, {"planned", summary.coverage.planned},
                                       {"left", left}, {"counts", summary.counts}}.dump(2)
                     << "\n";
    return record::ExitCode::ok;
  }
  surroundings.out << fmt::format("run {}  {}  {} of {} cases done\n", summary.run_id, state,
                                  summary.coverage.planned - left, summary.coverage.planned);
  for (const auto& [verdict, count] : summary.counts) surroundings.out << fmt::format("  {:>5} {}\n", count, verdict);
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
