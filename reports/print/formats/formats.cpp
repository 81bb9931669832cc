#include "reports/print/formats/formats.h"

#include <array>

namespace graphproof::reports {
namespace {

namespace fs = std::filesystem;

template <std::string (*text)(const RunResult&)>
std::string of_result(const RunResult& run, const fs::path&) {
  return text(run);
}

constexpr std::array<Format, 5> kFormats = {{
    {"github", "", of_result<github_annotations>},
    {"gitlab", "gl-code-quality-report.json", of_result<gitlab_code_quality>},
    {"prometheus", "graphproof.prom", of_result<prometheus>},
    {"ctrf", "ctrf-report.json", of_result<ctrf>},
    {"trace", "trace.json", chrome_trace},
}};

}  // namespace

std::span<const Format> formats() { return kFormats; }

}  // namespace graphproof::reports
