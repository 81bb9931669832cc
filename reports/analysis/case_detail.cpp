#include "reports/analysis/case_detail.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <exception>
#include <fstream>

#include "reports/analysis/divergence.h"
#include "reports/record/evidence/evidence.h"
#include "reports/record/text/file.h"

namespace graphproof::reports {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kShownGraphs = 60;
constexpr std::int64_t kLogTail_bytes = 4096;
constexpr std::size_t kTimedSteps = 7;  // the last ones, which the judge takes its figures from

std::optional<record::Context> context_of(const fs::path& attempt) {
  try {
    const fs::path file = attempt / "context.json";
    if (!fs::exists(file)) return std::nullopt;
    return record::context_from(record::read_json(file), file.string());
  } catch (const std::exception&) {
    return std::nullopt;  // the page shows what can be read
  }
}

/// Evidence that can't be read adds nothing.
std::vector<record::Evidence> evidence_of(const fs::path& attempt) {
  try {
    return record::read_evidence_of_attempt(attempt);
  } catch (const record::ReadError&) {
    return {};
  }
}

/// The last bytes of the range, from the beginning of a line. A log may be larger than memory.
std::string tail(const fs::path& run_folder, const record::LogRange& range) {
  std::ifstream file(run_folder / range.file, std::ios::binary);
  if (!file || range.end <= range.begin) return "";
  const std::int64_t begin = std::max(range.begin, range.end - kLogTail_bytes);
  file.seekg(begin);
  std::string text(static_cast<std::size_t>(range.end - begin), '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(file.gcount()));
  const std::size_t line = text.find('\n');
  if (begin > range.begin && line != std::string::npos) text.erase(0, line + 1);
  return text;
}

std::optional<std::int64_t> start_ms(const record::Evidence& evidence) {
  const auto starts = evidence.of<record::StartLine>();
  return starts.empty() ? std::nullopt : std::optional(starts.front().t_ms);
}

RankDetail rank_detail(const record::Evidence& evidence, std::int64_t first_start_ms) {
  RankDetail detail;
  // The start line may be damaged; the file is called rank-3.evidence.jsonl.
  detail.rank = std::atoi(evidence.file.filename().string().substr(sizeof "rank-" - 1).c_str());
  double at = static_cast<double>(start_ms(evidence).value_or(first_start_ms) - first_start_ms);
  for (const record::PhaseLine& line : evidence.of<record::PhaseLine>()) {
    detail.phases.push_back({.phase = std::string(record::name(line.phase)),
                             .arm = line.arm,
                             .begin_ms = at,
                             .ms = line.ms,
                             .ended = true});
    at += line.ms;
  }
  const auto keep = [&](const char* quantity, std::int64_t bytes) {
    std::int64_t& most = detail.peak_bytes[quantity];
    most = std::max(most, bytes);
  };
  for (const record::MemoryLine& line : evidence.of<record::MemoryLine>()) {
    keep("allocated", line.allocated);
    keep("reserved", line.reserved);
    keep("pool", line.pool);
    if (line.device) keep("device", *line.device);
  }
  return detail;
}

/// What the launcher saw of a rank that did not come to its end.
void add_context(RankDetail& detail, const record::RankContext& seen, double seconds,
                 const fs::path& run_folder, bool failed) {
  if (failed) detail.log_tail = tail(run_folder, seen.log);
  if (seen.case_ended || !seen.phase) return;
  // Ranks write the times of phases at the end of a case, so the phases before may be unknown.
  const double known =
      detail.phases.empty() ? 0 : detail.phases.back().begin_ms + detail.phases.back().ms;
  const double at = std::max(known, 1000 * seconds - static_cast<double>(seen.silent_ms));
  detail.phases.push_back({.phase = std::string(record::name(*seen.phase)),
                           .arm = seen.arm,
                           .begin_ms = at,
                           .ms = std::max(0.0, 1000 * seconds - at),
                           .ended = false});
}

std::vector<CapturedGraph> graphs_of(const std::vector<record::Evidence>& ranks) {
  for (const record::Evidence& evidence : ranks) {
    std::vector<CapturedGraph> graphs;
    for (const record::CaptureLine& line : evidence.of<record::CaptureLine>()) {
      if (graphs.size() == kShownGraphs) break;
      graphs.push_back({.arm = line.arm,
                        .graph = line.graph,
                        .status = line.status,
                        .nodes = line.nodes,
                        .pool_bytes = line.pool_bytes,
                        .ms = line.ms,
                        .census = line.census});
    }
    if (!graphs.empty()) return graphs;
  }
  return {};
}

std::optional<Interval> steps_of(const Series& series, const char* arm) {
  const auto found = series.step_ms.find(arm);
  if (found == series.step_ms.end()) return std::nullopt;
  const std::vector<double>& all = found->second.values;
  const std::size_t last = std::min(all.size(), kTimedSteps);
  return median_interval({all.end() - static_cast<std::ptrdiff_t>(last), all.end()});
}

/// `t_ms` of a start or end line; nothing if it is another line or damaged.
std::optional<std::int64_t> clock_of(const std::string& line) {
  const auto value = nlohmann::json::parse(line, nullptr, false);
  if (!value.is_object() || !value.contains("t_ms") || !value["t_ms"].is_number_integer())
    return std::nullopt;
  return value["t_ms"].get<std::int64_t>();
}

/// The last line of a file, without its newline; an end line is far shorter than what is read.
std::string last_line(std::ifstream& file) {
  constexpr std::int64_t kRead_bytes = 512;
  file.clear();
  file.seekg(0, std::ios::end);
  const std::int64_t size = file.tellg();
  file.seekg(std::max<std::int64_t>(0, size - kRead_bytes));
  std::string text(static_cast<std::size_t>(std::min(size, kRead_bytes)), '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (text.ends_with('\n')) text.pop_back();
  const std::size_t newline = text.rfind('\n');
  return newline == std::string::npos ? text : text.substr(newline + 1);
}

}  // namespace

std::optional<Interval> median_interval(std::vector<double> samples) {
  std::erase_if(samples, [](double one) { return !std::isfinite(one); });
  if (samples.size() < 5) return std::nullopt;
  std::sort(samples.begin(), samples.end());
  // The number of samples below the median is binomial; 0.98 is 1.96 of its standard deviations.
  const double n = static_cast<double>(samples.size());
  const auto low = static_cast<std::size_t>(std::max(0.0, std::floor(n / 2 - 0.98 * std::sqrt(n))));
  return Interval{samples[low], samples[samples.size() - 1 - low]};
}

CaseDetail read_case_detail(const fs::path& run_folder, const record::Record& record) {
  CaseDetail detail;
  if (record.artefacts.empty()) return detail;
  const fs::path attempt = run_folder / record.artefacts;
  const std::vector<record::Evidence> ranks = evidence_of(attempt);
  detail.series = series_of(ranks);
  detail.errors = errors_of(ranks);
  detail.divergence = divergence_text(attempt, record.ranks);
  detail.node_dumps = node_dumps_text(ranks);
  detail.graphs = graphs_of(ranks);
  const auto eager = steps_of(detail.series, "solo_eager"),
             graph = steps_of(detail.series, "solo_graph");
  if (eager && graph && graph->low > 0)
    detail.gain = Interval{eager->low / graph->high, eager->high / graph->low};

  std::optional<std::int64_t> first_start_ms;
  for (const record::Evidence& evidence : ranks)
    if (const auto start = start_ms(evidence))
      first_start_ms = std::min(first_start_ms.value_or(*start), *start);
  for (const record::Evidence& evidence : ranks)
    detail.ranks.push_back(rank_detail(evidence, first_start_ms.value_or(0)));
  if (const auto context = context_of(attempt)) {
    detail.hang = context->hang;
    const bool failed = record.observed.in("fail");
    for (const record::RankContext& seen : context->ranks) {
      auto found = std::find_if(detail.ranks.begin(), detail.ranks.end(),
                                [&](const RankDetail& one) { return one.rank == seen.rank; });
      if (found == detail.ranks.end())
        found = detail.ranks.insert(detail.ranks.end(), {.rank = seen.rank});
      add_context(*found, seen, context->seconds, run_folder, failed);
    }
  }
  return detail;
}

std::string node_dumps_text(const std::vector<record::Evidence>& ranks) {
  std::string files, reason;
  for (const record::Evidence& evidence : ranks)
    for (const record::NodeDumpLine& line : evidence.of<record::NodeDumpLine>()) {
      files += (files.empty() ? "" : ", ") + line.file;
      if (reason.empty()) reason = line.reason;
    }
  return files.empty() ? "" : files + " (" + reason + ")";
}

std::vector<ErrorFact> read_errors(const fs::path& run_folder, const record::Record& record) {
  if (record.artefacts.empty()) return {};
  return errors_of(evidence_of(run_folder / record.artefacts));
}

std::optional<AttemptSpan> read_attempt_span(const fs::path& run_folder,
                                             const record::Record& record) {
  if (record.artefacts.empty()) return std::nullopt;
  std::ifstream file(run_folder / record.artefacts / record::evidence_file_name(0),
                     std::ios::binary);
  std::string line;
  if (!std::getline(file, line)) return std::nullopt;
  const auto begin_ms = clock_of(line);
  if (!begin_ms) return std::nullopt;
  // An attempt that did not come to its end has no end line.
  const auto end_ms = clock_of(last_line(file));
  return AttemptSpan{*begin_ms, end_ms && *end_ms > *begin_ms
                                    ? *end_ms
                                    : *begin_ms + std::llround(1000 * record.seconds)};
}

}  // namespace graphproof::reports
