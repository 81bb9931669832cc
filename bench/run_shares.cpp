// How a run's time is divided: `graphproof-bench-run [--by AXIS,...] RUN_FOLDER...` prints, as
// Markdown, seconds per passing case by ranks and these axes (subject and impl), the share of each
// arm, and the medians of an eager step, of a replay, of the time in it that the GPU is busy, and
// of a capture. Shares are of rank 0's phases, among them what comparing the arms takes (phase
// `compare`); the rest of a case's seconds is waiting for peers, the judge and the launcher.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "reports/outcome/run_result.h"
#include "reports/record/evidence/evidence.h"
#include "reports/record/text/file.h"

namespace {

namespace fs = std::filesystem;
using namespace graphproof;

struct Group {
  int cases = 0;
  double seconds = 0;                       // of the cases, as the launcher timed them
  std::map<std::string, double> ms_by_arm;  // phases of rank 0
  double comparing_ms = 0;                  // of them, phase `compare`
  std::map<std::string, std::vector<double>> figures;
};

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2),
                   values.end());
  return values[values.size() / 2];
}

void add_phases(const fs::path& evidence, Group& group) {
  const record::Evidence read = record::read_evidence(evidence);
  for (const record::PhaseLine& line : read.of<record::PhaseLine>()) {
    group.ms_by_arm[line.arm.empty() ? "set-up and teardown" : line.arm] += line.ms;
    if (line.phase == record::Phase::compare) group.comparing_ms += line.ms;
  }
}

/// The passing cases by "N ranks" and the values of `axes`.
std::map<std::string, Group> groups_of(const fs::path& run, const std::vector<std::string>& axes) {
  std::map<std::string, Group> groups;
  for (const reports::CaseResult& result :
       reports::read_run_result(run, reports::Ending::finished, 0).cases) {
    if (result.record.verdict.text() != "pass") continue;
    std::string name =
        fmt::format("{} rank{}", result.plan.ranks, result.plan.ranks == 1 ? "" : "s");
    for (const std::string& axis : axes) {
      const nlohmann::json& value = result.plan.axes.at(axis);
      name += ", " + (value.is_string() ? value.get<std::string>() : axis + "=" + value.dump());
    }
    Group& group = groups[name];
    ++group.cases;
    group.seconds += result.record.seconds;
    for (const auto& [name, value] : result.record.figures) group.figures[name].push_back(value);
    add_phases(run / result.record.artefacts / record::evidence_file_name(0), group);
  }
  return groups;
}

void print(const fs::path& run, const std::vector<std::string>& axes) {
  const auto groups = groups_of(run, axes);
  fmt::print(
      "### {}\n\n| group | cases | seconds per case | eager step, ms | replay step, ms | "
      "GPU busy in it, ms | eager / replay | replay / busy | capture, ms | comparing | time of "
      "rank 0 by arm "
      "|\n"
      "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | --- |\n",
      run.filename().string());
  for (const auto& [name, group] : groups) {
    double total = 0;
    for (const auto& [arm, ms] : group.ms_by_arm) total += ms;
    std::vector<std::pair<double, std::string>> arms;
    for (const auto& [arm, ms] : group.ms_by_arm) arms.emplace_back(ms / total, arm);
    std::sort(arms.rbegin(), arms.rend());
    std::string shares;
    for (const auto& [share, arm] : arms)
      shares += fmt::format("{}{} {:.0f} %", shares.empty() ? "" : ", ", arm, 100 * share);
    const auto figure = [&group = group](const char* key) {
      const auto found = group.figures.find(key);
      return found == group.figures.end() ? 0.0 : median(found->second);
    };
    const double eager = figure("eager_ms"), replay = figure("replay_ms"),
                 busy = figure("graph_busy_ms");
    const auto shown = [](double value) {
      return value > 0 ? fmt::format("{:.2f}", value) : std::string("-");
    };
    const auto ratio = [](double above, double below) {
      return above > 0 && below > 0 ? fmt::format("{:.2f}", above / below) : std::string("-");
    };
    fmt::print("| {} | {} | {:.2f} | {} | {} | {} | {} | {} | {} | {:.0f} % | {} |\n", name,
               group.cases, group.seconds / group.cases, shown(eager), shown(replay), shown(busy),
               ratio(eager, replay), ratio(replay, busy), shown(figure("capture_ms")),
               total > 0 ? 100 * group.comparing_ms / total : 0, shares);
  }
  fmt::print("\n");
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::string> arguments(argv + 1, argv + argc), axes{"subject", "impl"};
  if (arguments.size() > 1 && arguments[0] == "--by") {
    axes.clear();
    std::istringstream listed(arguments[1]);
    for (std::string axis; std::getline(listed, axis, ',');) axes.push_back(axis);
    arguments.erase(arguments.begin(), arguments.begin() + 2);
  }
  if (arguments.empty()) {
    std::cerr << "usage: graphproof-bench-run [--by AXIS,...] RUN_FOLDER...\n";
    return 2;
  }
  try {
    for (const std::string& run : arguments) print(run, axes);
  } catch (const std::exception& error) {
    std::cerr << error.what() << "\n";
    return 2;
  }
  return 0;
}
