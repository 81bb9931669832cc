// What the arms of all workloads share: the sections of a case that trains nothing, and the
// evidence lines of a comparison of two arms, and of the memory and collectives of one.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "fixtures/inspect/tensor_comparison.h"
#include "suites/case/case_parts.h"
#include "suites/case/watched_device.h"

namespace graphproof::suites {

/// The sections of a case that trains nothing, each with its vote, as a training case has them:
/// build, eager, and with graphs the lockstep, the free run and the comparison.
void run_sections(const CaseParts& parts, const std::function<void()>& eager,
                  const std::function<void()>& lockstep, const std::function<void()>& free);

/// The field `mismatch` of a `compare` line.
record::TensorMismatch mismatch_of(const fixtures::Mismatch& mismatch);

/// The `memory` line of an arm, with what is in use now. `when` and `step` are its fields.
record::MemoryLine memory_line(const CaseParts& parts, const std::string& arm, const char* when,
                               std::int64_t step);

/// Writes the `exec_updates` line of a run of `arm` with what `device` has counted, if the case has
/// updates of executable graphs (axis recapture).
void write_exec_updates(const CaseParts& parts, const std::string& arm, const char* run,
                        std::int64_t step, const WatchedDevice& device);

/// Compares byte for byte and writes the `compare` line, in which `name` names the comparison. In a
/// case that states a tolerance it writes the `distances` line of a difference too. Returns whether
/// they are equal.
bool write_comparison(const CaseParts& parts, const std::string& left, const std::string& right,
                      const std::string& name, std::int64_t step, const std::string& input,
                      const Snapshot& of_left, const Snapshot& of_right);

/// Counts the collectives that this rank issues while it lives. Resets the ledger, so all ranks
/// make one at the same place of the case.
class CountedCollectives {
 public:
  CountedCollectives(const CaseParts& parts, std::string arm);
  /// Writes the line `collectives`, unless the case has a single rank.
  void write();

 private:
  const CaseParts& parts_;
  std::string arm_;
};

}  // namespace graphproof::suites
