#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "reports/print/formats/formats.h"
#include "reports/record/evidence/evidence.h"
#include "reports/record/text/file.h"
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

bool is_start(std::string_view line) { return line.starts_with(R"({"kind":"start",)"); }

fs::path evidence_of(const fs::path& folder, const CaseResult& one, int rank) {
  return folder / one.record.artefacts / record::evidence_file_name(rank);
}

/// When a rank began. Its file is read up to its line start only, which is the first.
std::optional<double> start_ms(const fs::path& file) {
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) {
    if (!is_start(line)) continue;
    const json value = json::parse(line, nullptr, false);
    if (!value.is_object() || !value.contains("t_ms") || !value["t_ms"].is_number()) break;
    return value["t_ms"].get<double>();
  }
  return std::nullopt;
}

/// Reads the lines start, phase and end; without a start there is nothing. A rank that died has no
/// end line: its case ends with its last phase. `text` has the file while it is read.
std::optional<RankTimes> times_of(const fs::path& file, std::string& text) {
  RankTimes times;
  bool started = false, damaged = false;
  std::ifstream in(file, std::ios::binary);
  if (!in) return std::nullopt;
  text.resize(static_cast<std::size_t>(fs::file_size(file)));
  in.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(in.gcount()));
  record::for_each_line(text, [&](std::string_view line) {
    const bool starts = is_start(line), is_phase = line.starts_with(R"({"kind":"phase",)"),
               is_end = line.starts_with(R"({"kind":"end",)");
    if (damaged || (!starts && !is_phase && !is_end)) return;
    try {
      const json value = json::parse(line);
      if (starts) {
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
      damaged = true;  // what was read before it is shown
    }
  });
  if (!started) return std::nullopt;
  return times;
}

/// A slice as JSON. A large run has hundreds of thousands of them, and values of the JSON library
/// would take most of the time. `more` are further members.
std::string slice(const std::string& name, const char* category, double start_ms, double ms,
                  int process, int thread, const std::string& more = "") {
  return fmt::format(R"({{"cat":"{}","dur":{},"name":{},"ph":"X","pid":{},"tid":{},"ts":{}{}}})",
                     category, ms * 1000, json(name).dump(), process, thread, start_ms * 1000,
                     more);
}

std::string label(const char* what, const std::string& name, int process, int thread) {
  return json({{"name", what},
               {"ph", "M"},
               {"pid", process},
               {"tid", thread},
               {"args", {{"name", record::printable(name)}}}})
      .dump();
}

}  // namespace

void chrome_trace(const RunResult& run, const fs::path& folder, const Put& put) {
  // Times are relative to the first start, so all starts are read before the first event is
  // written.
  std::optional<double> first_ms;
  for (const CaseResult& one : run.cases)
    for (int rank = 0; rank < one.record.ranks && !one.record.artefacts.empty(); ++rank)
      if (const auto start = start_ms(evidence_of(folder, one, rank)))
        first_ms = std::min(first_ms.value_or(*start), *start);
  const double origin_ms = first_ms.value_or(0);

  const json other = {
      {"run", run.run.run_id}, {"profile", run.run.profile}, {"device", run.run.device}};
  put("{\"displayTimeUnit\": \"ms\",\n\"otherData\": " + other.dump() + ",\n\"traceEvents\": [");
  bool first = true;
  const auto add = [&](const std::string& event) {
    put((first ? "\n" : ",\n") + event);
    first = false;
  };
  std::map<std::string, int> processes;   // by batch
  std::set<std::pair<int, int>> threads;  // process and rank
  std::string text;
  for (const CaseResult& one : run.cases) {
    for (int rank = 0; rank < one.record.ranks && !one.record.artefacts.empty(); ++rank) {
      const auto times = times_of(evidence_of(folder, one, rank), text);
      if (!times) continue;
      const std::string& batch = one.record.context.batch;
      const auto [process, is_new] =
          processes.emplace(batch, static_cast<int>(processes.size()) + 1);
      if (is_new) add(label("process_name", "batch " + batch, process->second, 0));
      if (threads.emplace(process->second, rank).second)
        add(label("thread_name", "rank " + std::to_string(rank), process->second, rank));
      double at = times->start_ms - origin_ms;
      const double end = times->end_ms - origin_ms;
      const json about = {{"case", one.plan.id}, {"verdict", one.record.verdict.text()}};
      add(slice(record::printable(one.plan.name), "case", at, end - at, process->second, rank,
                ",\"args\":" + about.dump()));
      for (const RankTimes::Phase& phase : times->phases) {
        // Slices of one thread must nest: a phase does not reach beyond its case.
        const double ms = std::min(phase.ms, std::max(0.0, end - at));
        add(slice(phase.name + (phase.arm.empty() ? "" : " " + record::printable(phase.arm)),
                  "phase", at, ms, process->second, rank));
        at += ms;
      }
    }
  }
  put("\n]}\n");
}

}  // namespace graphproof::reports
