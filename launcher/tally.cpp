#include "launcher/tally.h"

#include <cstring>
#include <string_view>
#include <unordered_map>

#include "reports/record/file.h"
#include "reports/record/plan.h"
#include "reports/record/record.h"

namespace graphproof::launcher {
namespace {

/// The text behind the first `"key":"` of a line that record::to_line() wrote; empty if there is none. Quotes within texts
/// are escaped in JSON, so what is found is that key; a value with an escape in it is none of ours and is left alone.
std::string_view text_behind(std::string_view line, std::string_view key_and_quote) {
  const std::size_t at = line.find(key_and_quote);
  if (at == line.npos) return {};
  const std::size_t begin = at + key_and_quote.size(), end = line.find('"', begin);
  if (end == line.npos || line.substr(begin, end - begin).find('\\') != line.npos) return {};
  return line.substr(begin, end - begin);
}

template <class Line>
void for_each_line(std::string_view text, Line&& use) {
  // A last line without its end is still being written.
  for (std::size_t begin = 0, end; (end = text.find('\n', begin)) != text.npos; begin = end + 1) use(text.substr(begin, end - begin));
}

}  // namespace

Tally tally(const std::filesystem::path& folder) {
  const std::string plan = record::read_text(folder / "plan.jsonl");
  std::error_code absent;
  const std::filesystem::path journal_file = folder / "journal.jsonl";
  const std::string journal = std::filesystem::exists(journal_file, absent) ? record::read_text(journal_file) : "";
  std::unordered_map<std::string, std::string> verdicts;
  for_each_line(journal, [&](std::string_view line) {
    std::string id(text_behind(line, "\"case\":\"")), verdict(text_behind(line, "\"verdict\":\""));
    if (id.empty() || verdict.empty()) {
      const record::Record record = record::record_from(record::parse_json(line, journal_file), journal_file);
      id = record.case_id;
      verdict = record.verdict.text();
    }
    verdicts.insert_or_assign(std::move(id), std::move(verdict));
  });
  Tally tally;
  for_each_line(plan, [&](std::string_view line) {
    ++tally.planned;
    if (const auto found = verdicts.find(std::string(text_behind(line, "\"id\":\""))); found != verdicts.end()) {
      ++tally.counts[found->second];
    } else if (line.find("\"skip\":null") != line.npos) {
      ++tally.not_run;
    } else {
      const record::PlanLine parsed = record::plan_line_from(record::parse_json(line, folder / "plan.jsonl"), folder / "plan.jsonl");
      ++(parsed.skip ? tally.counts[std::string(parsed.skip->verdict.text())] : tally.not_run);
    }
  });
  return tally;
}

}  // namespace graphproof::launcher
