#include "matrix/cover/files/model_file.h"
#include "matrix/input/located_json.h"

namespace graphproof::cover {

ModelFile read_clauses(std::string_view text, std::string source) {
  constexpr std::int64_t kMostValues = 1'000'000;
  const matrix::Document document = matrix::parse_document(text, std::move(source));
  const matrix::Located top(document);
  top.expect_keys({"domain_sizes", "clauses"}, {"name", "source", "names", "values", "ids"});
  ModelFile file;
  for (const matrix::Located& size : top.at("domain_sizes").items()) {
    Parameter parameter{.name = "p" + std::to_string(file.model.parameters.size())};
    const std::int64_t count = size.integer(1, kMostValues);
    for (std::int64_t value = 0; value < count; ++value)
      parameter.values.push_back(Value{.names = {std::to_string(value)}});
    file.model.parameters.push_back(std::move(parameter));
  }
  const auto parameter_count = static_cast<std::int64_t>(file.model.parameters.size());
  const auto clauses = top.at("clauses").items();
  if (parameter_count == 0)
    top.at("domain_sizes")
        .fail("the model has no parameter", "one number of values a parameter", "",
              "add parameters");
  if (top.has("names")) {
    const auto names = top.at("names").items();
    if (names.size() != file.model.parameters.size())
      top.at("names").fail("there are not as many names as parameters",
                           std::to_string(parameter_count), "", "name each parameter");
    for (std::size_t at = 0; at < names.size(); ++at)
      file.model.parameters[at].name = names[at].string();
  }
  if (top.has("values")) {
    const auto lists = top.at("values").items();
    if (lists.size() != file.model.parameters.size())
      top.at("values").fail("there are not as many lists of values as parameters",
                            std::to_string(parameter_count), "", "name each parameter's values");
    for (std::size_t at = 0; at < lists.size(); ++at) {
      const auto names = lists[at].items();
      auto& values = file.model.parameters[at].values;
      if (names.size() != values.size())
        lists[at].fail("the number of values differs from domain_sizes",
                       std::to_string(values.size()), "", "name each value");
      for (std::size_t value = 0; value < names.size(); ++value)
        values[value].names[0] = names[value].string();
    }
  }
  const auto ids = top.has("ids") ? top.at("ids").items() : std::vector<matrix::Located>{};
  if (top.has("ids") && ids.size() != clauses.size())
    top.at("ids").fail("there are not as many ids as clauses", std::to_string(clauses.size()), "",
                       "name each clause");
  for (std::size_t at = 0; at < clauses.size(); ++at) {
    Clause clause;
    for (const matrix::Located& literal : clauses[at].items()) {
      const auto parts = literal.items();
      if (parts.size() != 3)
        literal.fail("a literal has three parts", "[parameter, value, positive]", "",
                     "write the indices and true or false");
      const auto parameter = static_cast<int>(parts[0].integer(0, parameter_count - 1));
      const auto value_count = static_cast<std::int64_t>(
          file.model.parameters[static_cast<std::size_t>(parameter)].values.size());
      clause.push_back(
          {parameter, static_cast<int>(parts[1].integer(0, value_count - 1)), parts[2].boolean()});
    }
    // Clauses with the same id form one constraint.
    std::string id = ids.empty() ? "clause " + std::to_string(at + 1) : ids[at].string();
    if (!ids.empty() && !file.model.constraints.empty() && file.model.constraints.back().id == id) {
      file.model.constraints.back().clauses.push_back(std::move(clause));
    } else {
      file.model.constraints.push_back({std::move(id), {std::move(clause)}});
    }
  }
  return file;
}

}  // namespace graphproof::cover
