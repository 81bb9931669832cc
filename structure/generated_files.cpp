#include "structure/generated_files.h"

#include "reports/record/evidence/line_description.h"

namespace graphproof::structure {

const std::vector<GeneratedFile>& generated_files() {
  static const std::vector<GeneratedFile> kFiles = {
      {"docs/reference/evidence.md", record::evidence_page},
      {"reports/record/schema/evidence.schema.json", record::evidence_schema},
      {"reports/record/schema/examples/evidence.jsonl", record::evidence_examples},
  };
  return kFiles;
}

}  // namespace graphproof::structure
