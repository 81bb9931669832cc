#include "matrix/catalogue/capabilities.h"

namespace graphproof::matrix {

CapabilityTable CapabilityTable::parse(const Document& document, const AxisTable& axes) {
  CapabilityTable table;
  const Scope scope{.axes = &axes, .defines = {}};
  const Located root(document);
  root.expect_keys({"schema", "capabilities"}, {});
  root.at("schema").word({"graphproof-capabilities/1"});
  for (const Located& row : root.at("capabilities").items()) {
    row.expect_keys({"require", "missing"}, {});
    table.capabilities_.push_back(
        {.require =
             Expression::condition(row.at("require").string(), scope, row.at("require").origin()),
         .missing = row.at("missing").string()});
  }
  return table;
}

std::vector<std::string> CapabilityTable::missing(const Case& test_case,
                                                  const Machine& machine) const {
  std::vector<std::string> result;
  for (const Capability& capability : capabilities_) {
    const std::vector<Value> values = input_values(capability.require.inputs(), test_case, machine);
    if (capability.require.holds(values) == Truth::yes) continue;
    std::string names;
    for (std::size_t i = 0; i < values.size(); ++i)
      names += (names.empty() ? "" : ", ") + capability.require.inputs()[i].name + "=" +
               value_text(values[i]);
    result.push_back(names + ": " + capability.missing);
  }
  return result;
}

}  // namespace graphproof::matrix
