// Rows as files: CSV with a header line of parameter names, or one JSON object a line.
#pragma once

#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include "matrix/cover/model/model.h"

namespace graphproof::cover {

enum class RowFormat { csv, json_lines };

/// By the content: JSON lines begin with `{`.
RowFormat row_format_of(std::string_view text);

/// Names of the values, aliases in turn over the rows.
void write_rows(std::ostream& out, const Model& model, const std::vector<Row>& rows,
                RowFormat format);

/// What to do with a name that the model doesn't have.
enum class Unknown { refuse, leave_open };

/// Columns in any order. A cell may be empty (kAny) only with `leave_open`, which also takes
/// columns and values that the model doesn't have, as an earlier plan's rows may have. Throws
/// InputError with the place.
std::vector<Row> read_rows(std::string_view text, std::string source, const Model& model,
                           Unknown unknown);

}  // namespace graphproof::cover
