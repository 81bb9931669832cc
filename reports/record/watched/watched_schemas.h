// The JSON schemas and examples of watched.json and of the checks.json of a watched run, from the
// tables of their structs. graphproof-generate writes them into reports/record/schema.
#pragma once

#include <string>

namespace graphproof::record {

/// reports/record/schema/watched.schema.json and its example.
std::string watched_schema();
std::string watched_example();

/// reports/record/schema/watched_checks.schema.json and its example.
std::string watched_checks_schema();
std::string watched_checks_example();

}  // namespace graphproof::record
