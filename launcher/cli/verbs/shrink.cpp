// shrink: finds the values that make a case fail, from the results of the other cases of the run
// and from as few further jobs as possible, and then the smallest case that still fails. Exit code
// 0: the values are found and confirmed. 4: they are not (the case did not fail again, or no job
// would tell more). 3: every job was lost to the infrastructure. 5: stopped by the budget or a
// signal; the same command continues.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <ctime>
#include <memory>

#include "launcher/cli/device_option.h"
#include "launcher/cli/duration_option.h"
#include "launcher/cli/find_case.h"
#include "launcher/cli/planning.h"
#include "launcher/cli/show/show_shrink.h"
#include "launcher/cli/verb.h"
#include "launcher/run/run_folder.h"
#include "matrix/case/case.h"
#include "matrix/input/input_error.h"
#include "matrix/shrink/reduce.h"
#include "reports/record/text/file.h"
#include "reports/record/text/printable.h"

namespace graphproof::cli {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

// The accepted probability that a flaky case which still fails is taken for a passing one.
constexpr double kGivenUpWrongly = 0.05;

struct ShrinkOptions {
  std::string reference, budget, noise, device;
  int jobs = 1, most_jobs = 100;
  std::optional<std::uint64_t> seed;
  bool json = false;
};

std::optional<shrink::Noise> noise_of(const std::string& text) {
  if (text.empty()) return std::nullopt;
  double pass = -1, fail = -1;
  int read = 0;
  const bool good = std::sscanf(text.c_str(), "%lf,%lf%n", &pass, &fail, &read) == 2 &&
                    read == static_cast<int>(text.size()) && pass >= 0 && pass < 1 && fail >= 0 &&
                    fail < 1;
  if (!good)
    throw matrix::InputError(
        {"--assume-noise can't be read", text,
         "B,A: how often a job that has the fault passes, how often another fails",
         "both are shares from 0 to below 1",
         "write it as --assume-noise 0.3,0.02, or leave it out"});
  return shrink::Noise{pass, fail};
}

/// The failures of the run, grouped by signature. Those of `chosen` come first.
std::vector<FailureGroup> groups_of(const reports::RunResult& run,
                                    const reports::Signature& chosen) {
  std::vector<FailureGroup> groups = {{chosen, {}}};
  for (const reports::CaseResult& one : run.cases) {
    if (one.record.observed.exit_code() != record::ExitCode::product ||
        one.record.verdict.in("infra"))
      continue;
    const reports::Signature signature = reports::signature(one.record);
    auto group = std::find_if(groups.begin(), groups.end(), [&](const FailureGroup& other) {
      return other.signature == signature;
    });
    if (group == groups.end()) group = groups.insert(groups.end(), {signature, {}});
    group->cases.push_back(one.plan.id);
  }
  return groups;
}

const reports::CaseResult& failing_case(const reports::RunResult& run, const FoundCase& found) {
  const auto one = std::find_if(
      run.cases.begin(), run.cases.end(),
      [&](const reports::CaseResult& other) { return other.plan.id == found.line->id; });
  const record::Record& record = one->record;
  const std::string name = run.run_name + "/" + one->plan.id.substr(0, 8);
  if (record.observed.exit_code() != record::ExitCode::product)
    throw matrix::InputError(
        {"case " + name + " did not fail", std::string(record.verdict.text()),
         "a case whose verdict is fail.*",
         "there is nothing to locate in a case that passes, is skipped or was lost",
         "graphproof status " + run.run_name + " lists the failures"});
  if (record.verdict.in("fail.isolation"))
    throw matrix::InputError({"case " + name + " fails only after others in its batch",
                              "fail.isolation", "a case that fails alone",
                              "the jobs of a shrink are run alone, and this case passes alone",
                              "graphproof explain " + name + " names the cases before it"});
  return *one;
}

class Shrink {
 public:
  Shrink(const ShrinkOptions& options, Surroundings& surroundings)
      : options_(options),
        surroundings_(surroundings),
        noise_(noise_of(options.noise)),
        budget_ms_(duration_option_ms(options.budget, "--budget")),
        began_(Clock::now()) {
    if (options.jobs < 1 || options.most_jobs < 1)
      throw matrix::InputError({"--jobs and --most-jobs must be positive",
                                std::to_string(std::min(options.jobs, options.most_jobs)),
                                "1 or more", "",
                                "leave them out for one job at a time, " +
                                    std::to_string(ShrinkOptions{}.most_jobs) + " at most"});
  }

  record::ExitCode execute() {
    const FoundCase found = find_case(options_.reference, surroundings_);
    if (!found.run)
      throw matrix::InputError({"no recorded run has this case", "`" + options_.reference + "`",
                                "RUN/CASE, a case that failed in a run",
                                "a shrink starts from the results of the other cases of that run",
                                "run it first: graphproof repro " + options_.reference});
    reports::RunResult run = launcher::read_run(*found.run);
    const std::vector<std::string> ids = launcher::run_ids(surroundings_.runs);
    run.run_name = std::find(ids.begin(), ids.end(), run.run.run_id) != ids.end()
                       ? run.run.run_id
                       : found.run->string();
    const reports::CaseResult& failing = failing_case(run, found);
    const reports::Signature signature = reports::signature(failing.record);
    const launcher::Device device =
        device_of(options_.device.empty() ? run.run.device : options_.device, surroundings_,
                  options_.device.empty() ? run.run.options.sharing.without_other_cases()
                                          : record::GpuSharing());
    result_.run = run.run.run_id;
    result_.run_name = run.run_name;
    result_.case_id = failing.plan.id;
    result_.name = failing.plan.name;
    result_.device = device.name;
    result_.failures = groups_of(run, signature);
    result_.today = launcher::utc_text(std::time(nullptr)).substr(0, 10);

    // The other cases of the run and their outcomes. Cases with another planted fault are left out,
    // because they fail for another reason.
    std::vector<matrix::Case> others;
    std::vector<shrink::Outcome> outcomes;
    const auto fault_of = [&](const matrix::Case& one) {
      return matrix::text_of(surroundings_.catalogue.axes, one, "fault");
    };
    for (const reports::CaseResult& one : run.cases) {
      const matrix::Case test_case =
          matrix::case_from_json(surroundings_.catalogue.axes, one.plan.axes, "plan.jsonl");
      const bool ran = !one.plan.skip && one.plan.expect.kind != "rejected";
      if (!ran || one.plan.id == failing.plan.id ||
          fault_of(test_case) != fault_of(found.test_case))
        continue;
      others.push_back(test_case);
      outcomes.push_back(outcome_of(one, signature));
      ++(outcomes.back() == shrink::Outcome::pass   ? result_.passed
         : outcomes.back() == shrink::Outcome::fail ? result_.failed
                                                    : result_.silent);
    }
    const std::optional<matrix::MatrixFile> file = recorded_matrix(run.run, surroundings_);
    result_.matrix_known = file.has_value();
    const shrink::Space space(found.test_case, others, file ? &*file : nullptr,
                              surroundings_.catalogue, machine_of(device));
    shrink::Question question{.model = &space.model(),
                              .failing = space.failing(),
                              .seen = {},
                              .noise = noise_,
                              .seed = options_.seed.value_or(run.run.seed),
                              .most_jobs = options_.most_jobs};
    std::string evidence;
    for (std::size_t i = 0; i < others.size(); ++i) {
      question.seen.push_back({space.row_of(others[i]), outcomes[i]});
      evidence += matrix::case_id(others[i]) + std::to_string(static_cast<int>(outcomes[i]));
    }
    // The name of the folder depends on everything that was asked, so that the same command
    // continues and another one starts anew.
    const std::string asked =
        fmt::format("{} {} {} {} {} {}", question.seed, options_.jobs, options_.most_jobs,
                    options_.noise, device.name, evidence);
    result_.folder = "shrink/" + failing.plan.id + "-" + matrix::sha256_hex(asked).substr(0, 4);
    ShrinkJobs jobs(surroundings_, run, device, signature, *found.run, *found.run / result_.folder);
    begin(failing);

    shrink::Locator locator(std::move(question));
    result_.smallest = found.test_case;
    try {
      locate(locator, space, jobs);
      result_.answer = locator.answer();
      if (result_.ending == "finished" && result_.answer.state == shrink::State::confirmed)
        reduce(found.test_case, space, jobs);
    } catch (const Interrupted&) {
      result_.ending = "interrupted";
      result_.answer = locator.answer();
    }
    result_.evidence = locator.evidence();
    result_.smallest_name = matrix::case_name(surroundings_.catalogue.axes, result_.smallest);
    const record::Json json = to_json(result_, space);
    fs::create_directories(*found.run / result_.folder);
    record::write_json(*found.run / result_.folder / "shrink.json", json);
    if (options_.json)
      surroundings_.out << json.dump(2) << "\n";
    else
      show_shrink(result_, space, surroundings_.out);
    return exit_code();
  }

 private:
  /// Where progress is printed.
  std::ostream& progress() { return options_.json ? surroundings_.err : surroundings_.out; }

  void begin(const reports::CaseResult& failing) {
    progress() << "case         " << record::printable(failing.plan.name) << "\n"
               << "signature    "
               << record::printable(reports::to_text(result_.failures.front().signature)) << "\n";
    for (std::size_t i = 1; i < result_.failures.size(); ++i)
      progress() << "other        "
                 << record::printable(reports::to_text(result_.failures[i].signature))
                 << fmt::format(" ({} cases)\n", result_.failures[i].cases.size());
    progress() << fmt::format("other cases  {} passed, {} failed in the same way, {} say nothing\n",
                              result_.passed, result_.failed, result_.silent)
               << std::flush;
  }

  bool out_of_time() {
    const auto spent =
        std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - began_).count();
    if (budget_ms_ == 0 || spent < budget_ms_) return false;
    result_.ending = "budget";
    return true;
  }

  void note(const std::string& purpose, const JobResult& job) {
    result_.jobs.push_back({purpose, job});
    constexpr const char* kWords[] = {"pass", "FAIL", "-"};
    progress() << fmt::format("[{:>3}] {:<8} {:<5} {:<18} {}\n", result_.jobs.size(), purpose,
                              kWords[static_cast<std::size_t>(job.outcome)], job.verdict,
                              record::printable(job.name))
               << std::flush;
  }

  void locate(shrink::Locator& locator, const shrink::Space& space, ShrinkJobs& jobs) {
    while (!out_of_time()) {
      const std::vector<shrink::Job> wanted = locator.next_jobs(options_.jobs);
      if (wanted.empty()) return;
      std::vector<matrix::Case> cases;
      for (const shrink::Job& job : wanted) cases.push_back(space.case_of(job.row));
      const std::vector<JobResult> done = jobs.run(cases);
      for (std::size_t i = 0; i < wanted.size(); ++i) {
        note(std::string(shrink::name(wanted[i].purpose)), done[i]);
        locator.record(wanted[i].id, done[i].outcome);
      }
    }
  }

  void reduce(const matrix::Case& failing, const shrink::Space& space, ShrinkJobs& jobs) {
    std::set<std::string> keep;
    for (const int parameter : result_.answer.combination)
      keep.insert(space.axes()[static_cast<std::size_t>(parameter)].name);
    const double lucky = result_.answer.pass_triggered;
    const int tries =
        lucky < kGivenUpWrongly
            ? 1
            : static_cast<int>(std::ceil(std::log(kGivenUpWrongly) / std::log(lucky)));
    shrink::Reducer reducer(surroundings_.catalogue.axes, failing, keep, tries,
                            [&](const matrix::Case& one) { return jobs.allowed(one); });
    while (!out_of_time()) {
      const auto next = reducer.next();
      if (!next) break;
      const JobResult done = jobs.run({*next}).front();
      note("smaller", done);
      reducer.record(done.outcome);
      result_.smallest = reducer.smallest();
    }
    result_.reduced = result_.ending == "finished";
  }

  record::ExitCode exit_code() const {
    if (result_.ending != "finished") return record::ExitCode::interrupted;
    if (result_.answer.state == shrink::State::confirmed) return record::ExitCode::ok;
    const bool lost = !result_.jobs.empty() &&
                      std::all_of(result_.jobs.begin(), result_.jobs.end(),
                                  [](const ShrinkJob& job) { return job.result.infrastructure; });
    return lost ? record::ExitCode::infrastructure : record::ExitCode::coverage;
  }

  const ShrinkOptions& options_;
  Surroundings& surroundings_;
  const std::optional<shrink::Noise> noise_;
  const std::int64_t budget_ms_;
  const Clock::time_point began_;
  ShrinkResult result_;
};

}  // namespace

Action declare_shrink(CLI::App& app) {
  const auto options = std::make_shared<ShrinkOptions>();
  app.add_option("CASE", options->reference, "RUN/CASE: a case that failed, by id prefix or name")
      ->required()
      ->type_name("CASE");
  app.add_option("--jobs", options->jobs,
                 "jobs to choose at a time; 1 needs the fewest in total (default: 1)")
      ->type_name("N");
  app.add_option("--most-jobs", options->most_jobs,
                 "jobs at most to find the values; making the case smaller takes some more "
                 "(default: 100)")
      ->type_name("N");
  app.add_option("--budget", options->budget,
                 "start no more jobs after this time, such as 30m; the same command continues")
      ->type_name("TIME");
  app.add_option("--assume-noise", options->noise,
                 "how often a job that has the fault passes, and how often another job fails "
                 "(default: measured)")
      ->type_name("B,A");
  app.add_option("--seed", options->seed,
                 "the seed for the choice of jobs (default: the seed of the run)")
      ->type_name("N");
  app.add_option("--device", options->device, "where to run (default: the device of the run)")
      ->type_name(kDevices);
  app.add_flag("--json", options->json, "print one JSON object of graphproof-shrink/1");
  return [options](Surroundings& surroundings) { return Shrink(*options, surroundings).execute(); };
}

}  // namespace graphproof::cli
