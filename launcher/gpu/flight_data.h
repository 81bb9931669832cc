// What PyTorch's flight recorder of each hung rank contains: the last collectives that its process
// groups issued, and which of them ended. Ranks whose collectives are PyTorch's (comm c10d) wait
// for a byte in a pipe of the batch's node-local folder and answer with a file
// (fixtures/comm/transport/flight_recorder.h). All other ranks have no such pipe and are not waited
// for.
#pragma once

#include <cstdint>
#include <filesystem>
#include <utility>
#include <vector>

namespace graphproof::launcher {

/// One question to the flight recorders of a batch.
class FlightData {
 public:
  // A rank looks into its pipe once a second and writes a few thousand lines.
  static constexpr std::int64_t kFlightAnswer_ms = 5000;

  /// Asks the ranks; never waits. `pipes` holds flight-RANK.pipe, `answers` will hold
  /// flight-RANK.json, which is moved to `folder` as rank-RANK.flight.json.
  FlightData(const std::filesystem::path& pipes, const std::filesystem::path& answers,
             const std::filesystem::path& folder, const std::vector<int>& ranks,
             std::int64_t now_ms);

  /// True when every rank that was asked has answered, or the time is over; what came by then
  /// stays.
  bool step(std::int64_t now_ms);

 private:
  std::int64_t deadline_ms_;
  std::vector<std::pair<std::filesystem::path, std::filesystem::path>>
      awaited_;  // the answer's file, and where it is moved
};

}  // namespace graphproof::launcher
