#include "launcher/run/expectation.h"

#include <algorithm>

#include "launcher/run/run_folder.h"
#include "reports/record/run/journal.h"
#include "reports/record/text/file.h"

namespace graphproof::launcher {

namespace fs = std::filesystem;

std::map<std::string, double> earlier_seconds(const fs::path& runs, std::string_view device) {
  std::map<std::string, std::vector<double>> samples;
  std::int64_t bytes_left = kExpectationBytes;
  int runs_left = kExpectationRuns;
  for (const std::string& id : run_ids(runs)) {
    const fs::path journal = runs / id / "journal.jsonl";
    std::error_code absent;
    const auto bytes = static_cast<std::int64_t>(fs::file_size(journal, absent));
    if (absent || bytes > bytes_left) continue;
    if (runs_left-- == 0) break;
    bytes_left -= bytes;
    try {
      for (const record::Record& record : record::read_journal(journal).records)
        if (record.verdict.in("pass") && record.context.device == device && record.seconds > 0)
          samples[record.case_id].push_back(record.seconds);
    } catch (const record::ReadError&) {
      // The verb that reads that run reports it.
    }
  }
  std::map<std::string, double> seconds;
  for (auto& [id, taken] : samples) {
    std::nth_element(taken.begin(), taken.begin() + static_cast<std::ptrdiff_t>(taken.size() / 2),
                     taken.end());
    seconds[id] = taken[taken.size() / 2];
  }
  return seconds;
}

void expect(std::vector<record::PlanLine>& plan, const std::map<std::string, double>& seconds) {
  for (record::PlanLine& line : plan)
    if (const auto known = seconds.find(line.id); known != seconds.end())
      line.expected_seconds = known->second;
}

}  // namespace graphproof::launcher
