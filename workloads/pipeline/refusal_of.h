// Helper for the tests of this folder.
#pragma once

#include <functional>
#include <string>

#include "workloads/pipeline/pipeline_order.h"

namespace graphproof::order {

/// The message of the Refused that `call` throws; empty if it returns.
inline std::string refusal_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Refused& error) {
    return error.what();
  }
  return "";
}

}  // namespace graphproof::order
