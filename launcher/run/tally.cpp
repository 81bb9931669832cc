#include "launcher/run/tally.h"

#include <cstring>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "launcher/run/pending_work.h"
#include "reports/record/job/plan.h"
#include "reports/record/run/record.h"
#include "reports/record/text/file.h"

namespace graphproof::launcher {
namespace {

/// The text after the first `"key":"` of a line that record::to_line() wrote; empty if there is
/// none. Quotes within texts are escaped in JSON, so what is found is that key. A value with an
/// escape in it was not written by this project and is left to the parser.
std::string_view text_after(std::string_view line, std::string_view key_and_quote) {
  const std::size_t at = line.find(key_and_quote);
  if (at == line.npos) return {};
  const std::size_t begin = at + key_and_quote.size(), end = line.find('"', begin);
  if (end == line.npos || line.substr(begin, end - begin).find('\\') != line.npos) return {};
  return line.substr(begin, end - begin);
}

template <class Line>
void for_each_line(std::string_view text, Line&& use) {
  // A last line without its end is still being written.
  for (std::size_t begin = 0, end; (end = text.find('\n', begin)) != text.npos; begin = end + 1)
    use(text.substr(begin, end - begin));
}

/// The journal's lines of each case. Lines in which the case is not found at a glance are parsed.
std::unordered_map<std::string, std::vector<std::string_view>> lines_by_case(
    std::string_view journal, const std::filesystem::path& file) {
  std::unordered_map<std::string, std::vector<std::string_view>> lines;
  for_each_line(journal, [&](std::string_view line) {
    std::string id(text_after(line, "\"case\":\""));
    if (id.empty()) id = record::record_from(record::parse_json(line, file), file).case_id;
    lines[std::move(id)].push_back(line);
  });
  return lines;
}

/// Whether the verdict stands when the run is resumed, whichever rule gave it.
bool stands(std::string_view line) {
  const auto verdict = record::Verdict::from(text_after(line, "\"verdict\":\""));
  return verdict && !verdict->in("infra") && verdict->exit_code() != record::ExitCode::product;
}

}  // namespace

Resumable resumable(const std::filesystem::path& folder) {
  const std::filesystem::path plan_file = folder / "plan.jsonl",
                              journal_file = folder / "journal.jsonl";
  std::error_code absent;
  const std::string plan = record::read_text(plan_file);
  const std::string journal =
      std::filesystem::exists(journal_file, absent) ? record::read_text(journal_file) : "";
  const auto lines = lines_by_case(journal, journal_file);
  std::unordered_set<std::string> touched;
  for (const auto& entry : std::filesystem::directory_iterator(folder / "cases", absent))
    touched.insert(entry.path().filename());
  Resumable found;
  std::vector<record::PlanLine> open;
  std::vector<record::Record> records;
  for_each_line(plan, [&](std::string_view line) {
    const std::string id(text_after(line, "\"id\":\""));
    const bool glance = line.find("\"skip\":null") != line.npos && !id.empty();
    const auto own = lines.find(id);
    if (glance && own != lines.end() && stands(own->second.back())) {
      ++found.kept;
    } else if (glance && own == lines.end() && !touched.contains(id)) {
      ++found.run;
    } else {
      open.push_back(record::plan_line_from(record::parse_json(line, plan_file), plan_file));
      if (own == lines.end()) return;
      for (const std::string_view one : own->second)
        records.push_back(record::record_from(record::parse_json(one, journal_file), journal_file));
    }
  });
  const PendingWork left = pending_work(folder, open, records);
  found.kept += left.kept;
  found.run += static_cast<int>(left.attempts.size() + left.diagnoses.size());
  found.cut_off = left.cut_off;
  found.alone = static_cast<int>(left.diagnoses.size());
  found.judge = static_cast<int>(left.unjudged.size());
  return found;
}

Tally tally(const std::filesystem::path& folder) {
  const std::string plan = record::read_text(folder / "plan.jsonl");
  std::error_code absent;
  const std::filesystem::path journal_file = folder / "journal.jsonl";
  const std::string journal =
      std::filesystem::exists(journal_file, absent) ? record::read_text(journal_file) : "";
  std::unordered_map<std::string, std::string> verdicts;
  for_each_line(journal, [&](std::string_view line) {
    std::string id(text_after(line, "\"case\":\"")), verdict(text_after(line, "\"verdict\":\""));
    if (id.empty() || verdict.empty()) {
      const record::Record record =
          record::record_from(record::parse_json(line, journal_file), journal_file);
      id = record.case_id;
      verdict = record.verdict.text();
    }
    verdicts.insert_or_assign(std::move(id), std::move(verdict));
  });
  Tally tally;
  for_each_line(plan, [&](std::string_view line) {
    ++tally.planned;
    if (const auto found = verdicts.find(std::string(text_after(line, "\"id\":\"")));
        found != verdicts.end()) {
      ++tally.counts[found->second];
    } else if (line.find("\"skip\":null") != line.npos) {
      ++tally.not_run;
    } else {
      const record::PlanLine parsed = record::plan_line_from(
          record::parse_json(line, folder / "plan.jsonl"), folder / "plan.jsonl");
      ++(parsed.skip ? tally.counts[std::string(parsed.skip->verdict.text())] : tally.not_run);
    }
  });
  return tally;
}

}  // namespace graphproof::launcher
