#include "launcher/gpu/flight_data.h"

#include <fcntl.h>
#include <unistd.h>

#include <string>
#include <system_error>

namespace graphproof::launcher {
namespace {

/// Asks the rank that reads from the pipe. False if no process reads from it.
bool ask_for_flight_data(const std::filesystem::path& pipe) {
  const int end = open(pipe.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW);
  if (end < 0) return false;
  const bool asked = write(end, "1", 1) == 1;
  close(end);
  return asked;
}

}  // namespace

FlightData::FlightData(const std::filesystem::path& pipes, const std::filesystem::path& answers,
                       const std::filesystem::path& folder, const std::vector<int>& ranks,
                       std::int64_t now_ms)
    : deadline_ms_(now_ms + kFlightAnswer_ms) {
  for (const int rank : ranks) {
    const std::string name = "flight-" + std::to_string(rank);
    std::error_code none;
    if (!std::filesystem::is_fifo(pipes / (name + ".pipe"), none)) continue;
    if (ask_for_flight_data(pipes / (name + ".pipe")))
      awaited_.emplace_back(answers / (name + ".json"),
                            folder / ("rank-" + std::to_string(rank) + ".flight.json"));
  }
}

bool FlightData::step(std::int64_t now_ms) {
  std::erase_if(awaited_, [](const auto& awaited) {
    std::error_code error;
    if (!std::filesystem::exists(awaited.first, error)) return false;
    std::filesystem::rename(awaited.first, awaited.second, error);  // both are below the run folder
    return true;
  });
  return awaited_.empty() || now_ms >= deadline_ms_;
}

}  // namespace graphproof::launcher
