// How long a schedule takes compared with the time that no schedule can beat:
// `graphproof-bench-schedule [--seeds N]` simulates runs of 1,000 cases on 8 to 1,024 GPUs in
// islands of eight (launcher/testing/simulated_run.h), and prints, as Markdown, makespan / lower
// bound.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <string>

#include "bench/cost.h"
#include "launcher/testing/simulated_run.h"

int main(int count, char** arguments) {
  using namespace graphproof;
  const int seeds = count == 3 && std::string(arguments[1]) == "--seeds"
                        ? std::max(1, std::atoi(arguments[2]))
                        : 5;
  std::cout << "| world sizes | expectations | 8 GPUs | 16 | 64 | 256 | 1,024 | deciding, CPU ms "
               "per case |\n"
            << "| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: |\n";
  for (const launcher::Expectations& expectations : launcher::kExpectations)
    for (const launcher::WorldSizes& sizes : launcher::kWorldSizes) {
      std::cout << fmt::format("| {} | {} |", sizes.name, expectations.name);
      double decide_s = 0;
      int runs = 0;
      for (const int gpus : {8, 16, 64, 256, 1024}) {
        double worst = 0;
        for (int seed = 1; seed <= seeds; ++seed, ++runs) {
          const auto cases =
              launcher::simulated_cases(sizes, expectations, gpus, static_cast<unsigned>(seed));
          const double begin_s = bench::cpu_seconds(),
                       makespan_s = launcher::makespan_s(cases, gpus);
          decide_s += bench::cpu_seconds() - begin_s;
          worst = std::max(worst, makespan_s / launcher::lower_bound_s(cases, gpus));
        }
        std::cout << fmt::format(" {:.3f} |", worst);
      }
      std::cout << fmt::format(" {:.2f} |\n", decide_s * 1000 / runs / launcher::kSimulatedCases)
                << std::flush;
    }
  std::cout << "\nThe worst of " << seeds << " seeds each.\n";
  return 0;
}
