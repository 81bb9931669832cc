// Where the ranks of a hung batch stand, collected before they are ended: stacks of their threads,
// NCCL's own view of its communicators, and PyTorch's flight recorder. Everything goes into the
// folder `stacks` of the case that hangs. Bounded, and a step at a time.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "launcher/batch/hang_detector.h"
#include "launcher/gpu/flight_data.h"
#include "launcher/gpu/nccl_ras.h"
#include "launcher/host/stacks.h"
#include "reports/record/job/context.h"

namespace graphproof::launcher {

/// The inspection of one hang.
class HangInspection {
 public:
  /// Where it finds the ranks, and where it writes.
  struct Places {
    std::filesystem::path evidence_folder;   // of the case that hangs
    std::filesystem::path node_folder;       // where ranks have the pipes of their flight recorders
    std::filesystem::path batch_folder;      // where ranks answer
    std::optional<std::string> ras_address;  // of the ranks' NCCL, if they were given its service
  };
  /// Starts to collect. `debugger`: whether the stacks are worth its ten seconds a rank.
  HangInspection(const HangDecision& hang, const HangDetector& ranks, const Places& places,
                 bool debugger, std::int64_t now_ms);

  /// True when everything was collected or its time is over.
  bool step(std::int64_t now_ms);

  /// When the hang was decided. The time after that is not the case's.
  std::int64_t since_ms() const { return since_ms_; }
  /// For the context of the case.
  record::Hang hang() const;

 private:
  const HangDecision hang_;
  const std::int64_t since_ms_;
  StackCollection stacks_;
  std::optional<NcclRas> ras_;
  FlightData flight_data_;
};

}  // namespace graphproof::launcher
