// Reads settings of a `config` line.
#pragma once

#include <string>
#include <string_view>

#include "reports/record/evidence/evidence.h"

namespace graphproof::checks {

/// A setting as text, so that 1 and "1" are the same; "" if it is absent.
inline std::string setting_text(const record::Settings& settings, std::string_view name) {
  const auto found = settings.find(std::string(name));
  if (found == settings.end()) return "";
  return found->second.is_string() ? found->second.get<std::string>() : found->second.dump();
}

}  // namespace graphproof::checks
