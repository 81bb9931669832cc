// Makes one line of a plan: a case with everything that the launcher needs to run it and that the
// reports need to judge it. The line's type, its file format and its reader are
// reports/record/job/plan.h.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "matrix/case/machine.h"
#include "matrix/catalogue/catalogue.h"
#include "reports/record/job/plan.h"

namespace graphproof::matrix {

/// How much longer the limits of phases are for ranks under compute-sanitizer or a profiler. The
/// manual of compute-sanitizer names no factor; reports of users go from 10 to 50 for kernels, and
/// the limits are far above what a phase takes (limits.json).
inline constexpr std::int64_t kSlowerUnderATool = 10;

/// A case with the decisions of the plan that its axes do not determine. PlanLineMaker turns it
/// into a line.
struct PlannedCase {
  Case test_case;
  std::string why;                  // why the plan has it, for people
  std::string isolation = "batch";  // batch, process
  record::Expect expect = {};
  Limits limits = {};                     // milliseconds a phase; the defaults hold for the others
  std::optional<record::Skip> skip = {};  // set if the matrix file skips the case
};

/// Makes plan lines for one machine.
class PlanLineMaker {
 public:
  /// REQUIRES: both outlive the maker.
  PlanLineMaker(const Catalogue& catalogue, const Machine& machine)
      : catalogue_(catalogue), machine_(machine) {}

  /// Adds what follows from the case and the machine: id, name, effective axes, ranks, environment,
  /// the limit of every phase, required checks, the expected time, and the reason for a skip.
  record::PlanLine line(const PlannedCase& planned) const;
  /// The case with what the catalogue expects of it: a rule refuses it, a detector catches its
  /// fault, a hazard's verdict, or a pass. Faults and hazards also set isolation and limits.
  PlannedCase planned(Case test_case, std::string why) const;

 private:
  std::vector<std::string> required_checks(const Case& test_case) const;
  std::optional<record::Skip> skip(const PlannedCase& planned, std::int64_t ranks) const;

  const Catalogue& catalogue_;
  const Machine& machine_;
};

/// The line of one case that is not part of a profile (`case`, `repro`).
record::PlanLine plan_case(const Catalogue& catalogue, const Case& test_case,
                           const Machine& machine, std::string why);

/// Whose code the case of a line tests: its axis `subject`.
std::string subject_of(const record::PlanLine& line);

/// Cases with the same key may share processes. The key holds the world size, the device, the
/// isolation, the limits, the subject, who issues collectives, and every environment variable that
/// is read at process start. A case with a planted fault has a key of its own; so has a case with
/// isolation process, or under compute-sanitizer.
std::string batch_key(const record::PlanLine& line, std::string_view device);

/// The environment variables that a case's axes set in its ranks.
std::map<std::string, std::string> case_environment(const AxisTable& axes, const Case& test_case);

}  // namespace graphproof::matrix
