// How many jobs it takes, in simulation, to find out which values make a row fail: random faults in
// rows of a covering array, located by matrix/shrink and by FIC_BS (Zhang and Zhang: it fixes one
// failure-inducing value after the other by binary search), both with the results of the array's
// other rows. One thread; jobs are counted, not timed.
#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <bit>
#include <iostream>
#include <optional>
#include <string>
#include <vector>

#include "bench/cost.h"
#include "matrix/catalogue/catalogue.h"
#include "matrix/cover/cover.h"
#include "matrix/cover/files/model_file.h"
#include "matrix/plan/covering.h"
#include "matrix/shrink/locate.h"
#include "reports/record/text/file.h"

namespace {

using namespace graphproof;
using bench::cpu_seconds;
using shrink::Mask;

struct Arguments {
  std::string model;  // a file; empty: the shipped profile nightly
  int strength = 2, faults = 100;
  std::int64_t steps = 20'000;  // of the search for the array
  std::uint64_t seed = 1;
  int jobs = 1;                        // at the same time
  std::string only;                    // only rows of the table whose name begins like this
  std::optional<shrink::Noise> noise;  // assumed instead of the default
};

cover::Model model_of(const Arguments& arguments) {
  if (!arguments.model.empty())
    return cover::read_model(record::read_text(arguments.model), arguments.model,
                             cover::Format::automatic)
        .model;
  const matrix::Catalogue catalogue = matrix::load_catalogue();
  const matrix::MatrixFile file = matrix::shipped_matrix_file("nightly", catalogue);
  return matrix::cover_model(file, catalogue, {.device = "sim", .slots = 4, .stack = {}}, {}, true);
}

/// The rows that have all cells of one of the faults fail, except where the noise decides
/// otherwise.
class World {
 public:
  World(std::vector<cover::Cells> faults, shrink::Noise noise, std::uint64_t seed)
      : faults_(std::move(faults)), noise_(noise), random_(seed) {}

  static bool has(const cover::Row& row, const cover::Cells& cells) {
    return std::all_of(cells.begin(), cells.end(), [&](const cover::Cell& cell) {
      return row[static_cast<std::size_t>(cell.parameter)] == cell.value;
    });
  }
  bool fails(const cover::Row& row) {
    const bool triggered = std::any_of(faults_.begin(), faults_.end(),
                                       [&](const cover::Cells& cells) { return has(row, cells); });
    return triggered ? random_.unit() >= noise_.pass_triggered
                     : random_.unit() < noise_.fail_otherwise;
  }
  const std::vector<cover::Cells>& faults() const { return faults_; }

 private:
  std::vector<cover::Cells> faults_;
  shrink::Noise noise_;
  cover::Random random_;
};

/// Uses what is known of masks: a row within a passed one passes, a row around a failed one fails.
/// A row is run up to `repeats` times until it fails.
class FicBs {
 public:
  FicBs(shrink::Neighbourhood& around, World& world, const std::vector<shrink::Seen>& seen,
        int repeats, std::uint64_t seed)
      : around_(around), world_(world), repeats_(repeats), random_(seed) {
    for (const shrink::Seen& one : seen)
      know(around.mask(one.row), one.outcome == shrink::Outcome::fail);
    for (const shrink::Seen& one : seen)
      if (one.outcome == shrink::Outcome::pass) around.add_passed(one.row);
  }

  Mask run() {
    const Mask all = around_.mask(around_.failing());
    Mask found = 0, free = 0;
    for (int round = 0; round < 2 * shrink::kMostBits && jobs < 1000; ++round) {
      if (fails(found)) break;
      // Finds the shortest prefix of what is left whose change lets the row pass: its last value is
      // one of the fault's.
      std::vector<int> left;
      for (Mask bits = all & ~found & ~free; bits != 0; bits &= bits - 1)
        left.push_back(std::countr_zero(bits));
      std::size_t
          low = 0,
          high = left.size();  // with `low` of them changed it still fails, with `high` it passes
      while (high - low > 1) {
        const std::size_t middle = (low + high) / 2;
        Mask changed = free;
        for (std::size_t i = 0; i < middle; ++i) changed |= Mask{1} << left[i];
        (fails(all & ~changed) ? low : high) = middle;
      }
      if (left.empty()) break;
      for (std::size_t i = 0; i < low; ++i) free |= Mask{1} << left[i];
      found |= Mask{1} << left[low];
    }
    return found;
  }
  int jobs = 0;

 private:
  void know(Mask mask, bool failed) { (failed ? failed_ : passed_).push_back(mask); }
  bool fails(Mask keep) {
    for (const Mask mask : failed_)
      if ((mask & ~keep) == 0) return true;
    for (const Mask mask : passed_)
      if ((keep & ~mask) == 0) return false;
    const auto row = around_.row(keep, std::nullopt, shrink::Neighbourhood::Rest::bare, random_);
    bool failed = false;
    for (int i = 0; i < repeats_ && !failed; ++i) {
      ++jobs;
      failed = world_.fails(*row);
    }
    // A row in which not all values could be changed says nothing about `keep` when it fails. The
    // method takes it as if all had been changed.
    know(keep, failed);
    return failed;
  }

  shrink::Neighbourhood& around_;
  World& world_;
  int repeats_;
  cover::Random random_;
  std::vector<Mask> failed_, passed_;
};

struct Column {
  std::vector<int> jobs;
  int exact = 0;
  void add(int count, bool right) {
    jobs.push_back(count);
    exact += right ? 1 : 0;
  }
  double mean() const {
    double sum = 0;
    for (const int one : jobs) sum += one;
    return sum / static_cast<double>(jobs.size());
  }
  int p90() const {
    std::vector<int> sorted = jobs;
    std::sort(sorted.begin(), sorted.end());
    return sorted[(sorted.size() * 9 + 9) / 10 - 1];
  }
};

struct Scenario {
  const char* name;
  std::vector<int> sizes;  // values of each fault; 0: one to three
  shrink::Noise noise;
};

cover::Cells fault_of(const cover::Row& row, int size, cover::Random& random) {
  std::vector<int> parameters(row.size());
  for (std::size_t i = 0; i < row.size(); ++i) parameters[i] = static_cast<int>(i);
  cover::Cells cells;
  for (int i = 0; i < size; ++i) {
    const auto at = static_cast<std::size_t>(random.below(static_cast<int>(parameters.size())));
    cells.push_back({parameters[at], row[static_cast<std::size_t>(parameters[at])]});
    parameters.erase(parameters.begin() + static_cast<std::ptrdiff_t>(at));
  }
  return cells;
}

Mask mask_of(const shrink::Neighbourhood& around, const cover::Cells& cells) {
  Mask mask = 0;
  for (std::size_t bit = 0; bit < around.bits().size(); ++bit)
    for (const cover::Cell& cell : cells)
      if (around.bits()[bit].front() == cell.parameter) mask |= Mask{1} << bit;
  return mask;
}

struct Trial {
  World world;
  cover::Row failing;
  std::vector<shrink::Seen> seen;  // the results of the array's other rows
};

/// A random fault in a row of the array, and the results that the array then has; another fault
/// where no row shows it.
Trial trial_of(const std::vector<cover::Row>& array, const Scenario& scenario,
               cover::Random& random) {
  while (true) {
    std::vector<cover::Cells> faults;
    for (const int size : scenario.sizes)
      faults.push_back(
          fault_of(array[static_cast<std::size_t>(random.below(static_cast<int>(array.size())))],
                   size > 0 ? size : 1 + random.below(3), random));
    Trial trial{World(faults, scenario.noise, random.next()), {}, {}};
    std::vector<std::size_t> failing;
    for (std::size_t i = 0; i < array.size(); ++i) {
      trial.seen.push_back(
          {array[i], trial.world.fails(array[i]) ? shrink::Outcome::fail : shrink::Outcome::pass});
      // A row that failed by chance has no cause to be found.
      if (trial.seen.back().outcome == shrink::Outcome::fail &&
          World::has(array[i], faults.front()))
        failing.push_back(i);
    }
    if (failing.empty()) continue;
    const std::size_t chosen =
        failing[static_cast<std::size_t>(random.below(static_cast<int>(failing.size())))];
    trial.failing = array[chosen];
    trial.seen.erase(trial.seen.begin() + static_cast<std::ptrdiff_t>(chosen));
    return trial;
  }
}

void run(const Arguments& arguments) {
  const cover::Model model = model_of(arguments);
  std::vector<cover::Row> array;
  for (const cover::PlannedRow& row : cover::cover(model, {.strength = arguments.strength,
                                                           .seed = arguments.seed,
                                                           .steps = arguments.steps})
                                          .rows)
    array.push_back(row.cells);
  fmt::print("{}: {} parameters, {} rows at strength {}; {} faults a row, seed {}, {} at a time\n",
             arguments.model.empty() ? "profile nightly" : arguments.model, model.visible_count(),
             array.size(), arguments.strength, arguments.faults, arguments.seed, arguments.jobs);
  fmt::print("{:<18}{:>9}{:>6}{:>9}{:>6}{:>9}{:>8}{:>8}{:>9}{:>11}{:>6}{:>9}{:>9}\n", "scenario",
             "locate", "p90", "+confirm", "p90", "repeats", "rounds", "exact", "confirm.", "FIC_BS",
             "p90", "exact", "s each");
  constexpr shrink::Noise kNone{0, 0}, kFlaky{0.3, 0.02};
  const Scenario scenarios[] = {
      {"d=1", {1}, kNone},           {"d=2", {2}, kNone},
      {"d=3", {3}, kNone},           {"flaky d=1", {1}, kFlaky},
      {"flaky d=2", {2}, kFlaky},    {"flaky d=3", {3}, kFlaky},
      {"two faults", {0, 0}, kNone}, {"flaky two faults", {0, 0}, kFlaky}};
  for (const Scenario& scenario : scenarios) {
    if (!std::string(scenario.name).starts_with(arguments.only)) continue;
    cover::Random random(arguments.seed);
    Column locate, whole, fic;
    double repeats = 0, rounds = 0, confirmed = 0, seconds = 0;
    for (int i = 0; i < arguments.faults; ++i) {
      const Trial trial = trial_of(array, scenario, random);
      // Another fault that the failing row has is right as well.
      std::vector<cover::Cells> causes;
      for (const cover::Cells& fault : trial.world.faults())
        if (World::has(trial.failing, fault)) causes.push_back(fault);

      World world = trial.world;
      const double began = cpu_seconds();
      shrink::Locator locator({.model = &model,
                               .failing = trial.failing,
                               .seen = trial.seen,
                               .noise = arguments.noise,
                               .seed = random.next()});
      int jobs_before_sure = 0;
      for (auto jobs = locator.next_jobs(arguments.jobs); !jobs.empty();
           jobs = locator.next_jobs(arguments.jobs)) {
        if (jobs.front().purpose != shrink::Purpose::repeat) rounds += 1;
        for (const shrink::Job& job : jobs)
          locator.record(job.id,
                         world.fails(job.row) ? shrink::Outcome::fail : shrink::Outcome::pass);
      }
      const shrink::Answer answer = locator.answer();
      seconds += cpu_seconds() - began;
      for (const shrink::Evidence& one : locator.evidence())
        if (one.job && one.job->purpose == shrink::Purpose::locate) ++jobs_before_sure;
      std::vector<int> all(trial.failing.size());
      for (std::size_t k = 0; k < all.size(); ++k) all[k] = static_cast<int>(k);
      shrink::Neighbourhood around(model, trial.failing, all);
      const auto right = [&](Mask found) {
        return std::any_of(causes.begin(), causes.end(), [&](const cover::Cells& cells) {
          return around.closure(found) == around.closure(mask_of(around, cells));
        });
      };
      cover::Cells found;
      for (const int parameter : answer.combination) found.push_back({parameter, 0});
      const bool exact = answer.state == shrink::State::confirmed && right(mask_of(around, found));
      locate.add(jobs_before_sure, exact);
      whole.add(answer.jobs - answer.repeats, exact);
      repeats += answer.repeats;
      confirmed += answer.state == shrink::State::confirmed ? 1 : 0;

      World again = trial.world;
      FicBs classic(around, again, trial.seen, scenario.noise.pass_triggered > 0 ? 3 : 1,
                    random.next());
      const Mask by_classic = classic.run();
      fic.add(classic.jobs, right(by_classic));
    }
    const double count = arguments.faults;
    fmt::print(
        "{:<18}{:>9.2f}{:>6}{:>9.2f}{:>6}{:>9.2f}{:>8.2f}{:>8.3f}{:>9.3f}{:>11.2f}{:>6}{:>9.3f}{:>"
        "9.3f}\n",
        scenario.name, locate.mean(), locate.p90(), whole.mean(), whole.p90(), repeats / count,
        rounds / count, locate.exact / count, confirmed / count, fic.mean(), fic.p90(),
        fic.exact / count, seconds / count);
    std::fflush(stdout);
  }
}

}  // namespace

int main(int count, char** words) {
  Arguments arguments;
  std::vector<double> noise;
  CLI::App app("how many jobs it takes to find out which values make a row fail");
  app.add_option(
      "--model", arguments.model,
      "a PICT, ACTS or clause model; without it the model of the shipped profile nightly");
  app.add_option("--strength", arguments.strength);
  app.add_option("--faults", arguments.faults)->check(CLI::PositiveNumber);
  app.add_option("--seed", arguments.seed);
  app.add_option("--steps", arguments.steps);
  app.add_option("--jobs", arguments.jobs, "at the same time")->check(CLI::PositiveNumber);
  app.add_option("--only", arguments.only, "rows of the table whose name begins so");
  app.add_option("--assume-noise", noise, "B,A instead of the default beliefs")
      ->delimiter(',')
      ->expected(2);
  CLI11_PARSE(app, count, words);
  if (!noise.empty()) arguments.noise = {noise[0], noise[1]};
  try {
    run(arguments);
    return 0;
  } catch (const std::exception& error) {
    std::cerr << "graphproof-bench-shrink: " << error.what() << "\n";
    return 2;
  }
}
