#include "reports/print/page_data.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <future>
#include <set>
#include <string>
#include <thread>
#include <utility>

#include "reports/analysis/benefit.h"
#include "reports/outcome/faults.h"
#include "reports/outcome/order.h"
#include "reports/outcome/summary.h"
#include "reports/print/packing.h"
#include "reports/record/text/printable.h"
#include "reports/record/verdict/exit_code.h"

namespace graphproof::reports {
namespace {

using nlohmann::json;

/// Each different value once, and its number for each use.
class Dictionary {
 public:
  std::size_t number(const json& value) {
    const auto [at, added] = numbers_.emplace(value, values_.size());
    if (added) values_.push_back(value);
    return at->second;
  }
  const json& values() const { return values_; }

 private:
  std::map<json, std::size_t> numbers_;
  json values_ = json::array();
};

/// Six digits are more than any measurement here has.
double rounded(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.6g", value);
  return std::strtod(text, nullptr);
}

json to_json(const record::Failing& one) {
  return {{"check", one.check},       {"rank", one.rank ? json(*one.rank) : json()},
          {"what", one.message.what}, {"got", one.message.got},
          {"want", one.message.want}, {"why", one.message.why},
          {"next", one.message.next}};
}

json to_json(const RankDetail& one) {
  json phases = json::array();
  for (const PhaseSpan& span : one.phases)
    phases.push_back(
        {span.phase, span.arm, rounded(span.begin_ms), rounded(span.ms), span.ended ? 1 : 0});
  return {{"rank", one.rank},
          {"phases", phases},
          {"peak_bytes", one.peak_bytes},
          {"log", one.log_tail}};
}

json to_json(const CapturedGraph& one) {
  json census = json::object();
  for (const auto& [type, count] : one.census)
    if (count != 0) census[type] = count;
  return {{"arm", one.arm},     {"graph", one.graph},           {"status", one.status},
          {"nodes", one.nodes}, {"pool_bytes", one.pool_bytes}, {"ms", rounded(one.ms)},
          {"census", census}};
}

json hang_json(const record::Hang& hang) {
  json value = {{"phase", record::name(hang.phase)},
                {"limit_ms", hang.limit_ms},
                {"missing_rank", hang.missing_rank},
                {"waiting_ranks", hang.waiting_ranks}};
  if (hang.last_collective)
    value["collective"] = {{"sequence", hang.last_collective->sequence},
                           {"op", hang.last_collective->op},
                           {"group", hang.last_collective->group}};
  return value;
}

/// What only the page of the case shows.
json detail_json(const CaseResult& one, const CaseDetail& detail, bool full) {
  const record::Record& record = one.record;
  json value = {{"full", full},
                {"phase", record.phase ? json(record::name(*record.phase)) : json()},
                {"attempt", record.attempt},
                {"again", record.again},
                {"batch", record.context.batch},
                {"start", record.context.start},
                {"artefacts", record.artefacts},
                {"figures", record.figures},
                {"environment", one.plan.environment},
                {"required", one.plan.required_checks},
                {"symptoms", to_json(symptoms(record, detail.errors))}};
  value["failing"] = json::array();
  for (const record::Failing& each : record.failing) value["failing"].push_back(to_json(each));
  if (!full) return value;
  value["divergence"] = detail.divergence;
  value["node_dumps"] = detail.node_dumps;
  if (!detail.series.empty()) value["series"] = to_json(detail.series);
  value["ranks"] = json::array();
  for (const RankDetail& rank : detail.ranks) value["ranks"].push_back(to_json(rank));
  value["graphs"] = json::array();
  for (const CapturedGraph& graph : detail.graphs) value["graphs"].push_back(to_json(graph));
  if (detail.hang) value["hang"] = hang_json(*detail.hang);
  return value;
}

/// The axes whose values differ, in columns; and the others, which are written once.
void add_axes(json& value, const RunResult& run) {
  std::set<std::string> names;
  for (const CaseResult& one : run.cases)
    for (const auto& [axis, unused] : one.plan.axes.items()) names.insert(axis);
  json varied = json::array(), fixed = json::array();
  for (const std::string& name : names) {
    Dictionary values;
    json column = json::array();
    for (const CaseResult& one : run.cases) {
      const auto found = one.plan.axes.find(name);
      column.push_back(values.number(found == one.plan.axes.end() ? json() : *found));
    }
    if (values.values().size() > 1)
      varied.push_back({{"name", name}, {"values", values.values()}, {"of", column}});
    else
      fixed.push_back({name, values.values()[0]});
  }
  value["axes"] = varied;
  value["fixed_axes"] = fixed;
}

std::string expectation(const record::Expect& expect) {
  if (expect.kind == "fault")
    return "detector " + expect.detector + " catches planted fault " + expect.fault;
  if (expect.kind == "rejected") return "rule " + expect.rule + " refuses it";
  if (expect.kind == "hazard") return "hazard " + expect.rule + " ends " + expect.verdict;
  if (expect.kind == "known_issue")
    return "known issue " + expect.issue + " ends " + expect.verdict + " (" + expect.owner +
           ", until " + expect.until + ")";
  return "it passes";
}

/// The result of every check as one letter, in the order of `checks`; "-" if it was not judged.
void add_checks(json& value, const RunResult& run, const matrix::Catalogue& catalogue) {
  std::set<std::string> names;
  for (const CaseResult& one : run.cases)
    for (const auto& [check, unused] : one.checks) names.insert(check);
  json checks = json::array();
  for (const std::string& name : names) {
    const matrix::CheckEntry* entry = catalogue.checks.find(name);
    checks.push_back({name, entry == nullptr ? "" : entry->states});
  }
  Dictionary results;
  json column = json::array();
  for (const CaseResult& one : run.cases) {
    std::string letters;
    for (const std::string& name : names) {
      const auto found = one.checks.find(name);
      letters += found == one.checks.end() ? '-' : record::name(found->second)[0];
    }
    column.push_back(results.number(letters));
  }
  value["checks"] = checks;
  value["check_results"] = results.values();
  value["cases"]["checks"] = column;
}

/// The figures that tables and plots of the whole run show. null: not measured.
void add_figures(json& columns, const RunResult& run) {
  static const std::pair<const char*, std::vector<const char*>> kFigures[] = {
      {"eager_ms", {"eager_step_ms", "eager_ms"}},
      {"graph_ms", {"graph_step_ms", "replay_ms"}},
      {"capture_ms", {"capture_ms"}},
      {"graphs", {"graphs"}},
      {"graph_nodes", {"graph_nodes"}},
      {"memory_bytes", {"extra_memory_bytes", "pool_bytes"}}};
  for (const auto& [column, names] : kFigures) {
    json values = json::array();
    bool any = false;
    for (const CaseResult& one : run.cases) {
      json value;
      for (const char* name : names)
        if (const auto found = one.record.figures.find(name);
            value.is_null() && found != one.record.figures.end() && std::isfinite(found->second))
          value = rounded(found->second);
      any = any || !value.is_null();
      values.push_back(value);
    }
    if (any) columns[column] = values;
  }
}

void add_cases(json& value, const RunResult& run) {
  Dictionary verdicts, reasons, whys, expectations, isolations, kinds;
  json cases;
  for (const char* column : {"id", "name", "verdict", "observed", "kind", "rule", "reason", "ranks",
                             "seconds", "isolation", "why", "expect"})
    cases[column] = json::array();
  for (const CaseResult& one : run.cases) {
    const record::Record& record = one.record;
    cases["id"].push_back(one.plan.id);
    cases["name"].push_back(one.plan.name);
    cases["verdict"].push_back(verdicts.number(record.verdict.text()));
    cases["observed"].push_back(verdicts.number(record.observed.text()));
    cases["kind"].push_back(kinds.number(name(kind_of(one))));
    cases["rule"].push_back(record.rule);
    cases["reason"].push_back(reasons.number(record.reason));
    cases["ranks"].push_back(one.plan.ranks);
    cases["seconds"].push_back(rounded(record.seconds));
    cases["isolation"].push_back(isolations.number(record.context.isolation));
    cases["why"].push_back(whys.number(one.plan.why));
    cases["expect"].push_back(expectations.number(expectation(one.plan.expect)));
  }
  value["cases"] = cases;
  value["verdicts"] = verdicts.values();
  value["deeds"] = json::array();
  for (const json& verdict : verdicts.values())
    value["deeds"].push_back(
        deed(*record::Verdict::from(verdict.get_ref<const std::string&>()), 1));
  value["kinds"] = kinds.values();
  value["reasons"] = reasons.values();
  value["isolations"] = isolations.values();
  value["whys"] = whys.values();
  value["expectations"] = expectations.values();
}

json groups_json(const Overview& words) {
  json groups = json::array();
  for (const OverviewGroup& one : words.groups) {
    json lines = json::array();
    for (const OverviewLine& line : one.lines) lines.push_back({line.label, line.code, line.text});
    groups.push_back({{"verdict", one.group.verdict.text()},
                      {"kind", name(one.kind)},
                      {"check", one.group.signature.check},
                      {"headline", one.headline},
                      {"expected", one.group.expected},
                      {"cases", one.group.cases},
                      {"expression", one.group.common.expression},
                      {"outside", one.group.common.outside},
                      {"lines", lines}});
  }
  return groups;
}

json faults_json(const RunResult& run, const matrix::Catalogue& catalogue) {
  json rows = json::array();
  const std::vector<record::FaultResult> results = faults(run);
  std::size_t next = 0;
  for (std::size_t i = 0; i < run.cases.size() && next < results.size(); ++i) {
    if (run.cases[i].plan.expect.kind != "fault") continue;
    const record::FaultResult& one = results[next++];
    const matrix::FaultEntry* entry = catalogue.faults.find(one.fault);
    rows.push_back({{"case", i},
                    {"fault", one.fault},
                    {"title", entry == nullptr ? "" : entry->title},
                    {"detector", one.detector},
                    {"killed_by", one.killed_by},
                    {"status", record::name(one.status)},
                    {"clean_twin", one.clean_twin.text()}});
  }
  return rows;
}

json stack_json(const record::Stack& stack) {
  std::map<std::string, int> gpus;
  for (const std::string& gpu : stack.gpus) ++gpus[gpu];
  std::string gpu_text;
  for (const auto& [gpu, count] : gpus)
    gpu_text += (gpu_text.empty() ? "" : ", ") + std::to_string(count) + " x " + gpu;
  json parts = json::array();
  const auto add = [&](const char* part, const std::string& version) {
    if (!version.empty() && version != "none") parts.push_back({part, version});
  };
  add("GPUs", gpu_text);
  add("NCCL", stack.nccl_version);
  add("torch", stack.torch_version);
  add("CUDA", stack.cuda_version);
  add("driver", stack.driver);
  add("cuDNN", stack.cudnn_version);
  add("MPI", stack.mpi);
  add("host", stack.host);
  add("kernel", stack.kernel);
  add("CPUs", std::to_string(stack.cpus));
  return parts;
}

json run_json(const RunResult& run) {
  std::string command;
  for (const std::string& word : run.run.command) command += (command.empty() ? "" : " ") + word;
  return {{"name", run.run_name},     {"profile", run.run.profile}, {"device", run.run.device},
          {"slots", run.run.slots},   {"started", run.run.started}, {"command", command},
          {"parent", run.run.parent}, {"engine", run.run.engine},   {"matrix", run.run.matrix.name},
          {"seed", run.run.seed}};
}

/// Since when a case fails, in a sentence.
std::string since_text(const CaseHistory& history) {
  const HistoryResult& now = history.results.back();
  std::string text = history.first_bad->run_id == now.run_id
                         ? "It fails since this run"
                         : "It fails since run " + history.first_bad->run_id;
  if (!history.last_good) return text + "; no earlier run was acceptable.";
  text += "; the last good run was " + history.last_good->run_id + ".";
  if (history.changed.empty()) return text + " Nothing changed in the stack between the two.";
  text += " Between the two changed ";
  for (std::size_t i = 0; i < history.changed.size(); ++i)
    text += (i == 0 ? "" : ", ") + text_of(history.changed[i]);
  return text + ".";
}

std::string flaky_text(const FlakyCase& one) {
  return "It failed in " + std::to_string(one.failed) + " of " + std::to_string(one.trials) +
         " runs on this stack (95 % interval of the rate: " + record::fixed(100 * one.rate.low, 0) +
         " to " + record::fixed(100 * one.rate.high, 0) + " %).";
}

/// `sequences` has each different series of verdicts once, because most cases always pass.
json cross_run_json(const CrossRunFacts& facts) {
  if (!facts.unknown.empty()) return {{"unknown", facts.unknown}};
  json runs = json::array(), changes = json::array(), of = json::array();
  json since = json::object(), flaky = json::object();
  for (const EarlierRun& one : facts.runs)
    runs.push_back({one.run_id, one.started, one.fingerprint.substr(0, 8)});
  for (const StackChange& one : facts.stack_changes) changes.push_back(text_of(one));
  Dictionary sequences;
  for (const auto& verdicts : facts.verdicts) {
    json sequence = json::array();
    for (const auto& one : verdicts) sequence.push_back(one ? json(one->text()) : json());
    of.push_back(sequences.number(sequence));
  }
  for (const auto& [index, history] : facts.failing)
    since[std::to_string(index)] = since_text(history);
  for (const auto& [index, one] : facts.flaky) flaky[std::to_string(index)] = flaky_text(one);
  return {{"last_run", facts.last_run},
          {"broke", facts.broke},
          {"healed", facts.healed},
          {"stack_changes", changes},
          {"runs", runs},
          {"sequences", sequences.values()},
          {"of", of},
          {"since", since},
          {"flaky", flaky}};
}

json hazards_json(const record::Hazards& hazards, const matrix::Catalogue& catalogue) {
  json value = json::parse(record::to_json(hazards).dump());
  value["titles"] = json::object();
  for (const matrix::Hazard& one : catalogue.hazards.hazards())
    value["titles"][one.id] = {{"title", one.title}, {"why", one.why}, {"source", one.source}};
  return value;
}

/// The cases whose attempts are read: failures, then expected failures, then others.
std::set<std::size_t> detailed(const RunResult& run) {
  std::vector<std::size_t> order;
  const auto add = [&](const auto& wanted) {
    for (std::size_t i = 0; i < run.cases.size(); ++i)
      if (wanted(run.cases[i])) order.push_back(i);
  };
  const auto expected = [](const CaseResult& one) { return one.record.observed.in("fail"); };
  add([](const CaseResult& one) { return needs_attention(one); });
  add([&](const CaseResult& one) { return !needs_attention(one) && expected(one); });
  const std::size_t failed = order.size();
  add([&](const CaseResult& one) { return !needs_attention(one) && !expected(one); });
  if (order.size() > kDetailedCases)
    order.resize(std::clamp(failed + kDetailedOthers, kDetailedOthers, kDetailedCases));
  return {order.begin(), order.end()};
}

/// Some cases with what is known of them beyond their records.
struct Chunk {
  std::string packed;  // their details
  std::map<std::size_t, Interval> gains;
  std::map<std::size_t, AttemptSpan> spans;
};

Chunk chunk_of(const RunResult& run, const PageFacts& facts, std::size_t begin,
               const std::set<std::size_t>& full) {
  Chunk chunk;
  json details = json::array();
  for (std::size_t i = begin; i < std::min(begin + kCasesOfAChunk, run.cases.size()); ++i) {
    const CaseResult& one = run.cases[i];
    const CaseDetail detail = full.contains(i) ? facts.detail_of(one.record) : CaseDetail{};
    if (detail.gain) chunk.gains[i] = *detail.gain;
    if (const auto span = facts.span_of(one.record)) chunk.spans[i] = *span;
    details.push_back(detail_json(one, detail, full.contains(i)));
  }
  chunk.packed = packed(details);
  return chunk;
}

/// All chunks in order. Most of the time goes into reading evidence, which threads share.
std::vector<Chunk> chunks(const RunResult& run, const PageFacts& facts) {
  const std::set<std::size_t> full = detailed(run);
  std::vector<Chunk> all((run.cases.size() + kCasesOfAChunk - 1) / kCasesOfAChunk);
  std::atomic<std::size_t> next = 0;
  const auto work = [&] {
    for (std::size_t i = next++; i < all.size(); i = next++)
      all[i] = chunk_of(run, facts, i * kCasesOfAChunk, full);
  };
  const std::size_t threads =
      std::min<std::size_t>({all.size(), std::max(1u, std::thread::hardware_concurrency()), 8});
  std::vector<std::future<void>> workers;
  for (std::size_t i = 0; i < threads; ++i) workers.push_back(std::async(std::launch::async, work));
  for (std::future<void>& worker : workers) worker.get();
  return all;
}

}  // namespace

PageData page_data(const RunResult& run, const PageFacts& facts) {
  PageData data;
  json& value = data.run;
  const record::ExitCode code = exit_code(run);
  value["run"] = run_json(run);
  value["exit_code"] = record::value(code);
  value["ending"] = name(run.ending);
  value["overview"] = {{"kind", name(facts.overview.kind)},
                       {"word", facts.overview.word},
                       {"sentence", facts.overview.sentence},
                       {"coverage", coverage_text(run)}};
  value["wall_seconds"] = rounded(run.wall_seconds);
  value["stack"] = stack_json(run.run.stack);
  value["environment"] = run.run.stack.environment;
  add_cases(value, run);
  add_axes(value, run);
  add_checks(value, run, *facts.catalogue);
  add_figures(value["cases"], run);

  value["gains"] = json::object();
  value["spans"] = json::array();
  for (Chunk& chunk : chunks(run, facts)) {
    data.chunks.push_back(std::move(chunk.packed));
    for (const auto& [index, gain] : chunk.gains)
      value["gains"][std::to_string(index)] = {rounded(gain.low), rounded(gain.high)};
    for (const auto& [index, span] : chunk.spans)
      value["spans"].push_back({index, span.begin_ms, span.end_ms});
  }
  value["chunk_cases"] = kCasesOfAChunk;
  value["groups"] = groups_json(facts.overview);
  value["faults"] = faults_json(run, *facts.catalogue);
  value["benefit"] = json::array();
  for (const Benefit& one : benefits(run)) value["benefit"].push_back(to_json(one));
  value["benefit_by_axis"] = json::array();
  for (const AxisBenefit& one : benefits_by_axis(run))
    value["benefit_by_axis"].push_back(to_json(one));
  if (facts.hazards) value["hazards"] = hazards_json(*facts.hazards, *facts.catalogue);
  value["cross_run"] = cross_run_json(facts.cross_run);
  return data;
}

}  // namespace graphproof::reports
