#include "reports/history/history.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>

#include "matrix/case/case.h"
#include "matrix/input/input_error.h"
#include "reports/outcome/outcome.h"

namespace graphproof::reports {
namespace {

// "gphi": tells a history from any other database.
constexpr std::int64_t kApplicationId = 0x67706869;

/// What brings a file from version i to version i + 1. A step never changes: files of every version
/// are in use. Rows of `results` are in the order of runs, so that adding a run appends.
constexpr std::array<const char*, 2> kMigrations = {
    R"(
CREATE TABLE stacks (fingerprint TEXT PRIMARY KEY, parts TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE runs (
  number INTEGER PRIMARY KEY, run_id TEXT NOT NULL UNIQUE, started TEXT NOT NULL,
  profile TEXT NOT NULL, device TEXT NOT NULL,
  fingerprint TEXT NOT NULL REFERENCES stacks (fingerprint),
  cases INTEGER NOT NULL, failed INTEGER NOT NULL, not_shown INTEGER NOT NULL,
  case_seconds REAL NOT NULL);
CREATE TABLE cases (
  number INTEGER PRIMARY KEY, case_id TEXT NOT NULL UNIQUE, name TEXT NOT NULL);
CREATE TABLE results (
  run INTEGER NOT NULL REFERENCES runs (number), case_number INTEGER NOT NULL,
  verdict TEXT NOT NULL, standing INTEGER NOT NULL, step_ms REAL,
  PRIMARY KEY (run, case_number)) WITHOUT ROWID;
)",
    R"(
CREATE TABLE accepted (
  case_number INTEGER PRIMARY KEY, verdict TEXT NOT NULL, reason TEXT NOT NULL,
  owner TEXT NOT NULL, until TEXT NOT NULL, accepted TEXT NOT NULL, run_id TEXT NOT NULL);
)"};
constexpr auto kVersion = static_cast<std::int64_t>(kMigrations.size());

/// Reads everything that shows whether the file can be used, before anything is written.
std::int64_t version_of(Database& database) {
  const std::int64_t version = database.number("PRAGMA user_version");
  const std::int64_t tables = database.number("SELECT count(*) FROM sqlite_master");
  const std::int64_t application = database.number("PRAGMA application_id");
  if (tables > 0 && application != kApplicationId)
    throw matrix::InputError({"this file is no history", database.file().string(),
                              "a file that `graphproof history add` made",
                              "it is a database of another program, and stays as it is",
                              "choose another file with --history"});
  if (version > kVersion)
    throw matrix::InputError({"the history is of a newer version",
                              database.file().string() + ": version " + std::to_string(version),
                              "version " + std::to_string(kVersion) + " at most",
                              "this version would not understand it, and leaves it as it is",
                              "use the newer graphproof, or another file with --history"});
  return tables == 0 ? 0 : version;
}

/// The time of a step with graphs; absent if it was not measured.
SqlValue step_ms(const record::Record& record) {
  for (const char* figure : {"graph_step_ms", "replay_ms"})
    if (const auto found = record.figures.find(figure);
        found != record.figures.end() && found->second > 0)
      return found->second;
  return std::monostate();
}

/// The stack of a run as the history keeps it.
struct StackRow {
  std::string fingerprint, parts;

  explicit StackRow(const record::Run& run) : parts(nlohmann::json(stack_parts(run)).dump()) {
    fingerprint = matrix::sha256_hex(parts).substr(0, 16);
  }
};

std::map<std::string, std::string> parts_of(Database& database, const std::string& fingerprint) {
  Query query(database, "SELECT parts FROM stacks WHERE fingerprint = ?");
  if (!query.bind({fingerprint}).next()) return {};
  const auto parts = nlohmann::json::parse(query.text(0), nullptr, false);
  return parts.is_object() ? parts.get<std::map<std::string, std::string>>()
                           : std::map<std::string, std::string>();
}

/// The parts of stacks by fingerprint, as far as they were asked for.
using Stacks = std::map<std::string, std::map<std::string, std::string>>;

/// Fills in first_bad, last_good, changed and suspects.
void explain(CaseHistory& history, Stacks& stacks, Database& database) {
  // The latest series begins with the last change from acceptable to failed, or with the first
  // failure of a case that was never acceptable before.
  const HistoryResult* before = nullptr;
  for (const HistoryResult& one : history.results) {
    if (one.standing == Standing::not_shown) continue;
    if (one.standing == Standing::failed &&
        (before == nullptr || before->standing == Standing::acceptable)) {
      history.first_bad = one;
      history.last_good = before == nullptr ? std::nullopt : std::optional(*before);
    }
    before = &one;
  }
  if (!history.first_bad) return;
  for (const HistoryResult& one : history.results)
    if (!stacks.contains(one.fingerprint))
      stacks[one.fingerprint] = parts_of(database, one.fingerprint);
  if (history.last_good)
    history.changed = stack_changes(stacks[history.last_good->fingerprint],
                                    stacks[history.first_bad->fingerprint]);

  std::map<std::string, std::set<std::string>> of_good, of_bad;
  bool any_good = false;
  for (const HistoryResult& one : history.results) {
    if (one.standing == Standing::not_shown) continue;
    any_good = any_good || one.standing == Standing::acceptable;
    for (const auto& [part, value] : stacks[one.fingerprint])
      (one.standing == Standing::acceptable ? of_good : of_bad)[part].insert(value);
  }
  if (!any_good) return;
  for (const auto& [part, values] : of_bad)
    if (values.size() == 1 && !of_good[part].contains(*values.begin()))
      history.suspects.push_back(part + " " + *values.begin());
}

}  // namespace

History::History(const std::filesystem::path& file, Database::Mode mode, int patience_ms)
    : database_(file, mode, patience_ms) {
  const std::int64_t version = version_of(database_);
  if (mode == Database::Mode::read) {
    if (version == kVersion) return;
    if (version == 0)
      throw matrix::InputError({"the history is empty", file.string(), "a history with runs", "",
                                "add runs: graphproof history add"});
  }
  if (version == kVersion) return;
  database_.use_wal();
  Transaction transaction(database_);
  // Another process may have done it meanwhile.
  const std::int64_t now = version_of(database_);
  for (std::int64_t step = now; step < kVersion; ++step)
    database_.execute(kMigrations[static_cast<std::size_t>(step)]);
  database_.execute("PRAGMA application_id = " + std::to_string(kApplicationId));
  database_.execute("PRAGMA user_version = " + std::to_string(kVersion));
  transaction.commit();
}

std::int64_t History::case_number(const std::string& case_id, const std::string& name) {
  Query find(database_, "SELECT number FROM cases WHERE case_id = ?");
  if (find.bind({case_id}).next()) return find.integer(0);
  Query(database_, "INSERT INTO cases (case_id, name) VALUES (?, ?)").run({case_id, name});
  return database_.last_row();
}

bool History::add(const RunResult& run) {
  const StackRow stack(run.run);
  std::int64_t failed = 0, not_shown = 0;
  double case_seconds = 0;
  for (const CaseResult& one : run.cases) {
    failed += standing(one.record) == Standing::failed;
    not_shown += standing(one.record) == Standing::not_shown;
    case_seconds += one.record.seconds;
  }

  Transaction transaction(database_);
  Query find(database_, "SELECT number FROM runs WHERE run_id = ?");
  const bool known = find.bind({run.run.run_id}).next();
  if (known) {
    const std::int64_t number = find.integer(0);
    Query(database_, "DELETE FROM results WHERE run = ?").run({number});
    Query(database_, "DELETE FROM runs WHERE number = ?").run({number});
  }
  Query(database_, "INSERT OR IGNORE INTO stacks VALUES (?, ?)")
      .run({stack.fingerprint, stack.parts});
  Query(database_,
        "INSERT INTO runs (run_id, started, profile, device, fingerprint, cases, failed, "
        "not_shown, case_seconds) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)")
      .run({run.run.run_id, run.run.started, run.run.profile, run.run.device, stack.fingerprint,
            static_cast<std::int64_t>(run.cases.size()), failed, not_shown, case_seconds});
  const std::int64_t number = database_.last_row();
  // In the order of case numbers, so that rows are appended.
  std::map<std::int64_t, const CaseResult*> by_number;
  for (const CaseResult& one : run.cases) by_number[case_number(one.plan.id, one.plan.name)] = &one;
  Query insert(database_, "INSERT INTO results VALUES (?, ?, ?, ?, ?)");
  for (const auto& [case_number, one] : by_number)
    insert.run({number, case_number, std::string(one->record.verdict.text()),
                static_cast<std::int64_t>(standing(one->record)), step_ms(one->record)});
  transaction.commit();
  return !known;
}

std::vector<HistoryRun> History::runs(int limit) {
  std::vector<HistoryRun> all;
  std::vector<std::int64_t> numbers;
  Query query(database_,
              "SELECT number, run_id, started, profile, device, fingerprint, cases, failed, "
              "not_shown, case_seconds FROM runs ORDER BY started DESC, number DESC LIMIT ?");
  query.bind({static_cast<std::int64_t>(limit)});
  while (query.next()) {
    numbers.push_back(query.integer(0));
    all.push_back({.run_id = query.text(1),
                   .started = query.text(2),
                   .profile = query.text(3),
                   .device = query.text(4),
                   .fingerprint = query.text(5),
                   .cases = static_cast<int>(query.integer(6)),
                   .failed = static_cast<int>(query.integer(7)),
                   .not_shown = static_cast<int>(query.integer(8)),
                   .case_seconds = query.real(9)});
  }
  std::reverse(all.begin(), all.end());
  std::reverse(numbers.begin(), numbers.end());

  Query pairs(database_,
              "SELECT now.step_ms, old.step_ms FROM results AS now JOIN results AS old "
              "ON old.run = ? AND old.case_number = now.case_number "
              "WHERE now.run = ? AND now.standing = 0 AND old.standing = 0 "
              "AND now.step_ms IS NOT NULL AND old.step_ms IS NOT NULL");
  std::map<std::pair<std::string, std::string>, std::int64_t> before;
  for (std::size_t i = 0; i < all.size(); ++i) {
    auto& earlier = before[{all[i].profile, all[i].device}];
    if (earlier != 0) {
      double sum = 0;
      pairs.bind({earlier, numbers[i]});
      while (pairs.next()) {
        sum += std::log(pairs.real(0) / pairs.real(1));
        ++all[i].step_pairs;
      }
      if (all[i].step_pairs > 0) all[i].step_ratio = std::exp(sum / all[i].step_pairs);
    }
    earlier = numbers[i];
  }
  return all;
}

CaseHistory History::show(const std::string& text) {
  Query find(database_,
             "SELECT number, case_id, name FROM cases WHERE name = ?1 OR "
             "(length(?1) >= 4 AND substr(case_id, 1, length(?1)) = ?1) LIMIT 2");
  if (!find.bind({text}).next())
    throw matrix::InputError({"no such case in the history", "`" + text + "`",
                              "the name of a case, or at least four digits of its id", "",
                              "graphproof list cases shows those of a run"});
  const std::int64_t number = find.integer(0);
  CaseHistory history{.case_id = find.text(1), .name = find.text(2)};
  if (find.next())
    throw matrix::InputError({"several cases of the history begin so", "`" + text + "`",
                              "the id of one case", history.case_id + " and " + find.text(1),
                              "give more digits"});
  Query query(database_,
              "SELECT run_id, started, verdict, fingerprint, standing, step_ms FROM runs "
              "JOIN results ON results.run = runs.number AND results.case_number = ? "
              "ORDER BY started, runs.number");
  query.bind({number});
  while (query.next())
    history.results.push_back(
        {.run_id = query.text(0),
         .started = query.text(1),
         .verdict = query.text(2),
         .fingerprint = query.text(3),
         .standing = static_cast<Standing>(query.integer(4)),
         .step_ms = query.null(5) ? std::nullopt : std::optional(query.real(5))});
  Stacks stacks;
  explain(history, stacks, database_);
  return history;
}

std::vector<FlakyCase> History::flaky(int limit) {
  std::vector<FlakyCase> found;
  Query query(
      database_,
      "SELECT case_id, name, fingerprint, sum(standing = 1 OR verdict = 'flaky') AS failed, "
      "count(*) AS trials "
      "FROM (SELECT number, fingerprint FROM runs ORDER BY started DESC, number DESC LIMIT ?) AS r "
      "JOIN results ON results.run = r.number JOIN cases ON cases.number = results.case_number "
      "WHERE standing != 2 GROUP BY case_number, fingerprint "
      "HAVING (failed > 0 AND failed < trials) OR sum(verdict = 'flaky') > 0");
  query.bind({static_cast<std::int64_t>(limit)});
  while (query.next()) {
    FlakyCase one{.case_id = query.text(0),
                  .name = query.text(1),
                  .fingerprint = query.text(2),
                  .failed = static_cast<int>(query.integer(3)),
                  .trials = static_cast<int>(query.integer(4))};
    one.rate = wilson(one.failed, one.trials);
    found.push_back(std::move(one));
  }
  // A rate around a half is the least certain to show in one run.
  std::stable_sort(found.begin(), found.end(), [](const FlakyCase& left, const FlakyCase& right) {
    const auto distance = [](const FlakyCase& one) {
      return std::abs(static_cast<double>(one.failed) / one.trials - 0.5);
    };
    return distance(left) < distance(right);
  });
  return found;
}

namespace {

/// What one earlier run says about one case.
struct Seen {
  std::optional<record::Verdict> verdict;  // nothing if it does not have the case
  Standing standing = Standing::not_shown;
};

/// By case of `run` and by earlier run: `numbers` are those of the earlier runs.
std::vector<std::vector<Seen>> seen_before(const RunResult& run,
                                           const std::vector<std::int64_t>& numbers,
                                           Database& database) {
  std::map<std::int64_t, std::size_t> index_of;
  Query find(database, "SELECT number FROM cases WHERE case_id = ?");
  for (std::size_t i = 0; i < run.cases.size(); ++i)
    if (find.bind({run.cases[i].plan.id}).next()) index_of[find.integer(0)] = i;
  std::vector<std::vector<Seen>> seen(run.cases.size(), std::vector<Seen>(numbers.size()));
  Query results(database, "SELECT case_number, verdict, standing FROM results WHERE run = ?");
  for (std::size_t r = 0; r < numbers.size(); ++r) {
    results.bind({numbers[r]});
    while (results.next())
      if (const auto found = index_of.find(results.integer(0)); found != index_of.end())
        seen[found->second][r] = {record::Verdict::from(results.text(1)),
                                  static_cast<Standing>(results.integer(2))};
  }
  return seen;
}

/// The history of a case over the earlier runs and this one, which comes last.
CaseHistory history_of(const RunResult& run, const CaseResult& one, const std::string& fingerprint,
                       const std::vector<EarlierRun>& runs, const std::vector<Seen>& seen) {
  CaseHistory history{.case_id = one.plan.id, .name = one.plan.name};
  const auto add = [&](const EarlierRun& in, record::Verdict verdict, Standing standing) {
    history.results.push_back({.run_id = in.run_id,
                               .started = in.started,
                               .verdict = std::string(verdict.text()),
                               .fingerprint = in.fingerprint,
                               .standing = standing,
                               .step_ms = {}});
  };
  for (std::size_t r = 0; r < runs.size(); ++r)
    if (seen[r].verdict) add(runs[r], *seen[r].verdict, seen[r].standing);
  add({run.run.run_id, run.run.started, fingerprint}, one.record.verdict, standing(one.record));
  return history;
}

/// The case if it both failed and was acceptable, or was flaky, on one stack.
std::optional<FlakyCase> flaky_case(const CaseHistory& history, const std::string& fingerprint) {
  FlakyCase flaky{
      .case_id = history.case_id, .name = history.name, .fingerprint = fingerprint, .rate = {}};
  bool seen_flaky = false;
  for (const HistoryResult& one : history.results) {
    if (one.fingerprint != fingerprint || one.standing == Standing::not_shown) continue;
    ++flaky.trials;
    flaky.failed += one.standing == Standing::failed;
    seen_flaky = seen_flaky || one.verdict == "flaky";
  }
  if ((flaky.failed == 0 || flaky.failed == flaky.trials) && !seen_flaky) return std::nullopt;
  flaky.rate = wilson(flaky.failed, flaky.trials);
  return flaky;
}

}  // namespace

CrossRunFacts History::before(const RunResult& run) {
  CrossRunFacts facts;
  std::vector<std::int64_t> numbers;
  Query query(database_,
              "SELECT * FROM (SELECT number, run_id, started, fingerprint, profile FROM runs WHERE "
              "device = ? AND run_id != ? AND started <= ? ORDER BY started DESC, number DESC "
              "LIMIT ?) ORDER BY started, number");
  query.bind(
      {run.run.device, run.run.run_id, run.run.started, static_cast<std::int64_t>(kEarlierRuns)});
  std::size_t last = 0;  // index of the last run of this profile, if facts.last_run is set
  while (query.next()) {
    if (query.text(4) == run.run.profile) {
      facts.last_run = query.text(1);
      last = facts.runs.size();
    }
    numbers.push_back(query.integer(0));
    facts.runs.push_back({query.text(1), query.text(2), query.text(3)});
  }
  if (facts.runs.empty()) {
    facts.unknown = "The history has no earlier run on this kind of device.";
    return facts;
  }
  const auto seen = seen_before(run, numbers, database_);
  const StackRow stack(run.run);
  Stacks stacks = {{stack.fingerprint, stack_parts(run.run)}};
  if (!facts.last_run.empty())
    facts.stack_changes = stack_changes(parts_of(database_, facts.runs[last].fingerprint),
                                        stacks.at(stack.fingerprint));
  facts.verdicts.resize(run.cases.size());
  for (std::size_t i = 0; i < run.cases.size(); ++i) {
    const Standing now = standing(run.cases[i].record);
    const Standing then = facts.last_run.empty() ? Standing::not_shown : seen[i][last].standing;
    if (then == Standing::acceptable && now == Standing::failed) facts.broke.push_back(i);
    if (then == Standing::failed && now == Standing::acceptable) facts.healed.push_back(i);
    bool ever_failed = now == Standing::failed;
    for (const Seen& one : seen[i]) {
      facts.verdicts[i].push_back(one.verdict);
      ever_failed = ever_failed || one.standing == Standing::failed;
    }
    if (!ever_failed) continue;  // most cases
    CaseHistory history = history_of(run, run.cases[i], stack.fingerprint, facts.runs, seen[i]);
    if (auto flaky = flaky_case(history, stack.fingerprint)) facts.flaky.emplace(i, *flaky);
    if (now != Standing::failed) continue;
    explain(history, stacks, database_);
    facts.failing.emplace(i, std::move(history));
  }
  return facts;
}

void History::accept(const AcceptedFailure& failure) {
  Transaction transaction(database_);
  Query(database_, "INSERT OR REPLACE INTO accepted VALUES (?, ?, ?, ?, ?, ?, ?)")
      .run({case_number(failure.case_id, failure.name), failure.verdict, failure.reason,
            failure.owner, failure.until, failure.accepted, failure.run_id});
  transaction.commit();
}

std::vector<AcceptedFailure> History::accepted() {
  std::vector<AcceptedFailure> all;
  Query query(database_,
              "SELECT case_id, name, verdict, reason, owner, until, accepted, run_id FROM accepted "
              "JOIN cases ON cases.number = accepted.case_number ORDER BY until, case_id");
  while (query.next())
    all.push_back({query.text(0), query.text(1), query.text(2), query.text(3), query.text(4),
                   query.text(5), query.text(6), query.text(7)});
  return all;
}

namespace {

struct StateName {
  std::string_view name, meaning;
};
constexpr std::array<StateName, 5> kStates = {{
    {"new", "fails and is not accepted"},
    {"changed", "fails in another way than was accepted"},
    {"expired", "was accepted until a day that has passed"},
    {"accepted", "fails as was accepted"},
    {"healed", "was accepted and does not fail any more"},
}};

}  // namespace

std::string_view name(BaselineDifference::State state) {
  return kStates[static_cast<std::size_t>(state)].name;
}
std::string_view meaning(BaselineDifference::State state) {
  return kStates[static_cast<std::size_t>(state)].meaning;
}

std::vector<BaselineDifference> baseline_difference(const RunResult& run,
                                                    const std::vector<AcceptedFailure>& accepted,
                                                    const std::string& today) {
  using State = BaselineDifference::State;
  std::map<std::string, const AcceptedFailure*> known;
  for (const AcceptedFailure& one : accepted) known.emplace(one.case_id, &one);
  std::vector<BaselineDifference> found;
  for (const CaseResult& one : run.cases) {
    const auto excuse = known.find(one.plan.id);
    const Standing now = standing(one.record);
    if (now == Standing::not_shown || (now == Standing::acceptable && excuse == known.end()))
      continue;
    BaselineDifference difference{.state = State::fresh,
                                  .case_id = one.plan.id,
                                  .name = one.plan.name,
                                  .verdict = std::string(one.record.verdict.text()),
                                  .accepted = {}};
    if (excuse != known.end()) {
      difference.accepted = *excuse->second;
      // As outcome rules 86 and 87 judge a known issue.
      if (now == Standing::acceptable)
        difference.state = State::healed;
      else if (!one.record.verdict.in(excuse->second->verdict))
        difference.state = State::changed;
      else
        difference.state = today <= excuse->second->until ? State::accepted : State::expired;
    }
    found.push_back(std::move(difference));
  }
  std::stable_sort(found.begin(), found.end(),
                   [](const BaselineDifference& left, const BaselineDifference& right) {
                     return left.state < right.state;
                   });
  return found;
}

record::ExitCode exit_code(const RunResult& run,
                           const std::vector<BaselineDifference>& differences) {
  using State = BaselineDifference::State;
  record::ExitCode code = record::ExitCode::ok;
  for (const BaselineDifference& one : differences)
    if (one.state != State::accepted && one.state != State::healed)
      code = record::stronger(code, record::ExitCode::product);
  for (const CaseResult& one : run.cases)
    if (standing(one.record) == Standing::not_shown)
      code = record::stronger(code, exit_code(one.record.verdict, one.record.rule));
  return code;
}

}  // namespace graphproof::reports
