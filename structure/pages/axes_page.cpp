#include <nlohmann/json.hpp>

#include "matrix/case/axes.h"
#include "matrix/catalogue/catalogue.h"
#include "matrix/input/value.h"
#include "structure/pages/markdown.h"
#include "structure/pages/pages.h"

namespace graphproof::structure {
namespace {

std::string values_of(const matrix::Axis& axis) {
  switch (axis.type) {
    case matrix::AxisType::integer:
      return std::to_string(axis.minimum) + " to " + std::to_string(axis.maximum);
    case matrix::AxisType::boolean:
      return "false, true";
    case matrix::AxisType::text:
      return axis.name == "tolerance"
                 ? "`none`, or tolerances as in [matrix.md](matrix.md#tolerances)"
                 : "`none`, or a limit as in [matrix.md](matrix.md#limits-on-times-and-memory)";
    default: {
      std::vector<std::string> words;
      for (const std::string& value : axis.values) words.push_back(code(value));
      return list_of(words);
    }
  }
}

}  // namespace

std::string axes_page() {
  std::string text = page_head(
      "Axes",
      "Every choice that makes a case. A value that equals its default is left out of a case's "
      "name "
      "and id, so a new axis changes no id. A set is written as `modules=[attn,mlp]`, a call as "
      "`recompute=full(block,2)`.",
      "`matrix/tables/axes.json`");
  text += "\n" + table_head({"axis", "type", "values", "default", "meaning"});
  const matrix::AxisTable table = matrix::load_axes();
  for (const matrix::Axis& axis : table.axes()) {
    const bool faults = axis.name == "fault";
    text += table_row({code(axis.name), std::string(axis_type_name(axis.type)),
                       faults ? "`none`, or one of [faults.md](faults.md)" : values_of(axis),
                       code(matrix::value_text(axis.default_value)),
                       axis.meaning + (axis.unit.empty() ? "" : " (" + axis.unit + ")")});
  }
  return text +
         "\n`env.NAME` sets the environment variable NAME of the ranks; its default is `unset`. A "
         "variable that an axis above owns, such as NCCL_ALGO, is refused there.\n";
}

}  // namespace graphproof::structure
