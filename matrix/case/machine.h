// What a plan needs to know of the machine: facts supplied by the launcher or the command line,
// never looked up here.
#pragma once

#include <nlohmann/json.hpp>

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "matrix/input/value.h"

namespace graphproof::matrix {

struct Machine {
  std::string device = "sim";  // sim or cuda
  std::int64_t slots =
      4;  // ranks that a case may have: GPUs times the ranks that may share one; on sim a limit
  /// torch_version, nccl_version, cuda_version, driver, te_version, sm. A missing one is unknown;
  /// "none" is absent.
  std::map<std::string, std::string> stack;
};

/// The stack variables of a stack fingerprint (run.json "stack").
std::map<std::string, std::string> stack_variables(const nlohmann::json& stack);

enum class VariableType { integer, version, device };
/// The type of a machine or stack variable, nothing when there is none of that name.
std::optional<VariableType> variable_type(std::string_view name);
/// Their names, for suggestions and lists.
const std::vector<std::string>& variable_names();
/// Its value on `machine`; Unknown when nobody supplied it. Throws InputError for a stack value of
/// the wrong form.
Value variable_value(const Machine& machine, std::string_view name);

}  // namespace graphproof::matrix
