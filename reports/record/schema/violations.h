// For tests of every folder: what a JSON value breaks of the schema of its file kind. The schemas
// are inside the library, so a test needs no path.
#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace graphproof::record {

/// The file kinds with a schema: batch, heartbeat, evidence, checks, plan, record, run, context,
/// summary, faults, live, compare, shrink.
const std::vector<std::string_view>& schema_names();

/// One schema, parsed once for many values.
class SchemaOf {
 public:
  /// Throws std::invalid_argument if there is no such schema.
  explicit SchemaOf(std::string_view name);
  ~SchemaOf();

  /// One sentence per violation, with the place in the value; empty if `value` is as the schema
  /// wants. Of kinds that are line by line (heartbeat, evidence, plan, record) `value` is one line.
  std::vector<std::string> violations(const nlohmann::json& value);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// The same for a single value.
std::vector<std::string> violations(std::string_view schema, const nlohmann::json& value);

}  // namespace graphproof::record
