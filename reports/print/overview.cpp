#include "reports/print/overview.h"

#include <algorithm>
#include <array>
#include <set>

#include "reports/outcome/faults.h"
#include "reports/outcome/outcome.h"
#include "reports/outcome/summary.h"

namespace graphproof::reports {
namespace {

using record::ExitCode;

// What a rank wrote may be long. The page of the case has all of it.
constexpr std::size_t kLongestText = 500;

struct KindRow {
  std::string_view name, label;
};
constexpr std::array<KindRow, 7> kKinds = {{{"product", "failed"},
                                            {"coverage", "not shown"},
                                            {"infra", "infrastructure"},
                                            {"interrupted", "interrupted"},
                                            {"expected", "expected to fail"},
                                            {"ok", "acceptable"},
                                            {"skipped", "skipped"}}};

Kind kind_of_code(ExitCode code) {
  switch (code) {
    case ExitCode::ok:
      return Kind::ok;
    case ExitCode::infrastructure:
      return Kind::infra;
    case ExitCode::coverage:
      return Kind::coverage;
    case ExitCode::interrupted:
      return Kind::interrupted;
    default:
      return Kind::product;
  }
}

/// What cases with a verdict of a family do. "%" stands for what the verdict says after the family.
struct Deed {
  std::string_view family, one, many, rest;
};
constexpr Deed kDeeds[] = {
    {"fail.hang", "hangs", "hang", " in %"},
    {"fail.sanitizer", "has", "have", " a kernel in which compute-sanitizer found an error"},
    {"fail.eager", "fails", "fail", " in eager already, so this is no defect of graphs"},
    {"fail.numerics", "computes", "compute", " something else than eager"},
    {"fail.capture", "fails", "fail", " to capture soundly"},
    {"fail.not_replayed", "does", "do", " not replay"},
    {"fail.constraint", "breaks", "break", " a rule"},
    {"fail.crash", "crashes", "crash", " (%)"},
    {"fail.silent", "ends", "end", " without a complete result"},
    {"fail.memory", "fails", "fail", " on memory (%)"},
    {"fail.cleanup", "leaves", "leave", " something behind (%)"},
    {"fail.isolation", "fails", "fail", " only next to other cases"},
    {"fail.survived", "holds", "hold", " a planted fault that no check caught"},
    {"fail.perf", "is", "are", " slower than the matrix allows"},
    {"xpass", "does", "do", " not fail any more, although the plan expects it"},
    {"unexercised", "leaves", "leave", " a required check without anything to look at"},
    {"not_run", "was", "were", " not run"},
    {"infra", "met", "met", " trouble of the infrastructure (%)"},
};

/// The lines that cure the group: of a hazard the settings with which the same cases passed,
/// otherwise the fix of the most likely cause. A fix whose own check did not fail is only a try.
std::vector<OverviewLine> cures(const FailureGroup& group, const RunResult& run,
                                const OverviewFacts& facts) {
  std::map<std::string, std::pair<int, int>> passed_of_tried;  // by setting
  if (facts.hazards) {
    std::set<std::string> ids;
    for (const std::size_t index : group.cases) ids.insert(run.cases[index].plan.id);
    for (const record::HazardCell& cell : facts.hazards->cells) {
      if (!cell.cure || !ids.contains(cell.case_id)) continue;
      auto& [passed, tried] = passed_of_tried[cell.cure->setting];
      passed += cell.cure->verdict.in("pass");
      ++tried;
    }
  }
  std::vector<OverviewLine> lines;
  for (const auto& [setting, count] : passed_of_tried) {
    const auto [passed, tried] = count;
    lines.push_back({"cure", setting,
                     passed < tried ? "With it " + std::to_string(passed) + " of " +
                                          std::to_string(tried) + " pass."
                     : tried == 1 ? "With it the same case passes."
                                  : "With it all " + std::to_string(tried) + " pass."});
  }
  const record::Record& first = run.cases[group.cases.front()].record;
  if (!lines.empty() || !first.observed.in("fail")) return lines;
  for (const Symptom& symptom : symptoms(first, facts.errors_of(first))) {
    if (symptom.likely.empty()) continue;
    const Cause& cause = symptom.likely[0];
    std::string fired;
    for (const std::string& one : cause.fired) fired += (fired.empty() ? "" : ", ") + one;
    lines.push_back({fired.empty() ? "try" : "cure", "",
                     cause.fix + (fired.empty() ? " (most common: " + cause.cause + ")"
                                                : " (" + cause.cause + "; " + fired + " failed)")});
    break;
  }
  return lines;
}

/// Where the group is: the values that its cases have in common, or its only case.
OverviewLine where(const FailureGroup& group, const RunResult& run) {
  const std::size_t count = group.cases.size();
  const Explanation& common = group.common;
  if (!common.expression.empty())
    return {"where", common.expression,
            (common.outside == 0 ? "all " : "holds for all ") + std::to_string(count) +
                " such cases, " + std::to_string(common.outside) + " of " +
                std::to_string(common.others) + " others"};
  if (count == 1) {
    const record::PlanLine& plan = run.cases[group.cases[0]].plan;
    return {"case", plan.id, plan.name.empty() ? "defaults" : plan.name};
  }
  return {"where", "", "No value of an axis tells these cases from the others."};
}

/// Since when the cases of a group fail; empty if the history does not know.
std::string since(const FailureGroup& group, const RunResult& run, const CrossRunFacts& known) {
  std::size_t fresh = 0;
  const HistoryResult* first = nullptr;
  for (const std::size_t index : group.cases) {
    const auto found = known.failing.find(index);
    if (found == known.failing.end() || !found->second.first_bad) continue;
    const HistoryResult& bad = *found->second.first_bad;
    if (bad.run_id == run.run.run_id)
      ++fresh;
    else if (first == nullptr || bad.started < first->started)
      first = &bad;
  }
  if (first == nullptr) return fresh > 0 ? "this run" : "";
  return "run " + first->run_id +
         (fresh > 0 ? "; " + std::to_string(fresh) + " of them since this run" : "");
}

/// What the plan says about cases whose failure it expects.
std::string known_text(const FailureGroup& group, const RunResult& run,
                       const matrix::Catalogue& catalogue) {
  std::set<std::string> titles;
  for (const std::size_t index : group.cases) {
    const record::Expect& expect = run.cases[index].plan.expect;
    if (expect.kind == "hazard")
      if (const matrix::Hazard* hazard = catalogue.hazards.find(expect.rule))
        if (hazard->expect != "pass") titles.insert(hazard->title);
    if (expect.kind == "known_issue")
      titles.insert("known issue " + expect.issue + ", " + expect.owner + ", until " +
                    expect.until);
  }
  std::string text;
  for (const std::string& one : titles) text += (text.empty() ? "" : "; ") + one;
  return text;
}

/// `text` without what follows kLongestText bytes, at the boundary of a character.
std::string shortened(std::string text) {
  if (text.size() <= kLongestText) return text;
  std::size_t end = kLongestText;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) --end;
  text.resize(end);
  return text + " ...";
}

OverviewGroup group_words(const FailureGroup& group, const RunResult& run,
                          const OverviewFacts& facts) {
  const CaseResult& first = run.cases[group.cases.front()];
  OverviewGroup words{.group = group,
                      .kind = kind_of(first),
                      .headline = plural(group.cases.size(), "case") + " " +
                                  deed(group.verdict, group.cases.size()),
                      .lines = {where(group, run)}};
  const auto add = [&](const char* label, const std::string& text) {
    if (!text.empty()) words.lines.push_back({label, "", shortened(text)});
  };
  if (first.record.failing.empty()) {
    add("seen", first.record.reason);
  } else {
    const record::Message& message = first.record.failing.front().message;
    add("seen", message.what);
    add("got", message.got);
    add("want", message.want);
    add("why", message.why);
  }
  add("known", known_text(group, run, facts.catalogue));
  for (OverviewLine& line : cures(group, run, facts)) words.lines.push_back(std::move(line));
  add("since", since(group, run, facts.cross_run));
  words.lines.push_back({"repro", run.repro(first.plan.id), ""});
  return words;
}

std::vector<std::string> news(const CrossRunFacts& known) {
  if (!known.unknown.empty()) return {known.unknown};
  if (known.last_run.empty())
    return {"The last " + plural(known.runs.size(), "run") +
            " on this kind of device had other profiles."};
  std::vector<std::string> all = {"since run " + known.last_run};
  if (!known.broke.empty()) all.push_back(plural(known.broke.size(), "case") + " broke");
  if (!known.healed.empty()) all.push_back(plural(known.healed.size(), "case") + " healed");
  if (known.broke.empty() && known.healed.empty()) all.emplace_back("no verdict changed");
  for (const StackChange& one : known.stack_changes) all.push_back(text_of(one));
  return all;
}

/// How many planted faults were caught, and what became of the others.
std::string caught_text(const std::vector<record::FaultResult>& planted) {
  using record::FaultStatus;
  std::map<FaultStatus, std::size_t> counts;
  for (const record::FaultResult& one : planted) ++counts[one.status];
  std::string text = std::to_string(counts[FaultStatus::killed]) + " of " +
                     plural(planted.size(), "planted fault") + " caught by " +
                     (counts[FaultStatus::killed] == 1 ? "its detector" : "their detectors");
  const std::pair<FaultStatus, const char*> others[] = {
      {FaultStatus::survived, " not caught"},
      {FaultStatus::killed_elsewhere, " caught by other checks only"},
      {FaultStatus::harmless, " without an effect here"},
      {FaultStatus::unexercised, " not tried here"}};
  for (const auto& [status, what] : others)
    if (counts[status] > 0) text += ", " + std::to_string(counts[status]) + what;
  return text + ".";
}

/// The word for the run and the sentence that belongs to it.
void add_verdict(Overview& words, const RunResult& run) {
  std::map<Kind, std::size_t> counts;
  for (const CaseResult& one : run.cases) ++counts[kind_of(one)];
  const auto ways = std::count_if(
      words.groups.begin(), words.groups.end(),
      [](const OverviewGroup& one) { return !one.group.expected && one.group.verdict.in("fail"); });
  const std::size_t failed = counts[Kind::product];
  const std::string of_all = " of " + plural(run.cases.size(), "case");
  const ExitCode code = exit_code(run);
  words.kind = kind_of_code(code);
  switch (code) {
    case ExitCode::ok:
      words.word = "Acceptable";
      words.sentence = std::to_string(counts[Kind::ok]) + of_all + " ended well.";
      break;
    case ExitCode::product:
      words.word = "Not acceptable";
      words.sentence = std::to_string(failed) + of_all + (failed == 1 ? " fails" : " fail") +
                       (ways > 0 ? " in " + plural(static_cast<std::size_t>(ways), "way") : "") +
                       ".";
      break;
    case ExitCode::infrastructure:
      words.word = "Not judged";
      words.sentence = "Only the infrastructure failed.";
      break;
    case ExitCode::coverage:
      words.word = "Not shown";
      words.sentence = "No failure, but not everything that was required was seen.";
      break;
    case ExitCode::interrupted:
      words.word = "Not finished";
      words.sentence =
          "The run was interrupted; ./graphproof resume " + run.run_name + " goes on with it.";
      break;
    default:
      words.word = "Fault of graphproof";
      words.sentence = std::string(record::meaning(code)) + ".";
  }

  const auto add = [&](const std::string& text) { words.sentence += " " + text; };
  const auto lost = std::count_if(run.cases.begin(), run.cases.end(), lost_evidence);
  if (lost > 0)
    add("The checks of " + plural(static_cast<std::size_t>(lost), "case") +
        " are gone (their folders have no checks.json), so nothing shows any more that their "
        "verdicts are right; where the evidence is left, report --judge-again helps.");
  for (const std::string& note : run.notes) add(note);
  // The first sentence has said it of a run that was interrupted.
  if (run.ending != Ending::finished &&
      (code != ExitCode::interrupted || run.ending != Ending::interrupted))
    add("The run did not finish (" + std::string(name(run.ending)) + ").");
  if (const std::size_t count = counts[Kind::expected]; count > 0)
    add(plural(count, "case") + (count == 1 ? " fails" : " fail") + ", as the plan expects.");
  if (const auto planted = faults(run); !planted.empty()) add(caught_text(planted));
  if (const std::size_t count = counts[Kind::coverage]; count > 0)
    add(plural(count, "case") + " did not show what was required.");
  if (const std::size_t count = counts[Kind::infra]; count > 0)
    add(plural(count, "case") + " met trouble of the infrastructure.");
  if (const std::size_t count = counts[Kind::skipped]; count > 0)
    add(plural(count, "case") + " skipped.");
}

}  // namespace

std::string_view name(Kind kind) { return kKinds[static_cast<std::size_t>(kind)].name; }
std::string_view label(Kind kind) { return kKinds[static_cast<std::size_t>(kind)].label; }

Kind kind_of(const CaseResult& one) {
  if (one.record.verdict.in("skipped")) return Kind::skipped;
  if (one.record.verdict.in("xfail")) return Kind::expected;
  return kind_of_code(exit_code(one.record.verdict, one.record.rule));
}

std::string plural(std::size_t count, const std::string& one) {
  return std::to_string(count) + " " + one + (count == 1 ? "" : "s");
}

std::string text_of(const StackChange& change) {
  return change.part + " " + change.left + " -> " + change.right;
}

std::string deed(record::Verdict verdict, std::size_t count) {
  const std::string text(verdict.text());
  const auto* const row = std::find_if(std::begin(kDeeds), std::end(kDeeds),
                                       [&](const Deed& one) { return verdict.in(one.family); });
  if (row == std::end(kDeeds)) return (count == 1 ? "ends " : "end ") + text;
  std::string rest(row->rest);
  if (const std::size_t at = rest.find('%'); at != std::string::npos)
    rest.replace(at, 1, text.substr(std::min(text.size(), row->family.size() + 1)));
  return std::string(count == 1 ? row->one : row->many) + rest;
}

std::string coverage_text(const RunResult& run) {
  const record::Coverage all = coverage(run);
  const bool lost = std::any_of(run.cases.begin(), run.cases.end(), lost_evidence) &&
                    all.unexercised == all.required_checks;
  return std::to_string(all.planned) + " planned = " + std::to_string(all.ran) + " ran + " +
         std::to_string(all.rejected) + " rejected + " + std::to_string(all.skipped) +
         " skipped + " + std::to_string(all.not_run) + " not run; " +
         (lost ? std::to_string(all.required_checks) + " required checks can no longer be shown"
               : std::to_string(all.unexercised) + " of " + std::to_string(all.required_checks) +
                     " required checks unexercised");
}

Overview overview(const RunResult& run, const OverviewFacts& facts) {
  Overview words;
  for (const FailureGroup& group : failure_groups(run))
    words.groups.push_back(group_words(group, run, facts));
  words.news = news(facts.cross_run);
  add_verdict(words, run);
  return words;
}

}  // namespace graphproof::reports
