// For tests: the InputError that a call throws, so that a test can state what the user reads.
#pragma once

#include <gtest/gtest.h>

#include "matrix/input/input_error.h"

namespace graphproof::matrix {

/// The problem that `call` reports; the test fails if it throws nothing.
template <typename Call>
Problem thrown(Call call) {
  try {
    call();
  } catch (const InputError& error) {
    return error.problem();
  }
  ADD_FAILURE() << "no InputError was thrown";
  return {};
}

/// The place of a problem as "line:column".
inline std::string at(const Problem& problem) {
  return std::to_string(problem.place.line) + ":" + std::to_string(problem.place.column);
}

}  // namespace graphproof::matrix
