#include "launcher/backend/compute_sanitizer.h"

namespace graphproof::launcher {

// Errors of CUDA's calls are not reported: a rank asks the driver about addresses that it may not
// know, and ends by itself where an error matters. A kernel with an error ends, but not its
// context, so that the rank goes on to its end and every other error is found too. Launches wait
// for the device, because the host tells the tool of tensors that are freed while kernels that use
// them may still be queued. Whether a rank is slow is decided by the limits of its phases alone,
// not by a limit of the tool. Source: the user manual of Compute Sanitizer, command line options.
std::vector<std::string> sanitizer_options(const std::string& tool, const std::string& log) {
  return {"--tool",
          tool,
          "--target-processes",
          "all",
          "--report-api-errors",
          "no",
          "--check-exit-code",
          "no",
          "--destroy-on-device-error",
          "kernel",
          "--force-blocking-launches",
          "--launch-timeout",
          "0",
          "--log-file",
          log};
}

std::string sanitizer_log_name(const std::string& path) {
  std::string name;
  for (const char c : path) name += c == '%' ? std::string("%%") : std::string(1, c);
  return name;
}

}  // namespace graphproof::launcher
