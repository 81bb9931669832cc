// The message with which a call refuses its arguments, for tests.
#pragma once

#include <string>

namespace graphproof::engines {

/// The message of the Error that `call` throws, or "accepted".
template <class Error, class Call>
inline std::string refusal(Call call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "accepted";
}

}  // namespace graphproof::engines
