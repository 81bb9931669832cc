// What a plan needs to know about the machine. The launcher or the command line supplies these
// facts; nothing here looks them up.
#pragma once

#include <nlohmann/json.hpp>

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>

#include "matrix/input/value.h"

namespace graphproof::matrix {

/// A machine: its device, how many ranks a case may have, and the versions of its software.
struct Machine {
  std::string device = "sim";  // sim or cuda
  /// The most ranks that a case may have: the GPUs times the ranks that may share one. On sim it is
  /// a limit.
  std::int64_t slots = 4;
  /// torch_version, nccl_version, cuda_version, driver, te_version, sm,
  /// compute_sanitizer. A variable that is missing
  /// here is unknown; "none" says that the software is not installed.
  std::map<std::string, std::string> stack;
  /// Why a subject (a value of that axis) can't run here, for those that can't: a package that is
  /// not installed, or of a version outside the range.
  std::map<std::string, std::string, std::less<>> unavailable = {};
};

/// Reads the stack variables from the "stack" object of run.json.
std::map<std::string, std::string> stack_variables(const nlohmann::json& stack);

/// The type of a machine or stack variable.
enum class VariableType { integer, version, device };
/// The type of the variable `name`; nothing if there is none of that name.
std::optional<VariableType> variable_type(std::string_view name);
/// The names of all machine and stack variables, for suggestions and lists.
const std::vector<std::string>& variable_names();
/// The variable's value on `machine`; Unknown if it was not supplied. Throws InputError for a stack
/// value that can't be read.
Value variable_value(const Machine& machine, std::string_view name);

}  // namespace graphproof::matrix
