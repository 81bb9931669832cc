// The planned cases that answer statements of public guides (matrix/catalogue/guidance.h).
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "matrix/catalogue/guidance.h"
#include "matrix/plan/plan.h"

namespace graphproof::matrix {

/// The plans of shipped profiles for the simulated device, and for four GPUs of architecture sm_90
/// with every package that a subject needs. Makes each plan once, when it is asked for: those that
/// cover combinations take seconds.
class GuidancePlans {
 public:
  /// REQUIRES: the catalogue outlives this.
  explicit GuidancePlans(const Catalogue& catalogue) : catalogue_(catalogue) {}

  /// The cases of `profile` that run on the cases' device, are not refused, and for which their
  /// condition holds. The pointers live as long as this. Throws InputError for an unknown profile.
  std::vector<const record::PlanLine*> running(const GuidanceCases& cases,
                                               const std::string& profile);
  /// The cases that `rule` refuses and for which `refused` holds: of profile constraints on the
  /// simulated device, and of profile subjects on GPUs.
  std::vector<const record::PlanLine*> refused(const Expression& refused, const std::string& rule);

 private:
  struct Planned {
    Case test_case;
    record::PlanLine line;
  };
  const std::vector<Planned>& planned(const std::string& profile, const std::string& device);

  const Catalogue& catalogue_;
  std::map<std::pair<std::string, std::string>, std::vector<Planned>> plans_;
};

}  // namespace graphproof::matrix
