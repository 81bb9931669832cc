#include "matrix/cover/model/model.h"

#include <set>

#include "matrix/input/input_error.h"

namespace graphproof::cover {
namespace {

[[noreturn]] void refuse(const std::string& what, const std::string& got, const std::string& next) {
  throw matrix::InputError({what, got, "", "", next});
}

}  // namespace

int Model::visible_count() const {
  int count = 0;
  for (const Parameter& parameter : parameters) count += parameter.hidden ? 0 : 1;
  return count;
}

void check_model(const Model& model) {
  bool hidden = false;
  for (const Parameter& parameter : model.parameters) {
    if (parameter.values.empty())
      refuse("parameter `" + parameter.name + "` has no value", "", "give it one or more");
    for (const Value& value : parameter.values)
      if (value.names.empty())
        refuse("a value of `" + parameter.name + "` has no name", "", "name it");
    if (hidden && !parameter.hidden)
      refuse("parameter `" + parameter.name + "` comes after a hidden one", "",
             "put hidden parameters last");
    hidden = parameter.hidden;
  }
  const int parameter_count = static_cast<int>(model.parameters.size());
  for (const Constraint& constraint : model.constraints)
    for (const Clause& clause : constraint.clauses)
      for (const Literal& literal : clause) {
        if (literal.parameter < 0 || literal.parameter >= parameter_count)
          refuse("constraint `" + constraint.id + "` names a parameter that is not there",
                 std::to_string(literal.parameter),
                 "use an index below " + std::to_string(parameter_count));
        const auto& values = model.parameters[static_cast<std::size_t>(literal.parameter)].values;
        if (literal.value < 0 || literal.value >= static_cast<int>(values.size()))
          refuse("constraint `" + constraint.id + "` names a value that is not there",
                 std::to_string(literal.value),
                 "use an index below " + std::to_string(values.size()));
      }
  for (const Group& group : model.groups) {
    const std::set<int> distinct(group.parameters.begin(), group.parameters.end());
    if (distinct.size() != group.parameters.size())
      refuse("a group names a parameter twice", "", "name each once");
    for (const int parameter : group.parameters)
      if (parameter < 0 || parameter >= model.visible_count())
        refuse("a group names a parameter that is not there", std::to_string(parameter),
               "use an index of a shown parameter");
    if (group.strength < 1 || group.strength > kMaxStrength ||
        group.strength > static_cast<int>(group.parameters.size()))
      refuse("a group's strength is out of range", std::to_string(group.strength),
             "use 1 to " + std::to_string(kMaxStrength) + ", and no more than it has parameters");
  }
}

}  // namespace graphproof::cover
