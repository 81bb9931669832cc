#include "matrix/case/case.h"
#include "matrix/catalogue/catalogue.h"
#include "structure/pages/markdown.h"
#include "structure/pages/pages.h"

namespace graphproof::structure {

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
  return text;
}

}  // namespace graphproof::structure
