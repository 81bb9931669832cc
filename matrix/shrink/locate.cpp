#include "matrix/shrink/locate.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cmath>
#include <numeric>

namespace graphproof::shrink {
namespace {

constexpr int kPool = 60;   // rows that are compared to choose a job
constexpr int kRivals = 6;  // candidates for which rows are made that tell them from the leader
// The candidates that are considered have so much of the probability together, and are at most so
// many; beyond that each of them is improbable.
constexpr double kInteresting = 0.9999;
constexpr std::size_t kMostLooked = 5000;
// Fewer candidates if several rows run together, because up to 2^8 combinations of outcomes count.
constexpr std::size_t kMostWeighedTogether = 500;
constexpr double kTellsNothing = 1e-6;  // bits; a job that is expected to give less is not run
constexpr double kTellsMore = 0.05;     // bits that each further job of a round must add
// Under the worst noise of beliefs(), 0.7, so many repeats all pass in 6 of 100 cases.
constexpr int kMostRepeats = 8;
constexpr int kMostInvalid = 12;  // jobs without an outcome, if they outnumber those with one
// With a second fault the combination has to fail alone more often: a fault that shares a value
// with it fails with it too, by another value that perhaps half of the passed rows have.
constexpr int kAloneFailsOfTwo = 4, kManyUnexplained = 3;
constexpr double kRatherTwo = 0.8;
// The share of rows that keep the values of a passed row even if nothing suggests a second fault.
constexpr double kSomePassed = 0.25;
// From this share of passing jobs on, chance explains a row that passes better than a second fault
// does.
constexpr double kFlaky = 0.15;
// The share of rows without the combination that fail if there is a second fault.
constexpr double kOtherFaultFails = 0.2;
// No noise is believed to be impossible: otherwise a single odd outcome would leave no candidate.
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
    if (one.outcome == Outcome::pass) around_->add_passed(one.row);
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
  // Only candidates with a noticeable probability decide which class of equivalent candidates
  // leads.
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
    // All candidates between the mask and its closure are the same condition. Of the other
    // candidates, those with a noticeable probability are checked.
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
  if (outcome == Outcome::pass) around_->add_passed(evidence_.back().row);
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

/// Jobs for what is not shown yet about the leader; none once everything is.
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
  // Each axis outside of the leader has to be shown to be irrelevant: it had another value in a row
  // that failed.
  Mask unshown = candidates_->whole() & ~leader.closure;
  for (const Evidence& one : evidence_)
    if (const Mask mask = around_->mask(one.row);
        one.outcome == Outcome::fail && (leader.mask & ~mask) == 0)
      unshown &= mask;
  std::vector<cover::Row> rows;
  while ((fails < wanted || unshown != 0) && static_cast<int>(rows.size()) < idle) {
    const auto bit = unshown != 0 ? std::optional(std::countr_zero(unshown)) : std::nullopt;
    // Alternate between rows that keep little else of the failing row and rows that keep the values
    // of a passed row.
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
    if ((around_->closure(rest) & bit) != 0) continue;  // no valid row has the rest without it
    if (auto row = fresh_row(rest, std::countr_zero(bit), some_rest(), rows))
      rows.push_back(std::move(*row));
  }
  for (Job& job : numbered(Purpose::without, std::move(rows))) jobs.push_back(std::move(job));
  return jobs;
}

/// The jobs whose outcomes are expected to give the most information.
std::vector<Job> Locator::search(int idle, const Leader& leader) {
  const std::vector<Likely> likely = candidates_->likely(kInteresting, kMostLooked);
  std::vector<cover::Row> pool;
  std::vector<Mask> masks;
  const auto offer = [&](std::optional<cover::Row> row) {
    if (!row || std::find(pool.begin(), pool.end(), *row) != pool.end()) return;
    masks.push_back(around_->mask(*row));
    pool.push_back(std::move(*row));
  };
  // Rows with unions of likely candidates, which fail with a probability around one half.
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
  // Rows that have the leader but not a rival, or a rival but not the leader.
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
  double information_so_far = 0;
  while (static_cast<int>(chosen.size()) < idle && asked.size() < kMostAtOnce) {
    double best = -1;
    std::size_t best_at = 0;
    asked.push_back(0);
    for (std::size_t i = 0; i < pool.size(); ++i) {
      asked.back() = masks[i];
      const double gain = information(weighed, candidates_->beliefs(), asked);
      if (gain > best + 1e-12) {
        best = gain;
        best_at = i;
      }
    }
    if (best - information_so_far < (chosen.empty() ? kTellsNothing : kTellsMore)) break;
    asked.back() = masks[best_at];
    chosen.push_back(pool[best_at]);
    information_so_far = best;
    pool.erase(pool.begin() + static_cast<std::ptrdiff_t>(best_at));
    masks.erase(masks.begin() + static_cast<std::ptrdiff_t>(best_at));
    if (pool.empty()) break;
  }
  return numbered(Purpose::locate, std::move(chosen));
}

/// If bits stand for several parameters, starts again with only the leader's parameters, which then
/// have a bit each.
bool Locator::split(const Leader& leader) {
  if (!around_->shared()) return false;
  start(around_->parameters(leader.closure));
  confirming_.reset();
  alone_.clear();
  return true;
}

/// After a combination was confirmed and then became doubtful, other failing rows may have another
/// cause. Starts again, once, without those rows and with the belief that there is a second fault.
bool Locator::fall_back() {
  if (fell_back_ || question_.noise || pass_triggered() >= kFlaky) return false;
  fell_back_ = true;
  std::vector<Belief> doubtful = beliefs();
  for (Belief& belief : doubtful) belief.noise.fail_otherwise = kOtherFaultFails;
  believe(std::move(doubtful), false);
  return true;
}

/// A row whose job was not lost before and that is not among `taken`; nothing if there is none.
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

/// The more probable a second fault is, the more often rows keep the values of a passed row.
Locator::Rest Locator::some_rest() {
  return random_.unit() < std::max(second_fault_, kSomePassed) ? Rest::passed : Rest::bare;
}

/// Of several rows, the one that keeps the fewest values of the failing row besides the leader's.
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

/// The probability that a second fault makes rows fail that do not have the leader's values.
double Locator::second_fault(const Leader& leader) const {
  const std::vector<double> believed = candidates_->beliefs_now();
  double sum = 0;
  for (std::size_t belief = 0; belief < believed.size(); ++belief)
    if (candidates_->beliefs()[belief].noise.fail_otherwise >= kOtherFaultFails)
      sum += believed[belief];
  // With a single belief there is nothing to compare, so failures that the leader does not explain
  // count.
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
  Mask changed = 0;  // axes with another value in some row that has the combination and failed
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
