// For tests of every folder: where a JSON value violates the schema of its kind of file. The
// schemas are inside the library, so a test needs no path.
#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace graphproof::record {

/// The kinds of files with a schema: the NAME of every reports/record/schema/NAME.schema.json.
const std::vector<std::string_view>& schema_names();

/// One schema, parsed once for many values.
class SchemaOf {
 public:
  /// Throws std::invalid_argument if there is no such schema.
  explicit SchemaOf(std::string_view name);
  ~SchemaOf();

  /// One sentence per violation, with its place in the value; empty if `value` fits the schema. For
  /// kinds of files with one value a line (heartbeat, evidence, plan, record), `value` is a line.
  std::vector<std::string> violations(const nlohmann::json& value);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// The same for a single value.
std::vector<std::string> violations(std::string_view schema, const nlohmann::json& value);

}  // namespace graphproof::record
