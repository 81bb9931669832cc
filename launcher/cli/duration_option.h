// Options whose value is a duration, such as 30m or 1h30m.
#pragma once

#include <cstdint>
#include <string>

namespace graphproof::cli {

/// Milliseconds; 0 for an empty text. `option` names the option in the InputError for a text that
/// is no duration.
std::int64_t duration_option_ms(const std::string& text, const std::string& option);

}  // namespace graphproof::cli
