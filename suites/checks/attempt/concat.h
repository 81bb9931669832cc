// One sentence from its parts: concat("rank ", 3, " at step ", 7).
#pragma once

#include <sstream>
#include <string>

namespace graphproof::checks {

template <class... Parts>
std::string concat(const Parts&... parts) {
  std::ostringstream out;
  out.precision(9);  // tells any two fp32 values apart
  (out << ... << parts);
  return out.str();
}

}  // namespace graphproof::checks
