// Simulated runs of a thousand cases: how long they take by a schedule, compared with the time that
// no schedule can beat. For the schedule's test and its bench.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "launcher/policy/schedule.h"

namespace graphproof::launcher {

constexpr int kSimulatedCases = 1000, kIslandGpus = 8;

/// A case of a simulated run.
struct SimulatedCase {
  int gpus = 1;
  double seconds = 0, expected_seconds = 0;
};

inline int pick(std::mt19937& random, int low, int high) {
  return std::uniform_int_distribution(low, high)(random);
}
inline int power_up_to(std::mt19937& random, int most) {
  return 1 << pick(random, 0, static_cast<int>(std::log2(most)));
}

/// The world sizes of a run: a name, and a function that draws one for a machine of `gpus` GPUs.
struct WorldSizes {
  const char* name;
  int (*one)(std::mt19937&, int gpus);
};

constexpr WorldSizes kWorldSizes[] = {
    {"1, 2, 4, 8",
     [](std::mt19937& random, int gpus) { return power_up_to(random, std::min(gpus, 8)); }},
    {"powers of two up to 64",
     [](std::mt19937& random, int gpus) { return power_up_to(random, std::min(gpus, 64)); }},
    {"powers of two up to the machine",
     [](std::mt19937& random, int gpus) { return power_up_to(random, gpus); }},
    {"any from 1 to 8",
     [](std::mt19937& random, int gpus) { return pick(random, 1, std::min(gpus, 8)); }},
};

/// The factor by which a case takes longer than expected.
struct Expectations {
  const char* name;
  double (*wrong)(std::mt19937&);
};

constexpr Expectations kExpectations[] = {
    {"right", [](std::mt19937&) { return 1.0; }},
    {"half to twice",
     [](std::mt19937& random) {
       return std::exp2(std::uniform_real_distribution(-1.0, 1.0)(random));
     }},
    {"off by a factor of 1.6, some by 5",
     [](std::mt19937& random) { return std::lognormal_distribution(0.0, 0.5)(random); }},
};

/// Durations like those of cases: many short, few long; the median is 20 s.
inline std::vector<SimulatedCase> simulated_cases(const WorldSizes& sizes,
                                                  const Expectations& expectations, int gpus,
                                                  unsigned seed) {
  std::mt19937 random(seed);
  std::lognormal_distribution<double> seconds(3, 0.7);
  std::vector<SimulatedCase> cases;
  for (int i = 0; i < kSimulatedCases; ++i) {
    SimulatedCase one{sizes.one(random, gpus), seconds(random), 0};
    one.expected_seconds = one.seconds / expectations.wrong(random);
    cases.push_back(one);
  }
  return cases;
}

/// The largest of three bounds: GPU-seconds divided by GPUs; the longest case; and for each width
/// up to half of an island and of the machine, that wider cases each occupy one alone, while cases
/// narrower than the width count for nothing because they may fill what is left.
inline double lower_bound_s(const std::vector<SimulatedCase>& cases, int gpus) {
  double longest = 0, bound = 0;
  for (const SimulatedCase& one : cases) longest = std::max(longest, one.seconds);
  for (const int whole : {std::min(kIslandGpus, gpus), gpus})
    for (int width = 1; 2 * width <= whole; ++width) {
      double parts = 0;
      for (const SimulatedCase& one : cases) {
        const int gpus_here =
            one.gpus % whole == 0 ? whole : one.gpus;  // a wider case takes whole islands
        const double share = gpus_here > whole - width ? 1
                             : gpus_here < width       ? 0
                                                       : static_cast<double>(gpus_here) / whole;
        parts +=
            share * one.seconds * (one.gpus > whole ? static_cast<double>(one.gpus) / whole : 1);
      }
      bound = std::max(bound, parts * whole / gpus);
    }
  return std::max(longest, bound);
}

inline double makespan_s(const std::vector<SimulatedCase>& cases, int gpus) {
  std::vector<Place> places;
  for (int gpu = 0; gpu < gpus; ++gpu) places.push_back({gpu / kIslandGpus, gpu / kIslandGpus});
  Schedule schedule(places);
  for (std::size_t i = 0; i < cases.size(); ++i)
    schedule.add({std::to_string(i), cases[i].gpus, cases[i].expected_seconds});
  std::multimap<double, std::string> running;
  double now_s = 0;
  while (!schedule.idle()) {
    for (const Start& start : schedule.start(static_cast<std::int64_t>(now_s * 1000)))
      running.emplace(now_s + cases[static_cast<std::size_t>(std::stoi(start.batch))].seconds,
                      start.batch);
    now_s = running.begin()->first;
    schedule.release(running.begin()->second);
    running.erase(running.begin());
  }
  return now_s;
}

}  // namespace graphproof::launcher
