#include "reports/analysis/drift.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cmath>
#include <cstdint>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <thread>
#include <vector>

#include "reports/outcome/outcome.h"
#include "reports/record/evidence/evidence.h"
#include "reports/record/text/file.h"
#include "reports/record/text/printable.h"

namespace graphproof::reports {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

// How evidence lines begin: the writer keeps the order of their fields.
constexpr std::string_view kStep = R"({"kind":"step",)";
constexpr std::string_view kBaseline = R"({"kind":"step","arm":"eager_a",)";
// Before revision 5 this arm repeated each step right after eager_a.
constexpr std::string_view kRepeat = R"({"kind":"step","arm":"eager_b",)";
constexpr std::string_view kReference = R"({"kind":"reference",)";
constexpr std::string_view kDistances = R"({"kind":"distances",)";

/// The step lines of eager_a of one rank, without the time of the step. The arm comes first, so of
/// a file that may have 200 KiB only the beginning is read.
std::vector<std::string> baseline_steps(const fs::path& file) {
  std::vector<std::string> steps;
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) {
    if (!line.starts_with(kStep) || line.starts_with(kRepeat)) continue;
    if (!line.starts_with(kBaseline)) break;
    steps.push_back(line.substr(0, line.rfind(",\"ms\":")) + "}");
  }
  return steps;
}

/// The largest difference of losses that the case allows between two orders of roundings: those of
/// the single-rank model, or, in a case that states a tolerance, those of two runs.
std::optional<double> loss_bound(const fs::path& attempt, int ranks) {
  std::optional<double> bound;
  for (int rank = 0; rank < ranks; ++rank) {
    std::ifstream in(attempt / record::evidence_file_name(rank));
    for (std::string line; std::getline(in, line);) {
      const bool distances = line.starts_with(kDistances);
      if (!distances && !line.starts_with(kReference)) continue;
      const json value = json::parse(line, nullptr, false);
      if (distances) {
        if (value.is_discarded()) continue;
        for (const json& tensor : value.value("tensors", json::array()))
          if (tensor.value("tensor", "") == "losses")
            bound = std::max(bound.value_or(0),
                             value.value("rounding", 0.0) * tensor.value("largest", 0.0));
        continue;
      }
      // Before revision 10 the field was called `subject`.
      if (value.is_discarded() || value.value("compared", value.value("subject", "")) != "losses")
        continue;
      bound = std::max(bound.value_or(0), value.value("bound", 0.0));
    }
  }
  return bound;
}

/// How many fp32 numbers lie between two. A NaN is as far as can be from anything.
std::int64_t ulps(double left, double right) {
  const auto l = static_cast<float>(left), r = static_cast<float>(right);
  if (std::isnan(l) || std::isnan(r)) return std::numeric_limits<std::int64_t>::max();
  const auto ordered = [](float value) -> std::int64_t {
    const auto bits = std::bit_cast<std::int32_t>(value);
    return bits < 0 ? std::int64_t{std::numeric_limits<std::int32_t>::min()} - bits : bits;
  };
  return std::abs(ordered(l) - ordered(r));
}

/// The largest differences over all steps and ranks.
struct Largest {
  bool digests_differ = false;
  std::int64_t ulp = 0;  // of losses and gradient norms
  double loss = 0;       // absolute
  std::string where;

  void add(const json& left, const json& right, int rank) {
    digests_differ =
        digests_differ || left.value("digest", json()) != right.value("digest", json());
    const auto number = [](const json& value) {
      return value.is_number() ? value.get<double>() : std::nan("");
    };
    const auto see = [&](const json& was, const json& is, bool of_loss) {
      if (was == is) return;
      const double before = number(was), now = number(is);
      const std::int64_t apart = ulps(before, now);
      if (of_loss)
        loss = std::max(loss, std::isnan(before - now) ? HUGE_VAL : std::abs(now - before));
      if (apart <= ulp) return;
      ulp = apart;
      where = std::string(of_loss ? "a loss" : "the gradient norm") + " of step " +
              std::to_string(left.value("step", 0)) + " on rank " + std::to_string(rank) + ": " +
              was.dump() + " -> " + is.dump();
    };
    const json was = left.value("loss", json::array()), is = right.value("loss", json::array());
    for (std::size_t i = 0; i < std::max(was.size(), is.size()); ++i)
      see(i < was.size() ? was[i] : json(), i < is.size() ? is[i] : json(), true);
    see(left.value("grad_norm", json()), right.value("grad_norm", json()), false);
  }
};

}  // namespace

std::string_view name(DriftClass drift) {
  constexpr std::array<std::string_view, 4> kNames = {"bitwise", "ulp", "tolerance", "beyond"};
  return kNames[static_cast<std::size_t>(drift)];
}

std::optional<Drift> drift(const fs::path& left, const fs::path& right) {
  Largest largest;
  int rank = 0;
  for (;; ++rank) {
    const std::string file = record::evidence_file_name(rank);
    const bool in_left = fs::exists(left / file), in_right = fs::exists(right / file);
    if (in_left != in_right) return std::nullopt;
    if (!in_left) break;
    const auto before = baseline_steps(left / file), now = baseline_steps(right / file);
    if (before.empty() || before.size() != now.size()) return std::nullopt;
    for (std::size_t i = 0; i < before.size(); ++i) {
      if (before[i] == now[i]) continue;
      const json was = json::parse(before[i], nullptr, false),
                 is = json::parse(now[i], nullptr, false);
      if (was.is_discarded() || is.is_discarded()) return std::nullopt;
      largest.add(was, is, rank);
    }
  }
  if (rank == 0) return std::nullopt;
  if (!largest.digests_differ && largest.ulp == 0) return Drift{};
  Drift result{.drift_class = DriftClass::ulp,
               .what = largest.where.empty() ? "only digests differ" : largest.where};
  if (largest.ulp <= kDriftUlps) return result;
  const auto bound_left = loss_bound(left, rank), bound_right = loss_bound(right, rank);
  const double bound = std::max(bound_left.value_or(-1), bound_right.value_or(-1));
  result.drift_class = largest.loss <= bound ? DriftClass::tolerance : DriftClass::beyond;
  if (bound < 0) result.what += "; the case has no bound for another order of roundings";
  return result;
}

std::map<std::string, Drift> drifts(const RunResult& left, const fs::path& left_folder,
                                    const RunResult& right, const fs::path& right_folder) {
  const auto shows_numbers = [](const CaseResult& one) {
    return !one.record.artefacts.empty() && !one.record.verdict.in("skipped") &&
           exit_code(one.record.verdict, one.record.rule) == record::ExitCode::ok;
  };
  struct Pair {
    std::string id;
    fs::path left, right;
    std::optional<Drift> drift;
  };
  std::map<std::string, const CaseResult*> of_left;
  for (const CaseResult& one : left.cases)
    if (shows_numbers(one)) of_left.emplace(one.plan.id, &one);
  std::vector<Pair> pairs;
  for (const CaseResult& one : right.cases)
    if (const auto found = of_left.find(one.plan.id); found != of_left.end() && shows_numbers(one))
      pairs.push_back({one.plan.id, left_folder / found->second->record.artefacts,
                       right_folder / one.record.artefacts, std::nullopt});

  std::atomic<std::size_t> next = 0;
  const auto work = [&] {
    for (std::size_t i = next++; i < pairs.size(); i = next++) {
      try {
        pairs[i].drift = drift(pairs[i].left, pairs[i].right);
      } catch (const json::exception&) {
        // Evidence with another kind of value than ranks write shows nothing about numbers.
      }
    }
  };
  {
    std::vector<std::jthread> threads;
    for (unsigned i = 1; i < std::thread::hardware_concurrency(); ++i) threads.emplace_back(work);
    work();
  }
  std::map<std::string, Drift> result;
  for (Pair& pair : pairs)
    if (pair.drift) result.emplace(pair.id, std::move(*pair.drift));
  return result;
}

}  // namespace graphproof::reports
