#include "launcher/cli/show/show_record.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>
#include <vector>

#include "reports/record/evidence/evidence.h"
#include "reports/record/run/journal.h"
#include "reports/record/text/file.h"
#include "reports/record/text/printable.h"

namespace graphproof::cli {
namespace {

using nlohmann::json;
using record::printable;

std::string text_of(const json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end() || found->is_null()) return {};
  return found->is_string() ? found->get<std::string>() : found->dump();
}

/// Phases in order of appearance, the times of one phase and arm added up.
json phases_of(const record::Evidence& evidence) {
  json list = json::array();
  for (const record::PhaseLine& line : evidence.of<record::PhaseLine>()) {
    const std::string_view phase = record::name(line.phase);
    const auto same = std::find_if(list.begin(), list.end(), [&](const json& one) {
      return one["phase"] == phase && one["arm"] == line.arm;
    });
    if (same == list.end())
      list.push_back({{"phase", phase}, {"arm", line.arm}, {"ms", line.ms}});
    else
      (*same)["ms"] = (*same)["ms"].get<double>() + line.ms;
  }
  return list;
}

/// The number of comparisons of each quantity, and in full those that differ.
json compares_of(const record::Evidence& evidence) {
  std::map<std::string, std::pair<int, int>> counts;
  json differing = json::array();
  for (const record::CompareLine& line : evidence.of<record::CompareLine>()) {
    auto& [steps, equal_steps] = counts[line.compared];
    ++steps;
    equal_steps += line.equal;
    if (!line.equal) differing.push_back(json(record::line_json(line)));
  }
  json list = json::array();
  for (const auto& [subject, count] : counts)
    list.push_back({{"subject", subject}, {"steps", count.first}, {"equal", count.second}});
  return {{"subjects", list}, {"differing", differing}};
}

/// For each arm the number of steps and their mean time.
json steps_of(const record::Evidence& evidence) {
  json list = json::array();
  for (const record::StepLine& line : evidence.of<record::StepLine>()) {
    auto same = std::find_if(list.begin(), list.end(),
                             [&](const json& one) { return one["arm"] == line.arm; });
    if (same == list.end()) {
      list.push_back({{"arm", line.arm}, {"steps", 0}, {"mean_ms", 0.0}});
      same = std::prev(list.end());
    }
    const int steps = (*same)["steps"].get<int>();
    (*same)["mean_ms"] = ((*same)["mean_ms"].get<double>() * steps + line.ms) / (steps + 1);
    (*same)["steps"] = steps + 1;
  }
  return list;
}

/// The last state of the ranks that the launcher saw; null without a context.json.
json last_seen(const std::filesystem::path& attempt_folder) {
  try {
    return record::read_json(attempt_folder / "context.json").value("ranks", json());
  } catch (const record::ReadError&) {
    return nullptr;
  }
}

template <record::LineKind Line>
json lines_of(const record::Evidence& evidence) {
  json list = json::array();
  for (const Line& line : evidence.of<Line>()) list.push_back(json(record::line_json(line)));
  return list;
}

json rank_digest(const std::filesystem::path& attempt_folder, int rank) {
  json digest = {{"rank", rank}, {"complete", false}};
  record::Evidence evidence;
  try {
    evidence = record::read_evidence(attempt_folder / record::evidence_file_name(rank));
  } catch (const record::ReadError& error) {
    digest["dropped"] = {std::string(error.what())};
  }
  digest["complete"] = evidence.complete();
  digest["phases"] = phases_of(evidence);
  digest["steps"] = steps_of(evidence);
  digest["captures"] = lines_of<record::CaptureLine>(evidence);
  digest["compares"] = compares_of(evidence);
  digest["errors"] = lines_of<record::ErrorLine>(evidence);
  digest["refused"] = lines_of<record::RefusedLine>(evidence);
  if (!digest.contains("dropped")) digest["dropped"] = evidence.dropped;
  for (const record::DamagedLine& line : evidence.damaged)
    digest["dropped"].push_back(record::to_text(line));
  return digest;
}

void show_message(const char* indent, const record::Message& message, std::ostream& out) {
  const std::pair<const char*, const std::string*> parts[] = {{"got", &message.got},
                                                              {"want", &message.want},
                                                              {"why", &message.why},
                                                              {"next", &message.next}};
  for (const auto& [name, text] : parts)
    if (!text->empty())
      out << fmt::format("{}{:<5} {}\n", indent, std::string(name) + ":", printable(*text));
}

void show_rank(const json& digest, std::ostream& out) {
  out << fmt::format("rank {}: evidence {}\n", digest["rank"].get<int>(),
                     digest["complete"].get<bool>() ? "complete" : "incomplete");
  // The last state of a rank that finished is of no interest.
  if (const json& seen = digest["last_seen"]; !digest["complete"].get<bool>() && seen.is_object())
    out << printable(fmt::format("  last seen in phase {}, arm {}, step {}, last collective {}, {} "
                                 "ms ago; process {}",
                                 text_of(seen, "phase"), text_of(seen, "arm"),
                                 text_of(seen, "step"), text_of(seen, "collective"),
                                 text_of(seen, "silent_ms"), text_of(seen, "exit")))
        << "\n";
  for (const json& phase : digest["phases"])
    out << printable(fmt::format("  {:<16} {:<16} {:>9.1f} ms", text_of(phase, "phase"),
                                 text_of(phase, "arm"), phase["ms"].get<double>()))
        << "\n";
  for (const json& arm : digest["steps"])
    out << printable(fmt::format("  {:<16} {:<16} {:>9.1f} ms a step, {} steps", "steps",
                                 text_of(arm, "arm"), arm["mean_ms"].get<double>(),
                                 arm["steps"].get<int>()))
        << "\n";
  for (const json& capture : digest["captures"])
    out << "  capture " << printable(text_of(capture, "graph")) << " in "
        << printable(text_of(capture, "arm")) << ": " << printable(text_of(capture, "status"))
        << ", " << text_of(capture, "nodes") << " nodes, pool " << text_of(capture, "pool_bytes")
        << " bytes, " << text_of(capture, "ms") << " ms"
        << (text_of(capture, "message").empty() ? ""
                                                : ", " + printable(text_of(capture, "message")))
        << "\n";
  for (const json& subject : digest["compares"]["subjects"])
    out << fmt::format("  compared {}: {} of {} equal\n", printable(text_of(subject, "subject")),
                       subject["equal"].get<int>(), subject["steps"].get<int>());
  for (const json& row : digest["compares"]["differing"])
    out << "    step " << text_of(row, "step") << " " << printable(text_of(row, "left"))
        << " against " << printable(text_of(row, "right")) << ": "
        << printable(text_of(row, "mismatch")) << "\n";
  for (const char* kind : {"errors", "refused"})
    for (const json& row : digest[kind])
      out << "  " << kind << ": " << printable(row.dump()) << "\n";
  for (const json& text : digest["dropped"])
    out << "  left out: " << printable(text.get<std::string>()) << "\n";
}

}  // namespace

std::optional<record::Record> last_record(const std::filesystem::path& run,
                                          const std::string& case_id) {
  const auto records = record::last_records(record::read_journal(run / "journal.jsonl").records);
  const auto found = records.find(case_id);
  if (found == records.end()) return std::nullopt;
  return found->second;
}

void show_record(const record::Record& record, std::ostream& out) {
  out << fmt::format("verdict  {}  (observed {}, outcome rule {}: {})\n", record.verdict.text(),
                     record.observed.text(), record.rule, printable(record.reason));
  out << fmt::format("attempt  {} in batch {} on {}, isolation {}, {} ranks, {:.2f} s\n",
                     record.attempt, record.context.batch, record.context.device,
                     record.context.isolation, record.ranks, record.seconds);
  out << fmt::format("checks   {} pass, {} fail, {} unexercised, {} not applicable\n",
                     record.checks.pass, record.checks.fail, record.checks.unexercised,
                     record.checks.not_applicable);
  for (const auto& [name, value] : record.figures)
    out << fmt::format("  {:<24} {:.4g}\n", name, value);
  for (const record::Failing& failing : record.failing) {
    out << "  FAIL " << (failing.check.empty() ? "" : printable(failing.check) + "  ")
        << printable(failing.message.what)
        << (failing.rank ? fmt::format(" (rank {})", *failing.rank) : "") << "\n";
    show_message("       ", failing.message, out);
  }
}

void show_divergence(const std::string& text, std::ostream& out) {
  if (!text.empty()) out << "first divergent tensor: " << text << "\n";
}

json evidence_digest(const std::filesystem::path& attempt_folder, int ranks) {
  json list = json::array();
  const json seen = last_seen(attempt_folder);
  for (int rank = 0; rank < ranks; ++rank) {
    list.push_back(rank_digest(attempt_folder, rank));
    list.back()["last_seen"] =
        seen.is_array() && rank < static_cast<int>(seen.size()) ? seen[rank] : json();
  }
  return list;
}

void show_evidence(const std::filesystem::path& attempt_folder, int ranks, std::ostream& out) {
  for (const json& digest : evidence_digest(attempt_folder, ranks)) show_rank(digest, out);
}

}  // namespace graphproof::cli
