// How a rank is started under compute-sanitizer of NVIDIA: for cases of the axis `sanitizer`, and
// in the scripts of `repro`.
#pragma once

#include <string>
#include <vector>

namespace graphproof::launcher {

/// The name of the program, which is searched for in PATH.
inline constexpr const char* kComputeSanitizer = "compute-sanitizer";
/// In a rank it holds the tool under which it runs. The rank then tells the tool the bounds of its
/// tensors (fixtures/device/cuda/tensor_bounds.h).
inline constexpr const char* kSanitizerVariable = "GRAPHPROOF_COMPUTE_SANITIZER";

/// The options that come before the program that is to be checked. `tool`: memcheck, racecheck,
/// initcheck, synccheck. `log`: where the tool writes, with the tool's own sequences such as %p.
std::vector<std::string> sanitizer_options(const std::string& tool, const std::string& log);

/// `path` so that the option --log-file takes it literally.
std::string sanitizer_log_name(const std::string& path);

}  // namespace graphproof::launcher
