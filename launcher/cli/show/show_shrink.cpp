#include "launcher/cli/show/show_shrink.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <ctime>

#include "matrix/case/case.h"
#include "reports/record/text/printable.h"

namespace graphproof::cli {
namespace {

using record::Json;
using record::printable;

constexpr int kExcusedDays = 30;

bool located(const ShrinkResult& result) {
  using enum shrink::State;
  const shrink::State state = result.answer.state;
  return state == confirmed ||
         (state != not_reproduced && state != wide && result.answer.probability >= shrink::kSure);
}

std::vector<std::string> names(const std::vector<int>& parameters, const shrink::Space& space) {
  std::vector<std::string> found;
  for (const int parameter : parameters)
    found.push_back(space.axes()[static_cast<std::size_t>(parameter)].name);
  return found;
}

/// How many rows failed and passed that have all values of the combination, or all but one.
struct Tally {
  std::string without;  // the axis whose value they do not have; empty for the whole combination
  int failed = 0, passed = 0;
};
std::vector<Tally> tallies(const ShrinkResult& result, const shrink::Space& space) {
  std::vector<Tally> found = {{}};
  for (const std::string& axis : names(result.answer.combination, space))
    found.push_back({.without = axis});
  for (const shrink::Evidence& one : result.evidence) {
    if (one.outcome == shrink::Outcome::invalid) continue;
    std::vector<std::size_t> lacking;
    for (std::size_t i = 0; i < result.answer.combination.size(); ++i) {
      const auto parameter = static_cast<std::size_t>(result.answer.combination[i]);
      if (one.row[parameter] != space.failing()[parameter]) lacking.push_back(i + 1);
    }
    if (lacking.size() > 1) continue;
    Tally& tally = found[lacking.empty() ? 0 : lacking.front()];
    ++(one.outcome == shrink::Outcome::fail ? tally.failed : tally.passed);
  }
  return found;
}

std::string_view word(shrink::Outcome outcome) {
  constexpr std::string_view kWords[] = {"pass", "fail", "invalid"};
  return kWords[static_cast<std::size_t>(outcome)];
}

/// What the state means for the reader.
std::string verdict_text(const ShrinkResult& result) {
  const double percent = 100 * result.answer.probability;
  switch (result.answer.state) {
    case shrink::State::confirmed:
      return fmt::format("confirmed, {:.1f} %", percent);
    case shrink::State::undecided:
      return fmt::format("not confirmed, {:.1f} %: no allowed case would tell more", percent);
    case shrink::State::wide:
      return fmt::format("more than {} values are needed: no smaller combination fails by itself",
                         shrink::kMostValues);
    case shrink::State::not_reproduced:
      return "it did not fail again: nothing can be located";
    case shrink::State::out_of_jobs:
      return fmt::format("not confirmed, {:.1f} %: --most-jobs is used up", percent);
    case shrink::State::no_outcomes:
      return "jobs gave no result: look at their verdicts";
    case shrink::State::running:
      return fmt::format("not confirmed, {:.1f} %: stopped before the end", percent);
  }
  return {};
}

std::string date_after(const std::string& today, int days) {
  std::tm day{};
  strptime(today.c_str(), "%Y-%m-%d", &day);
  const std::time_t later = timegm(&day) + std::time_t{days} * 24 * 3600;
  char text[16];
  std::tm utc{};
  std::strftime(text, sizeof text, "%Y-%m-%d", gmtime_r(&later, &utc));
  return text;
}

}  // namespace

nlohmann::ordered_json known_issue(const ShrinkResult& result, const shrink::Space& space) {
  if (!located(result) || result.answer.combination.empty()) return nullptr;
  return {{"id", "shrink-" + result.case_id.substr(0, 8)},
          {"expr", space.expression(result.answer.combination)},
          {"expect", result.failures.front().signature.verdict},
          {"owner", "unassigned"},
          {"until", date_after(result.today, kExcusedDays)}};
}

std::string reproducer(const ShrinkResult& result) {
  // Quoted for a shell if the name has brackets or quotes of JSON.
  const bool plain = result.smallest_name.find_first_of("[]\"'(){}|;&<>*?$ ") == std::string::npos;
  return "./graphproof repro " + (plain ? result.smallest_name : "'" + result.smallest_name + "'") +
         " --device " + result.device;
}

Json to_json(const ShrinkResult& result, const shrink::Space& space) {
  Json failures = Json::array(), jobs = Json::array(), evidence = Json::array(),
       combination = Json::object();
  for (const FailureGroup& group : result.failures)
    failures.push_back({{"verdict", group.signature.verdict},
                        {"check", group.signature.check},
                        {"what", group.signature.what},
                        {"cases", group.cases}});
  for (const ShrinkJob& job : result.jobs)
    jobs.push_back({{"purpose", job.purpose},
                    {"outcome", word(job.result.outcome)},
                    {"verdict", job.result.verdict},
                    {"case", job.result.case_id},
                    {"name", job.result.name},
                    {"folder", job.result.folder}});
  for (const Tally& tally : tallies(result, space))
    evidence.push_back(
        {{"without", tally.without}, {"failed", tally.failed}, {"passed", tally.passed}});
  for (const int parameter : result.answer.combination) {
    const matrix::VaryingAxis& axis = space.axes()[static_cast<std::size_t>(parameter)];
    const auto state =
        static_cast<std::size_t>(space.failing()[static_cast<std::size_t>(parameter)]);
    combination[axis.name] = state < axis.values.size() ? matrix::value_json(axis.values[state])
                                                        : nlohmann::json(nullptr);
  }
  Json same = Json::array();
  for (const auto& other : result.answer.same) same.push_back(space.name(other));
  return {{"schema", "graphproof-shrink/1"},
          {"run", result.run},
          {"case", result.case_id},
          {"name", result.name},
          {"device", result.device},
          {"folder", result.folder},
          {"ending", result.ending},
          {"state", shrink::name(result.answer.state)},
          {"failures", failures},
          {"run_evidence",
           {{"passed", result.passed},
            {"failed", result.failed},
            {"silent", result.silent},
            {"matrix_file", result.matrix_known}}},
          {"located", located(result)},
          {"combination",
           {{"axes", combination},
            {"name", space.name(result.answer.combination)},
            {"expr", space.expression(result.answer.combination)}}},
          {"same", same},
          {"probability", result.answer.probability},
          {"pass_triggered", result.answer.pass_triggered},
          {"irrelevant", names(result.answer.irrelevant, space)},
          {"implied", names(result.answer.implied, space)},
          {"open", names(result.answer.open, space)},
          {"fixed", names(result.answer.fixed, space)},
          {"evidence", evidence},
          {"jobs", jobs},
          {"smallest",
           {{"case", matrix::case_id(result.smallest)},
            {"name", result.smallest_name},
            {"reduced", result.reduced}}},
          {"known_issue", known_issue(result, space)},
          {"reproduce", reproducer(result)}};
}

void show_shrink(const ShrinkResult& result, const shrink::Space& space, std::ostream& out) {
  const shrink::Answer& answer = result.answer;
  const bool wide = answer.state == shrink::State::wide,
             again = answer.state != shrink::State::not_reproduced;
  out << fmt::format(
      "\n{} jobs ({} of them repeats, {} without a result){}\n", result.jobs.size(), answer.repeats,
      std::count_if(
          result.jobs.begin(), result.jobs.end(),
          [](const ShrinkJob& job) { return job.result.outcome == shrink::Outcome::invalid; }),
      result.ending == "finished" ? "" : "; stopped: " + result.ending);
  if (again && !wide) {
    const std::string values = answer.combination.empty()
                                   ? "(none: it fails whatever the axes are)"
                                   : printable(space.name(answer.combination));
    out << fmt::format("combination  {}   [{}]\n", values, verdict_text(result));
    for (const auto& other : answer.same)
      out << "   the same    " << printable(space.name(other))
          << " (the rules make both one condition)\n";
  } else {
    out << "combination  none: " << verdict_text(result) << "\n";
  }
  const std::pair<const char*, const std::vector<int>*> lists[] = {
      {"irrelevant   {} (changed in cases that failed all the same)\n", &answer.irrelevant},
      {"implied      {} (the rules allow no other value with the combination)\n", &answer.implied},
      {"open         {} (not shown to be irrelevant)\n", &answer.open},
      {"fixed        {} (one value in every allowed case)\n", &answer.fixed}};
  if (again)
    for (const auto& [line, axes] : lists)
      if (!axes->empty())
        out << fmt::format(fmt::runtime(line), fmt::join(names(*axes, space), " "));
  if (again && !wide) {
    out << "evidence     ";
    bool first = true;
    for (const Tally& tally : tallies(result, space)) {
      out << (first ? "" : "             ")
          << fmt::format("{:<34} {:>3} failed {:>3} passed\n",
                         tally.without.empty() ? "all of it" : "all but " + tally.without,
                         tally.failed, tally.passed);
      first = false;
    }
  }
  if (answer.pass_triggered >= 0.05)
    out << fmt::format("flaky        a case that has it passes about {:.0f} times in 100\n",
                       100 * answer.pass_triggered);
  if (!result.matrix_known)
    out << "rules        only the shipped ones: the matrix file of the run is absent or changed, "
           "so "
           "its own constraints are unknown\n";
  if (const auto issue = known_issue(result, space); !issue.is_null())
    out << "known issue  " << issue.dump() << "\n";
  out << "smallest     " << printable(result.smallest_name)
      << (result.reduced ? "" : " (not made smaller)") << "\n"
      << "reproduce    " << printable(reproducer(result)) << "\n"
      << "jobs in      " << result.run_name << "/" << result.folder << std::endl;
}

}  // namespace graphproof::cli
