// How long a rank may stay silent in each phase: the shipped defaults (matrix/tables/limits.json),
// and durations as users write them ("120s", "4h").
#pragma once

#include <cstdint>

#include "matrix/input/located_json.h"
#include "reports/record/job/batch.h"

namespace graphproof::matrix {

/// Milliseconds for each phase.
using Limits = record::Limits;

/// The limits of the shipped table, which has every phase. Throws InputError.
Limits parse_default_limits(const Document& document);
/// Reads {"replay": "10s", ...}, which may leave phases out. Throws InputError for an unknown
/// phase.
Limits parse_limits(const Located& object);
/// "250ms", "10s", "4m", "1h30m" or milliseconds as an integer. Throws InputError.
std::int64_t duration_ms(const Located& value);

}  // namespace graphproof::matrix
