// Numbers in evidence. JSON has no NaN and no infinity, so they are written as the texts "nan",
// "inf" and "-inf".
#pragma once

#include <nlohmann/json.hpp>

#include "reports/record/text/fields.h"

namespace graphproof::record {

/// The JSON of `value`: a number, or one of the three texts.
Json number(double value);

/// The number that `value` spells. ReadError if it is neither a number nor one of the three texts.
double number_from(const nlohmann::json& value);

}  // namespace graphproof::record
