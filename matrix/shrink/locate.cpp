#include "matrix/shrink/locate.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cmath>
#include <numeric>

namespace graphproof::shrink {
namespace {

constexpr int kPool = 60;   // rows that are weighed against each other for one job
constexpr int kRivals = 6;  // of the leader, for which rows are made on purpose
constexpr double kInteresting =
    0.9999;  // the candidates that are looked at hold so much of the probability
constexpr std::size_t kMostLooked =
    5000;  // and are so many at most: beyond it each of them is improbable
constexpr std::size_t kMostWeighedTogether =
    500;  // rows that are run together are weighed by 2^8 combinations of outcomes
constexpr double kTellsNothing = 1e-6;  // bits: a job below it is not worth running
constexpr double kTellsMore = 0.05;     // bits that a further job of a round must add
constexpr int kMostRepeats =
    8;  // under the worst noise believed in, 0.7, so many pass all in 6 of 100 cases
constexpr int kMostInvalid = 12;  // jobs without an outcome, if they are more than those with one
// More often alone where there may be a second fault: one that shares a value with the combination
// fails with it too, by a value that perhaps half of the passed rows have.
constexpr int kAloneFailsOfTwo = 4, kManyUnexplained = 3;
constexpr double kRatherTwo = 0.8;
constexpr double kSomePassed =
    0.25;  // of rows keep what passed even where nothing speaks of a second fault
constexpr double kFlaky =
    0.15;  // from here on it is rather chance than a second fault that lets a row pass
constexpr double kOtherFaultFails =
    0.2;  // of rows that do not have the combination, where a second fault is about
// Noise is never believed to be impossible, otherwise one odd outcome leaves no candidate at all.
constexpr double kLeastNoise = 1e-3, kMostPass = 0.95, kMostFail = 0.5;

Noise possible(const Noise& noise) {
  return {std::clamp(noise.pass_triggered, kLeastNoise, kMostPass),
          std::clamp(noise.fail_otherwise, kLeastNoise, kMostFail)};
}

}  // namespace

const std::vector<Belief>& beliefs() {
  static const std::vector<Belief> kBeliefs = {
      {{kLeastNoise, kLeastNoise}, 0.5},
      {{0.3, 0.02}, 0.3},
      {{0.7, 0.02}, 0.05},
      {{kLeastNoise, kOtherFaultFails}, 0.1},
      {{0.3, kOtherFaultFails}, 0.05},
      {{kLeastNoise, 0.5}, 0.03},
  };
  return kBeliefs;
}

std::string_view name(Purpose purpose) {
  constexpr std::string_view kNames[] = {"repeat", "locate", "alone", "without"};
  return kNames[static_cast<std::size_t>(purpose)];
}

std::string_view name(State state) {
  constexpr std::string_view kNames[] = {"running",        "confirmed",   "undecided",  "wide",
                                         "not_reproduced", "out_of_jobs", "no_outcomes"};
  return kNames[static_cast<std::size_t>(state)];
}

Locator::Locator(Question question) : question_(std::move(question)), random_(question_.seed) {
  for (const Seen& seen : question_.seen)
    if (seen.outcome != Outcome::invalid)
      evidence_.push_back({seen.row, seen.outcome, std::nullopt});
  std::vector<int> all(question_.failing.size());
  std::iota(all.begin(), all.end(), 0);
  start(all);
}

void Locator::start(const std::vector<int>& parameters) {
  around_ = std::make_unique<Neighbourhood>(*question_.model, question_.failing, parameters);
  for (const Evidence& one : evidence_)
    if (one.outcome == Outcome::pass) around_->like(one.row);
  if (around_->bits().empty()) {
    state_ = State::undecided;
    return;
  }
  believe(question_.noise ? std::vector<Belief>{{possible(*question_.noise), 1}} : beliefs(), true);
}

void Locator::believe(std::vector<Belief> beliefs, bool other_failures) {
  candidates_ =
      std::make_unique<Candidates>(static_cast<int>(around_->bits().size()), std::move(beliefs));
  for (const Evidence& one : evidence_)
    if (other_failures || one.job || one.outcome == Outcome::pass) learn(one);
}

void Locator::learn(const Evidence& evidence) {
  if (evidence.outcome != Outcome::invalid)
    candidates_->learn(around_->mask(evidence.row), evidence.outcome == Outcome::fail);
}

Locator::Leader Locator::leader() {
  // Of classes only the members that count are looked at to find the best; what is less probable
  // can't make one lead.
  constexpr double kCounts = 1e-3;
  const std::vector<Likely> likely = candidates_->likely(kInteresting, kMostLooked);
  std::map<Mask, Leader> classes;
  for (const Likely& one : likely) {
    if (one.probability() < kCounts && one.mask != likely.front().mask) break;
    const Mask closure = around_->closure(one.mask);
    Leader& leader = classes[closure];
    if (leader.probability == 0) {
      leader.mask = one.mask;
      leader.closure = closure;
    }
    leader.probability += one.probability();
  }
  Leader best;
  for (const auto& [closure, leader] : classes)
    if (leader.probability > best.probability) best = leader;
  best.probability = 0;
  for (const Likely& one : candidates_->within(best.closure)) {
    // Between a mask and its closure all are the same condition; of the others those that matter
    // are asked for.
    constexpr double kMatters = 1e-6;
    const bool same = (best.mask & ~one.mask) == 0 ||
                      (one.probability() > kMatters && around_->closure(one.mask) == best.closure);
    if (!same) continue;
    best.probability += one.probability();
    if (one.mask != best.mask && std::popcount(one.mask) <= std::popcount(best.mask))
      best.same.push_back(one.mask);
  }
  return best;
}

std::vector<Job> Locator::next_jobs(int idle) {
  assert(pending_.empty() && idle >= 1);
  while (state_ == State::running) {
    int valid = 0, invalid = 0;
    for (const Evidence& one : evidence_)
      if (one.job) ++(one.outcome == Outcome::invalid ? invalid : valid);
    if (invalid >= kMostInvalid && invalid > valid) state_ = State::no_outcomes;
    if (valid + invalid >= question_.most_jobs) state_ = State::out_of_jobs;
    if (state_ != State::running) break;
    idle = std::min(idle, question_.most_jobs - valid - invalid);
    if (std::vector<Job> jobs = repeat(); !jobs.empty() || state_ != State::running)
      return pending_ = jobs;
    const Leader now = leader();
    second_fault_ = second_fault(now);
    if (confirming_ && (now.closure != *confirming_ || now.probability < kSure)) {
      confirming_.reset();
      if (fall_back()) continue;
    }
    if (now.probability < kSure) {
      std::vector<Job> jobs = search(idle, now);
      if (jobs.empty()) state_ = State::undecided;
      return pending_ = jobs;
    }
    if (now.mask == candidates_->whole() && std::popcount(now.mask) > kMostValues) {
      state_ = State::wide;
      break;
    }
    confirming_ = now.closure;
    if (std::vector<Job> jobs = confirm(now, idle); !jobs.empty()) return pending_ = jobs;
    if (split(now)) continue;
    if (state_ == State::running) state_ = State::confirmed;
  }
  return {};
}

void Locator::record(int job, Outcome outcome) {
  const auto found =
      std::find_if(pending_.begin(), pending_.end(), [&](const Job& one) { return one.id == job; });
  assert(found != pending_.end());
  evidence_.push_back({found->row, outcome, *found});
  pending_.erase(found);
  if (outcome == Outcome::pass) around_->like(evidence_.back().row);
  learn(evidence_.back());
}

std::vector<Job> Locator::repeat() {
  int failed = 0, valid = 0;
  for (const Evidence& one : evidence_)
    if (one.job && one.job->purpose == Purpose::repeat && one.outcome != Outcome::invalid) {
      ++valid;
      failed += one.outcome == Outcome::fail ? 1 : 0;
    }
  if (valid < question_.repeats || (failed == 0 && valid > 0 && valid < kMostRepeats))
    return numbered(Purpose::repeat, {question_.failing});
  if (failed == 0 && valid > 0) state_ = State::not_reproduced;
  return {};
}

/// Rows for what is not shown yet of the leader; none once all is.
std::vector<Job> Locator::confirm(const Leader& leader, int idle) {
  std::vector<Job> jobs;
  int fails = 0;
  for (const Evidence& one : evidence_) {
    if (!one.job || one.outcome != Outcome::fail) continue;
    const bool alone = std::find(alone_.begin(), alone_.end(),
                                 std::pair(one.job->id, leader.closure)) != alone_.end();
    if (alone || around_->mask(one.row) == leader.closure) ++fails;
  }
  const int wanted = second_fault_ > 0.5 ? kAloneFailsOfTwo : kAloneFails;
  // Each axis outside has to be shown to be irrelevant: changed in a row that failed all the same.
  Mask unshown = candidates_->whole() & ~leader.closure;
  for (const Evidence& one : evidence_)
    if (const Mask mask = around_->mask(one.row);
        one.outcome == Outcome::fail && (leader.mask & ~mask) == 0)
      unshown &= mask;
  std::vector<cover::Row> rows;
  while ((fails < wanted || unshown != 0) && static_cast<int>(rows.size()) < idle) {
    const auto bit = unshown != 0 ? std::optional(std::countr_zero(unshown)) : std::nullopt;
    // By turns with little else of the failing row, and with what passed.
    const bool passed = fails % 2 == 1 || second_fault_ > 0.5;
    auto row =
        passed ? fresh_row(leader.mask, bit, Rest::passed, rows) : bare_row(leader, bit, rows);
    ++fails;
    if (!row) break;
    unshown &= around_->mask(*row);
    rows.push_back(std::move(*row));
  }
  jobs = numbered(Purpose::alone, std::move(rows));
  for (const Job& job : jobs) alone_.emplace_back(job.id, leader.closure);

  const std::vector<double> believed = candidates_->beliefs_now();
  rows.clear();
  for (Mask left = leader.mask; left != 0; left &= left - 1) {
    const Mask bit = left & -left, rest = leader.mask & ~bit;
    int passes = 0;
    for (const Evidence& one : evidence_) {
      const Mask mask = around_->mask(one.row);
      if (one.outcome == Outcome::pass && (rest & ~mask) == 0 && (mask & bit) == 0) ++passes;
    }
    double unneeded = 0;
    for (std::size_t belief = 0; belief < believed.size(); ++belief)
      unneeded += std::max(believed[belief], candidates_->beliefs()[belief].prior) *
                  std::pow(candidates_->beliefs()[belief].noise.pass_triggered, passes);
    if (unneeded <= kUnneeded || static_cast<int>(jobs.size() + rows.size()) >= idle) continue;
    if ((around_->closure(rest) & bit) != 0) continue;  // the rest never comes without it
    if (auto row = fresh_row(rest, std::countr_zero(bit), some_rest(), rows))
      rows.push_back(std::move(*row));
  }
  for (Job& job : numbered(Purpose::without, std::move(rows))) jobs.push_back(std::move(job));
  return jobs;
}

/// The rows whose outcomes are expected to tell most.
std::vector<Job> Locator::search(int idle, const Leader& leader) {
  const std::vector<Likely> likely = candidates_->likely(kInteresting, kMostLooked);
  std::vector<cover::Row> pool;
  std::vector<Mask> masks;
  const auto offer = [&](std::optional<cover::Row> row) {
    if (!row || std::find(pool.begin(), pool.end(), *row) != pool.end()) return;
    masks.push_back(around_->mask(*row));
    pool.push_back(std::move(*row));
  };
  // A union of likely candidates that is triggered with a chance somewhere around one half.
  double total = 0;
  for (const Likely& one : likely) total += one.probability();
  for (int i = 0; i < kPool; ++i) {
    const double target = total * (0.2 + 0.6 * random_.unit());
    Mask keep = 0;
    for (double held = 0; held < target;) {
      double drawn = random_.unit() * (total - held);
      held = 0;
      Mask chosen = 0;
      bool found = false;
      for (const Likely& one : likely) {
        if ((one.mask & ~keep) == 0) continue;
        chosen = one.mask;
        found = true;
        if ((drawn -= one.probability()) <= 0) break;
      }
      if (!found) break;
      keep |= chosen;
      for (const Likely& one : likely)
        if ((one.mask & ~keep) == 0) held += one.probability();
    }
    offer(fresh_row(keep, std::nullopt, some_rest(), pool));
  }
  // Those that tell the leader from the most probable ones that mean something else, either way.
  int rivals = 0;
  for (const Likely& one : likely) {
    const Mask closure = around_->closure(one.mask);
    if (closure == leader.closure) continue;
    if (const Mask missing = closure & ~leader.closure; missing != 0)
      offer(fresh_row(leader.mask, std::countr_zero(missing), some_rest(), pool));
    if (const Mask missing = leader.closure & ~closure; missing != 0)
      offer(fresh_row(one.mask, std::countr_zero(missing), some_rest(), pool));
    if (++rivals == kRivals) break;
  }
  offer(bare_row(leader, std::nullopt, pool));

  std::vector<cover::Row> chosen;
  std::vector<Mask> asked;
  const std::span<const Likely> weighed(
      likely.data(), std::min(likely.size(), idle > 1 ? kMostWeighedTogether : kMostLooked));
  double told = 0;
  while (static_cast<int>(chosen.size()) < idle && asked.size() < kMostAtOnce) {
    double best = -1;
    std::size_t best_at = 0;
    asked.push_back(0);
    for (std::size_t i = 0; i < pool.size(); ++i) {
      asked.back() = masks[i];
      const double tells = information(weighed, candidates_->beliefs(), asked);
      if (tells > best + 1e-12) {
        best = tells;
        best_at = i;
      }
    }
    if (best - told < (chosen.empty() ? kTellsNothing : kTellsMore)) break;
    asked.back() = masks[best_at];
    chosen.push_back(pool[best_at]);
    told = best;
    pool.erase(pool.begin() + static_cast<std::ptrdiff_t>(best_at));
    masks.erase(masks.begin() + static_cast<std::ptrdiff_t>(best_at));
    if (pool.empty()) break;
  }
  return numbered(Purpose::locate, std::move(chosen));
}

/// Where bits stand for several parameters, those of the leader get one each, and it is looked
/// among them alone.
bool Locator::split(const Leader& leader) {
  if (!around_->shared()) return false;
  start(around_->parameters(leader.closure));
  confirming_.reset();
  alone_.clear();
  return true;
}

/// A combination that was sure and then was not: perhaps other failing rows have another cause.
/// Once, with them left out and a second fault taken for granted.
bool Locator::fall_back() {
  if (fell_back_ || question_.noise || pass_triggered() >= kFlaky) return false;
  fell_back_ = true;
  std::vector<Belief> doubtful = beliefs();
  for (Belief& belief : doubtful) belief.noise.fail_otherwise = kOtherFaultFails;
  believe(std::move(doubtful), false);
  return true;
}

/// A row that was not lost before and is not among `taken`; nothing where there is none.
std::optional<cover::Row> Locator::fresh_row(Mask keep, std::optional<int> without, Rest rest,
                                             const std::vector<cover::Row>& taken) {
  constexpr int kTries = 4;
  std::optional<cover::Row> row;
  for (int i = 0; i < kTries; ++i) {
    row = around_->row(keep, without, rest, random_);
    if (!row) return row;
    const bool lost = std::any_of(evidence_.begin(), evidence_.end(), [&](const Evidence& one) {
      return one.outcome == Outcome::invalid && one.row == *row;
    });
    if (!lost && std::find(taken.begin(), taken.end(), *row) == taken.end()) return row;
  }
  return std::nullopt;
}

/// The more probable a second fault, the more rows stay as they passed.
Locator::Rest Locator::some_rest() {
  return random_.unit() < std::max(second_fault_, kSomePassed) ? Rest::passed : Rest::bare;
}

/// The one of several that keeps least beside the leader.
std::optional<cover::Row> Locator::bare_row(const Leader& leader, std::optional<int> without,
                                            const std::vector<cover::Row>& taken) {
  constexpr int kTries = 12;
  std::optional<cover::Row> best;
  int least = 0;
  for (int i = 0; i < kTries; ++i) {
    auto row = fresh_row(leader.mask, without, Rest::bare, taken);
    if (!row) break;
    const int kept = std::popcount(around_->mask(*row) & ~leader.closure);
    if (!best || kept < least) {
      least = kept;
      best = std::move(row);
    }
    if (least == 0) break;
  }
  return best;
}

std::vector<Job> Locator::numbered(Purpose purpose, std::vector<cover::Row> rows) {
  std::vector<Job> jobs;
  for (cover::Row& row : rows) jobs.push_back({next_id_++, purpose, std::move(row)});
  return jobs;
}

/// How probable it is that a second fault makes rows fail that do not have the leader.
double Locator::second_fault(const Leader& leader) const {
  const std::vector<double> believed = candidates_->beliefs_now();
  double sum = 0;
  for (std::size_t belief = 0; belief < believed.size(); ++belief)
    if (candidates_->beliefs()[belief].noise.fail_otherwise >= kOtherFaultFails)
      sum += believed[belief];
  // Under one belief there is nothing to compare: failures that it leaves unexplained tell.
  int unexplained = 0;
  for (const Evidence& one : evidence_)
    unexplained +=
        one.outcome == Outcome::fail && (leader.mask & ~around_->mask(one.row)) != 0 ? 1 : 0;
  return unexplained >= kManyUnexplained ? std::max(sum, kRatherTwo) : sum;
}

double Locator::pass_triggered() const {
  const std::vector<double> believed = candidates_->beliefs_now();
  double mean = 0;
  for (std::size_t belief = 0; belief < believed.size(); ++belief)
    mean += believed[belief] * candidates_->beliefs()[belief].noise.pass_triggered;
  return mean;
}

Answer Locator::answer() {
  Answer answer{.state = state_};
  for (const Evidence& one : evidence_) {
    if (!one.job) continue;
    ++answer.jobs;
    answer.repeats += one.job->purpose == Purpose::repeat ? 1 : 0;
    answer.invalid += one.outcome == Outcome::invalid ? 1 : 0;
  }
  answer.fixed = around_->fixed();
  if (candidates_ == nullptr) return answer;
  const Leader leads = leader();
  answer.probability = leads.probability;
  answer.combination = around_->parameters(leads.mask);
  for (const Mask same : leads.same) answer.same.push_back(around_->parameters(same));
  answer.pass_triggered = pass_triggered();
  const std::vector<double> share = candidates_->share_of_bits();
  Mask changed = 0;  // in a row that has the combination and failed
  for (const Evidence& one : evidence_)
    if (const Mask mask = around_->mask(one.row);
        one.outcome == Outcome::fail && (leads.mask & ~mask) == 0)
      changed |= ~mask;
  for (std::size_t bit = 0; bit < around_->bits().size(); ++bit) {
    const Mask one = Mask{1} << bit;
    if ((leads.mask & one) != 0) continue;
    std::vector<int>& list = (leads.closure & one) != 0                        ? answer.implied
                             : (changed & one) != 0 && share[bit] <= 1 - kSure ? answer.irrelevant
                                                                               : answer.open;
    list.insert(list.end(), around_->bits()[bit].begin(), around_->bits()[bit].end());
  }
  return answer;
}

}  // namespace graphproof::shrink
