// For the tests of the order functions.
#pragma once

#include <functional>
#include <string>

#include "workloads/pipeline/pipeline_order.h"

namespace graphproof::order {

/// What the Refused that `call` throws says; empty if it returns.
inline std::string refusal_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Refused& error) {
    return error.what();
  }
  return "";
}

}  // namespace graphproof::order
