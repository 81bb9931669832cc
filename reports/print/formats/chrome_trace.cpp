#include <algorithm>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "reports/print/formats/formats.h"
#include "reports/record/evidence/evidence.h"
#include "reports/record/text/printable.h"

namespace graphproof::reports {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

/// What a rank's file says about time. Milliseconds of the rank's clock.
struct RankTimes {
  double start_ms = 0, end_ms = 0;
  struct Phase {
    std::string name, arm;
    double ms;
  };
  std::vector<Phase> phases;  // one after another
};

/// Reads the lines start, phase and end; without a start there is nothing. A rank that died has no
/// end line: its case ends with its last phase.
std::optional<RankTimes> times_of(const fs::path& file) {
  RankTimes times;
  bool started = false;
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) {
    const bool is_start = line.starts_with(R"({"kind":"start",)"),
               is_phase = line.starts_with(R"({"kind":"phase",)"),
               is_end = line.starts_with(R"({"kind":"end",)");
    if (!is_start && !is_phase && !is_end) continue;
    try {
      const json value = json::parse(line);
      if (is_start) {
        times.start_ms = times.end_ms = value.at("t_ms").get<double>();
        started = true;
      } else if (is_phase) {
        times.phases.push_back({value.at("phase").get<std::string>(),
                                value.at("arm").get<std::string>(),
                                std::max(0.0, value.at("ms").get<double>())});
        times.end_ms += times.phases.back().ms;
      } else {
        times.end_ms = std::max(times.start_ms, value.at("t_ms").get<double>());
      }
    } catch (const json::exception&) {
      break;  // a torn or damaged line: what was read before it is shown
    }
  }
  if (!started) return std::nullopt;
  return times;
}

json slice(const std::string& name, const char* category, double start_ms, double ms, int process,
           int thread) {
  return {{"name", name},     {"cat", category}, {"ph", "X"},    {"ts", start_ms * 1000},
          {"dur", ms * 1000}, {"pid", process},  {"tid", thread}};
}

json label(const char* what, const std::string& name, int process, int thread) {
  return {{"name", what},
          {"ph", "M"},
          {"pid", process},
          {"tid", thread},
          {"args", {{"name", record::printable(name)}}}};
}

}  // namespace

std::string chrome_trace(const RunResult& run, const fs::path& folder) {
  // Events are texts, because those of a large run take a gigabyte as JSON values.
  std::string events;
  const auto add = [&events](const json& event) {
    events += (events.empty() ? "" : ",\n") + event.dump();
  };
  std::map<std::string, int> processes;   // by batch
  std::set<std::pair<int, int>> threads;  // process and rank
  std::optional<double> origin_ms;
  struct Rank {
    const CaseResult* of;
    int process, rank;
    RankTimes times;
  };
  std::vector<Rank> ranks;
  for (const CaseResult& one : run.cases) {
    if (one.record.artefacts.empty()) continue;
    for (int rank = 0; rank < one.record.ranks; ++rank) {
      auto times = times_of(folder / one.record.artefacts / record::evidence_file_name(rank));
      if (!times) continue;
      const std::string& batch = one.record.context.batch;
      const auto [process, is_new] =
          processes.emplace(batch, static_cast<int>(processes.size()) + 1);
      if (is_new) add(label("process_name", "batch " + batch, process->second, 0));
      if (threads.emplace(process->second, rank).second)
        add(label("thread_name", "rank " + std::to_string(rank), process->second, rank));
      origin_ms = std::min(origin_ms.value_or(times->start_ms), times->start_ms);
      ranks.push_back({&one, process->second, rank, std::move(*times)});
    }
  }
  for (const Rank& one : ranks) {
    double at = one.times.start_ms - *origin_ms;
    const double all = one.times.end_ms - one.times.start_ms;
    json whole =
        slice(record::printable(one.of->plan.name), "case", at, all, one.process, one.rank);
    whole["args"] = {{"case", one.of->plan.id}, {"verdict", one.of->record.verdict.text()}};
    add(whole);
    const double end = at + all;
    for (const RankTimes::Phase& phase : one.times.phases) {
      // Slices of one thread must nest: a phase does not reach beyond its case.
      const double ms = std::min(phase.ms, std::max(0.0, end - at));
      add(slice(phase.name + (phase.arm.empty() ? "" : " " + record::printable(phase.arm)), "phase",
                at, ms, one.process, one.rank));
      at += ms;
    }
  }
  const json other = {
      {"run", run.run.run_id}, {"profile", run.run.profile}, {"device", run.run.device}};
  return "{\"displayTimeUnit\": \"ms\",\n\"otherData\": " + other.dump() +
         ",\n\"traceEvents\": [\n" + events + "\n]}\n";
}

}  // namespace graphproof::reports
