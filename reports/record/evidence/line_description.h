// The kinds of evidence lines as data, for what is generated from their tables: the JSON schema,
// the examples and the page docs/reference/evidence.md.
#pragma once

#include <string>
#include <vector>

#include "reports/record/evidence/table/field_table.h"

namespace graphproof::record {

/// A kind of line. `since`: the first evidence revision that has it.
struct KindDescription {
  std::string kind, doc;
  std::int64_t since = 1;
  std::vector<FieldDescription> fields;
};

/// Every kind, in the order of lines/kinds.h.
const std::vector<KindDescription>& kind_descriptions();

/// A generated JSON file: indented, and each value that fits on its line is on one line.
std::string generated_json(const Json& value);

/// reports/record/schema/evidence.schema.json
std::string evidence_schema();
/// reports/record/schema/examples/evidence.jsonl: one line a kind, with every field that it may
/// have.
std::string evidence_examples();
/// docs/reference/evidence.md
std::string evidence_page();

}  // namespace graphproof::record
