#include "matrix/case/case.h"
#include "matrix/catalogue/catalogue.h"
#include "matrix/catalogue/known_defects.h"
#include "structure/pages/markdown.h"
#include "structure/pages/pages.h"

namespace graphproof::structure {
namespace {

/// "fault M01, fault M374", or why nothing shows it.
std::string shown_by(const matrix::KnownDefect& defect) {
  if (!defect.why_not.empty()) return "nothing: " + defect.why_not;
  std::string text;
  const auto add = [&](const std::string& one) { text += (text.empty() ? "" : ", ") + one; };
  for (const std::string& fault : defect.faults) add("fault " + fault);
  for (const std::string& program : defect.programs) add("watched program " + program);
  for (const std::string& test : defect.tests) add("test " + code(test));
  return text;
}

}  // namespace

std::string faults_page() {
  const matrix::Catalogue catalogue = matrix::load_catalogue();
  std::string text = page_head(
      "Planted faults",
      "Every defect that can be planted in a case with `fault=ID`. `./graphproof run --profile "
      "faults` runs each in the case that is shown, and the same case without it, its clean twin. "
      "The fault has to fail a check of its [detector](checks.md), and the twin has to pass.",
      "`matrix/tables/faults.json`");
  text += "\n" + table_head({"fault", "name", "what it does", "detector", "what the detector sees",
                             "planted in", "devices", "isolation"});
  for (const matrix::FaultEntry& fault : catalogue.faults.faults())
    text += table_row({fault.fault, code(fault.name), fault.title, fault.detector_text(),
                       fault.signature, code(case_name(catalogue.axes, fault.twin)),
                       list_of(fault.devices), fault.isolation});
  text +=
      "\n## Defects by another number\n\n"
      "M01 to M90 are the numbers of defects that were collected from public reports before "
      "this project began. Those that are not in the table above are these. What shows them is "
      "a fault of the table above, a program of [watched runs](../guide/watch.md), or tests; "
      "those of `CaptureErrors` are part of `graphproof-contract-cuda` and need a GPU. "
      "`matrix/tables/known_defects.json` has the rows.\n\n";
  text += table_head({"defect", "what it is", "what shows it"});
  const matrix::KnownDefectTable known = matrix::load_known_defects();
  for (const matrix::KnownDefect& defect : known.rows())
    text += table_row({defect.defect, defect.title, shown_by(defect)});
  return text;
}

}  // namespace graphproof::structure
