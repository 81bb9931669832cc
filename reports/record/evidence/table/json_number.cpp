#include "reports/record/evidence/table/json_number.h"

#include <cmath>
#include <limits>

namespace graphproof::record {

Json number(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  return value;
}

double number_from(const nlohmann::json& value) {
  if (value.is_number()) return value.get<double>();
  if (value == "nan") return std::numeric_limits<double>::quiet_NaN();
  if (value == "inf") return std::numeric_limits<double>::infinity();
  if (value == "-inf") return -std::numeric_limits<double>::infinity();
  throw ReadError({.what = "an evidence value is not a number",
                   .got = value.dump(),
                   .want = "a number, nan, inf or -inf",
                   .why = "",
                   .next = "look at the evidence file; reports/record/schema has its schema"});
}

}  // namespace graphproof::record
