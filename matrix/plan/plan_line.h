// One line of a plan: a case with everything that the launcher needs to run it and the reports need
// to judge it.
#pragma once

#include <nlohmann/json.hpp>

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "matrix/case/machine.h"
#include "matrix/catalogue/catalogue.h"
#include "matrix/catalogue/limits.h"

namespace graphproof::matrix {

/// What a plan says about a case beside what the case itself says.
struct Wanted {
  Case test_case;
  std::string why;
  std::string isolation = "batch";
  nlohmann::json expect = {{"kind", "pass"}};
  Limits limits = {};  // beside the defaults
  std::string skip_as = {}, skip_why = {};
};

class LineMaker {
 public:
  /// REQUIRES: both outlive the maker.
  LineMaker(const Catalogue& catalogue, const Machine& machine)
      : catalogue_(catalogue), machine_(machine) {}

  /// reports/record/schema/plan.schema.json.
  nlohmann::json make(const Wanted& wanted) const;
  /// What a case is expected to do: be refused, be killed as a fault, or pass.
  Wanted wanted(Case test_case, std::string why) const;

 private:
  std::vector<std::string> required(const Case& test_case) const;
  nlohmann::json skip_of(const Wanted& wanted, std::int64_t ranks) const;

  const Catalogue& catalogue_;
  const Machine& machine_;
};

/// The line of one case that is not part of a profile (`case`, `repro`).
nlohmann::json plan_case(const Catalogue& catalogue, const Case& test_case, const Machine& machine,
                         std::string why);

/// Cases with the same key may share processes: world size, device, isolation, limits, who issues
/// collectives, and every environment variable read at process start. A planted fault has a key of
/// its own; so has a case with isolation process.
std::string batch_key(const nlohmann::json& plan_line, std::string_view device);

/// The environment variables that a case's axes set in its ranks.
std::map<std::string, std::string> case_environment(const AxisTable& axes, const Case& test_case);

}  // namespace graphproof::matrix
