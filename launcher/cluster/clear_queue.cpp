#include "launcher/cluster/clear_queue.h"

#include <algorithm>
#include <chrono>
#include <system_error>
#include <thread>

namespace graphproof::cluster {
namespace {

// Slurm's own commands retry for a dozen seconds when the controller is away.
constexpr std::int64_t kOneCall_ms = 15000;
constexpr std::chrono::milliseconds kBetweenCalls{500};

}  // namespace

std::string clear_queue(const launcher::Command& cancel, std::int64_t limit_ms) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(limit_ms);
  std::string problem;
  for (;;) {
    try {
      const launcher::Output output = launcher::run_to_end(cancel, std::min(kOneCall_ms, limit_ms));
      if (!output.timed_out && output.exit == launcher::Exit{}) return {};
      problem = output.timed_out ? "it did not answer" : output.error;
    } catch (const std::system_error& error) {
      problem = error.what();
    }
    if (std::chrono::steady_clock::now() >= end) break;
    std::this_thread::sleep_for(kBetweenCalls);
  }
  while (!problem.empty() && problem.back() == '\n') problem.pop_back();
  std::string command;
  for (const std::string& word : cancel.arguments) command += (command.empty() ? "" : " ") + word;
  return "jobs of this run may be left in the queue until their time limit (" + problem +
         "): run `" + command + "`, or graphproof resume";
}

}  // namespace graphproof::cluster
