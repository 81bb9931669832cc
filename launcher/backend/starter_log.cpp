#include "launcher/backend/starter_log.h"

#include <regex>
#include <string>

namespace graphproof::launcher {
namespace {

/// A sentence that a starter prints, and the kind of infrastructure trouble that it stands for.
struct Trouble {
  std::string_view sentence, kind;
};
constexpr Trouble kTroubles[] = {
    {"graphproof-start could not start", "launch"},
    {"There are not enough slots available", "launch"},
    {"was unable to find the specified executable", "launch"},
    {"was unable to launch the specified application", "launch"},
    {"could not access or execute an executable", "launch"},
    {"was unable to start", "launch"},
    {"An ORTE daemon has unexpectedly failed", "node"},
    {"ORTE was unable to reliably start", "node"},
    {"ORTE has lost communication with a remote daemon", "network"},
    {"No space left on device", "disk"},
};

/// The paragraph around position `at`, on one line.
std::string paragraph(std::string_view text, std::size_t at) {
  const std::size_t before = text.rfind("\n\n", at), after = text.find("\n\n", at);
  const std::size_t begin = before == std::string_view::npos ? 0 : before + 2;
  std::string line(text.substr(begin, after == std::string_view::npos ? after : after - begin));
  static constexpr std::size_t kShown = 400;
  line = std::regex_replace(line, std::regex("-{8,}"), "");
  line = std::regex_replace(line, std::regex("\\s+"), " ");
  return line.substr(0, kShown);
}

/// A pattern, and what its second group is; the first group is always the rank.
struct Ending {
  const char* pattern;
  const char* kind;
};
constexpr Ending kEndings[] = {
    {R"(graphproof-start: rank (\d+) with PID \d+ ended by signal (\d+))", "signal"},
    {R"(graphproof-start: rank (\d+) with PID \d+ ended with exit code (\d+))", "exited"},
    {R"(process rank (\d+) with PID \d+ on node \S+ exited on\s+signal (\d+))", "signal"},
    {R"(Process name: \[\[\d+,\d+\],\s*(\d+)\]\s+Exit code:\s+(\d+))", "exited"},
    {R"(Process name: \[\S+,(\d+)\]\s+Exit code:\s+(\d+))", "exited"},
    {R"(MPI_ABORT was invoked on rank (\d+) in communicator[^\n]*\s+)"
     R"((?:Proc: [^\n]*\s+)?[Ww]ith\s+errorcode (\d+))",
     "exited"},
};

}  // namespace

StarterReport read_starter_log(std::string_view text) {
  StarterReport report;
  if (text.empty())
    return report;  // the case for nearly every batch; compiling the patterns costs a millisecond
  for (const auto& [sentence, kind] : kTroubles)
    if (const std::size_t at = text.find(sentence); at != std::string_view::npos && !report.infra)
      report.infra = record::Infra{std::string(kind), paragraph(text, at)};
  std::size_t first = std::string_view::npos;
  for (const auto& [pattern, kind] : kEndings) {
    std::cmatch match;
    if (!std::regex_search(text.data(), text.data() + text.size(), match, std::regex(pattern)))
      continue;
    if (static_cast<std::size_t>(match.position()) > first) continue;
    first = match.position();
    report.rank = std::stoi(match[1]);
    report.exit = record::Exit{kind, std::stoi(match[2])};
  }
  return report;
}

}  // namespace graphproof::launcher
