// Reads YAML as the located JSON document that the readers of matrix/ take: the values, and the
// lines on which they are.
#pragma once

#include <string>

#include "matrix/input/located_json.h"

namespace graphproof::cli {

/// Plain scalars become null, booleans, integers and numbers as Python's loaders read them; quoted
/// scalars stay strings; `<<` merges mappings. Throws matrix::InputError with the place.
matrix::Document yaml_document(const std::string& text, const std::string& source);

}  // namespace graphproof::cli
