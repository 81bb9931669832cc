// How long a schedule takes beside the time that no schedule can beat: `graphproof-bench-schedule [--seeds N]` simulates
// runs of 1,000 cases on 8 to 1,024 GPUs in islands of eight, and prints, as Markdown, makespan / lower bound.
//
// The lower bound is the largest of: all GPU-seconds over all GPUs; the longest case; the cases of more than half of the
// GPUs, which can never run side by side.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <iostream>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "launcher/schedule.h"

namespace {

using namespace graphproof::launcher;

constexpr int kCases = 1000, kIsland = 8, kGpusPerNode = 8;

struct Job {
  int gpus = 1;
  double seconds = 0, expected_seconds = 0;
};

/// World sizes of a run: a name, and one of them for a machine of `gpus`.
struct Mix {
  const char* name;
  int (*world)(std::mt19937&, int gpus);
};

int pick(std::mt19937& random, int low, int high) { return std::uniform_int_distribution(low, high)(random); }
int power_up_to(std::mt19937& random, int most) { return 1 << pick(random, 0, static_cast<int>(std::log2(most))); }

const Mix kMixes[] = {
    {"1, 2, 4, 8", [](std::mt19937& random, int gpus) { return power_up_to(random, std::min(gpus, 8)); }},
    {"powers of two up to 64", [](std::mt19937& random, int gpus) { return power_up_to(random, std::min(gpus, 64)); }},
    {"powers of two up to the machine", [](std::mt19937& random, int gpus) { return power_up_to(random, gpus); }},
    {"any from 1 to 8", [](std::mt19937& random, int gpus) { return pick(random, 1, std::min(gpus, 8)); }},
};

/// Durations as those of cases: many short, few long. `error`: standard deviation of the logarithm of expected / real.
std::vector<Job> jobs(const Mix& mix, int gpus, double error, unsigned seed) {
  std::mt19937 random(seed);
  std::lognormal_distribution<double> seconds(3, 0.7), wrong(0, error);
  std::vector<Job> list;
  for (int i = 0; i < kCases; ++i) {
    Job job{mix.world(random, gpus), seconds(random), 0};
    job.expected_seconds = job.seconds * (error > 0 ? wrong(random) : 1);
    list.push_back(job);
  }
  return list;
}

double lower_bound_s(const std::vector<Job>& list, int gpus) {
  double area = 0, longest = 0, wide = 0;
  for (const Job& job : list) {
    area += job.gpus * job.seconds;
    longest = std::max(longest, job.seconds);
    if (2 * job.gpus > gpus) wide += job.seconds;
  }
  return std::max({area / gpus, longest, wide});
}

double makespan_s(const std::vector<Job>& list, int gpus, double& decide_ms) {
  std::vector<Place> places;
  for (int gpu = 0; gpu < gpus; ++gpu) places.push_back({gpu / kIsland, gpu / kGpusPerNode});
  Schedule schedule(places);
  for (std::size_t i = 0; i < list.size(); ++i) schedule.add({std::to_string(i), list[i].gpus, list[i].expected_seconds});
  std::multimap<double, std::string> running;
  double now_s = 0;
  const auto begin = std::chrono::steady_clock::now();
  while (!schedule.idle()) {
    for (const Start& start : schedule.start(static_cast<std::int64_t>(now_s * 1000)))
      running.emplace(now_s + list[static_cast<std::size_t>(std::stoi(start.batch))].seconds, start.batch);
    now_s = running.begin()->first;
    schedule.release(running.begin()->second);
    running.erase(running.begin());
  }
  decide_ms += std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
  return now_s;
}

}  // namespace

int main(int count, char** arguments) {
  const int seeds = count == 3 && std::string(arguments[1]) == "--seeds" ? std::max(1, std::atoi(arguments[2])) : 5;
  std::cout << "| world sizes | expectations | 8 GPUs | 16 | 64 | 256 | 1,024 | deciding, ms per case |\n"
            << "| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: |\n";
  for (const double error : {0.0, 0.5})
    for (const Mix& mix : kMixes) {
      std::cout << fmt::format("| {} | {} |", mix.name, error > 0 ? "off by a factor of 1.6" : "right");
      double decide_ms = 0;
      int runs = 0;
      for (const int gpus : {8, 16, 64, 256, 1024}) {
        double worst = 0;
        for (int seed = 1; seed <= seeds; ++seed, ++runs) {
          const std::vector<Job> list = jobs(mix, gpus, error, static_cast<unsigned>(seed));
          worst = std::max(worst, makespan_s(list, gpus, decide_ms) / lower_bound_s(list, gpus));
        }
        std::cout << fmt::format(" {:.3f} |", worst);
      }
      std::cout << fmt::format(" {:.2f} |\n", decide_ms / runs / kCases) << std::flush;
    }
  std::cout << "\nThe worst of " << seeds << " seeds each.\n";
  return 0;
}
