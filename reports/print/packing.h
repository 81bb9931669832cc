// Data inside a page: JSON, compressed (gzip) and written in letters (base64). What a rank printed
// cannot end a script then, whatever it is.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace graphproof::reports {

/// See above. Bytes that are not UTF-8 become U+FFFD.
std::string packed(const nlohmann::json& value);

std::string base64(std::string_view bytes);
/// Throws std::runtime_error if `bytes` is not what gzip wrote.
std::string gunzip(std::string_view bytes);

}  // namespace graphproof::reports
