#include "structure/generated_files.h"

#include "launcher/cli/help/generated_files.h"
#include "launcher/cli/verb.h"
#include "matrix/catalogue/catalogue.h"
#include "reports/record/evidence/line_description.h"
#include "reports/record/watched/watched_schemas.h"
#include "structure/folders_page.h"
#include "structure/pages/pages.h"

namespace graphproof::structure {

const std::vector<GeneratedFile>& generated_files() {
  static const std::vector<GeneratedFile> kFiles = [] {
    std::vector<GeneratedFile> files = {
        {"docs/reference/axes.md", axes_page},
        {"docs/reference/checks.md", checks_page},
        {"docs/reference/evidence.md", record::evidence_page},
        {"docs/reference/faults.md", faults_page},
        {"docs/reference/folders.md", folders_page},
        {"docs/reference/guides.md", guides_page},
        {"docs/reference/rules.md", rules_page},
        {"docs/reference/subjects.md", subjects_page},
        {"docs/reference/verdicts.md", verdicts_page},
        {"python/graphproof/subjects/refusals.json", refusals_of_subjects},
        {"reports/record/schema/evidence.schema.json", record::evidence_schema},
        {"reports/record/schema/examples/evidence.jsonl", record::evidence_examples},
        {"reports/record/schema/examples/watched.json", record::watched_example},
        {"reports/record/schema/examples/watched_checks.json", record::watched_checks_example},
        {"reports/record/schema/watched.schema.json", record::watched_schema},
        {"reports/record/schema/watched_checks.schema.json", record::watched_checks_schema},
    };
    const matrix::Catalogue catalogue = matrix::load_catalogue();
    for (const auto& [name, text] : cli::generated_files(cli::verbs(), catalogue.axes))
      files.push_back({"launcher/cli/help/" + name, [text = text] { return text; }});
    return files;
  }();
  return kFiles;
}

}  // namespace graphproof::structure
