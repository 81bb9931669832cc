// Evidence lines that arms of every workload leave: a comparison of two arms, and the collectives
// of one.
#pragma once

#include <cstdint>
#include <string>

#include "fixtures/inspect/tensor_comparison.h"
#include "suites/arms/arm.h"

namespace graphproof::suites {

record::Json mismatch_json(const fixtures::Mismatch& mismatch);

/// Compares byte for byte and writes the `compare` line. Returns whether they are equal.
bool write_comparison(const CaseParts& parts, const std::string& left, const std::string& right,
                      const std::string& subject, std::int64_t step, const std::string& input,
                      const Snapshot& of_left, const Snapshot& of_right);

/// The collectives that this rank issued while it lives; every rank starts to count at the same
/// step of the case.
class CollectivesOf {
 public:
  CollectivesOf(const CaseParts& parts, std::string arm);
  /// Nothing for a rank without peers.
  void write();

 private:
  const CaseParts& parts_;
  std::string arm_;
};

}  // namespace graphproof::suites
