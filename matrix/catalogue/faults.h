// The planted faults as data (matrix/tables/faults.json): which case a fault is planted in and
// which detector must catch it.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "matrix/case/case.h"
#include "matrix/catalogue/capabilities.h"
#include "matrix/catalogue/checks.h"
#include "matrix/catalogue/limits.h"

namespace graphproof::matrix {

struct FaultEntry {
  std::string fault;  // the id, as in case names: M27
  std::string name;   // what it is, in snake_case: static_input_freed
  std::string title, signature;
  std::map<std::string, std::string, std::less<>> detectors;  // which must catch it, by device
  Case twin;                         // the clean twin: the fault's axes without the fault
  std::string isolation;             // batch or process
  std::vector<std::string> devices;  // where the fault can be shown
  Limits limits_ms;                  // replace the profile's limits of these phases
  bool in_eager = false;             // it breaks eager steps too, so that eager checks may fail

  bool shown_on(std::string_view device) const;
  /// On a device that can't show the fault, the one of a device that can.
  const std::string& detector(std::string_view device) const;
  /// For people: "D19", or "D13 (cuda), D56 (sim)".
  std::string detector_text() const;
};

class FaultTable {
 public:
  /// The ids alone, which the axis `fault` takes as its values.
  static std::vector<std::string> ids(const Document& document);
  /// Throws InputError also when no check belongs to a detector, or none is required in the fault's
  /// case.
  static FaultTable parse(const Document& document, const AxisTable& axes,
                          const CheckTable& checks);

  const std::vector<FaultEntry>& faults() const { return faults_; }
  const FaultEntry* find(std::string_view fault) const;

 private:
  std::vector<FaultEntry> faults_;
};

/// For each subject, which faults are planted in its code: it cannot have the others.
std::vector<Capability> faults_of_subjects(const AxisTable& axes, const FaultTable& table);

/// The case of a fault: its twin with the fault planted.
Case planted_case(const AxisTable& axes, const FaultEntry& entry);

}  // namespace graphproof::matrix
