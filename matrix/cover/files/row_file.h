// Reads and writes rows: CSV with a header line of parameter names, or one JSON object for each
// line.
#pragma once

#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include "matrix/cover/model/model.h"

namespace graphproof::cover {

/// The format of a file of rows.
enum class RowFormat { csv, json_lines };

/// The format of a text; JSON lines begin with `{`.
RowFormat row_format_of(std::string_view text);

/// Writes the names of the values. The rows use the aliases of a value in turn.
void write_rows(std::ostream& out, const Model& model, const std::vector<Row>& rows,
                RowFormat format);

/// What to do with a name that the model does not have.
enum class Unknown { refuse, leave_open };

/// Reads rows, whose columns may be in any order. With `leave_open` a cell may be empty (kAny), and
/// columns and values that the model does not have are accepted, because the rows of an earlier
/// plan may have such. Throws InputError with the place.
std::vector<Row> read_rows(std::string_view text, std::string source, const Model& model,
                           Unknown unknown);

}  // namespace graphproof::cover
