#include "reports/print/formats/formats.h"

#include <array>

namespace graphproof::reports {
namespace {

namespace fs = std::filesystem;

/// A short text, which is one piece.
template <std::string (*text)(const RunResult&)>
void whole(const RunResult& run, const fs::path&, const Put& put) {
  put(text(run));
}

template <void (*pieces)(const RunResult&, const Put&)>
void of_result(const RunResult& run, const fs::path&, const Put& put) {
  pieces(run, put);
}

constexpr std::array<Format, 5> kFormats = {{
    {"github", "", whole<github_annotations>},
    {"gitlab", "gl-code-quality-report.json", of_result<gitlab_code_quality>},
    {"prometheus", "graphproof.prom", whole<prometheus>},
    {"ctrf", "ctrf-report.json", of_result<ctrf>},
    {"trace", "trace.json", chrome_trace},
}};

}  // namespace

std::span<const Format> formats() { return kFormats; }

}  // namespace graphproof::reports
