#include "matrix/catalogue/capabilities.h"

namespace graphproof::matrix {

CapabilityTable CapabilityTable::parse(const Document& document, const AxisTable& axes,
                                       const std::vector<Capability>& others) {
  CapabilityTable table;
  const Scope scope{.axes = &axes, .defines = {}};
  const Located root(document);
  root.expect_keys({"schema", "capabilities"}, {});
  root.at("schema").word({"graphproof-capabilities/1"});
  for (const Located& row : root.at("capabilities").items()) {
    row.expect_keys({"require", "missing"}, {"of_architecture"});
    table.capabilities_.push_back(
        {.subjects = {std::string(kReference)},
         .require =
             Expression::condition(row.at("require").string(), scope, row.at("require").origin()),
         .missing = row.at("missing").string(),
         .of_architecture = row.has("of_architecture") && row.at("of_architecture").boolean()});
  }
  table.capabilities_.insert(table.capabilities_.end(), others.begin(), others.end());
  for (std::size_t row = 0; row < table.capabilities_.size(); ++row)
    for (const std::string& subject : table.capabilities_[row].subjects)
      table.rows_[subject].push_back(row);
  return table;
}

std::vector<std::string> CapabilityTable::missing(const Case& test_case,
                                                  const Machine& machine) const {
  std::vector<std::string> result;
  const std::string_view subject = subject_of(test_case);
  if (const auto found = machine.unavailable.find(subject); found != machine.unavailable.end())
    result.push_back("subject=" + found->first + ": " + found->second);
  append_missing(/*of_architecture=*/false, test_case, machine, result);
  return result;
}

std::vector<std::string> CapabilityTable::missing_in_architecture(const Case& test_case,
                                                                  const Machine& machine) const {
  std::vector<std::string> result;
  append_missing(/*of_architecture=*/true, test_case, machine, result);
  return result;
}

void CapabilityTable::append_missing(bool of_architecture, const Case& test_case,
                                     const Machine& machine,
                                     std::vector<std::string>& result) const {
  const auto rows = rows_.find(subject_of(test_case));
  if (rows == rows_.end()) return;
  for (const std::size_t row : rows->second) {
    const Capability& capability = capabilities_[row];
    if (capability.of_architecture != of_architecture) continue;
    const std::vector<Value> values = input_values(capability.require.inputs(), test_case, machine);
    if (capability.require.holds(values) == Truth::yes) continue;
    std::string names;
    for (std::size_t i = 0; i < values.size(); ++i)
      names += (names.empty() ? "" : ", ") + capability.require.inputs()[i].name + "=" +
               value_text(values[i]);
    result.push_back(names + ": " + capability.missing);
  }
}

}  // namespace graphproof::matrix
