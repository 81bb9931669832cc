// Writes a verdict as SARIF 2.1.0, which code hosts show as annotations of lines.
#pragma once

#include <nlohmann/json.hpp>

#include "matrix/dialect/check.h"

namespace graphproof::dialect {

/// `uri` is the checked file; empty for a command line.
nlohmann::json sarif(const Verdict& verdict, const std::string& uri);

}  // namespace graphproof::dialect
