#include "launcher/run/recorder.h"

#include <algorithm>

#include "launcher/host/clocks.h"
#include "reports/outcome/outcome.h"

namespace graphproof::launcher {
namespace {

// junit.xml is written again at most this often: with thousands of cases it is not small.
constexpr std::int64_t kJunit_ms = 2000;
// junit.xml is written as a whole, and grows with the run. It takes at most a hundredth of the
// time.
constexpr std::int64_t kJunitShare = 100;

bool failed(const record::Record& record) {
  return reports::exit_code(record.verdict, record.rule) == record::ExitCode::product;
}

}  // namespace

Recorder::Recorder(const RunSetup& setup, const std::vector<record::Record>& earlier)
    : setup_(setup),
      junit_(setup.run.profile, setup.run_name, setup.plan),
      journal_(setup.folder / "journal.jsonl"),
      earlier_(record::last_records(earlier)) {
  for (const record::PlanLine& line : setup.plan) {
    lines_.emplace(line.id, &line);
    if (line.skip)
      ++skipped_;
    else
      expected_left_seconds_ += line.expected_seconds;
  }
  for (const record::Record& record : earlier) junit_.add(record);
  junit_.write(setup.folder / "junit.xml");
}

void Recorder::begin(const std::set<std::string>& open) {
  for (const auto& [id, record] : earlier_)
    if (!open.contains(id) && lines_.contains(id)) finish(record);
  earlier_.clear();
}

void Recorder::keep(const record::Record& record, bool verdict_stands) {
  journal_.append(record);
  junit_.add(record);
  write_junit();
  if (verdict_stands) finish(record);
}

void Recorder::finish(const record::Record& record) {
  const double expected_seconds = line(record.case_id).expected_seconds;
  expected_done_seconds_ += expected_seconds;
  expected_left_seconds_ = std::max(0.0, expected_left_seconds_ - expected_seconds);
  done_.insert(record.case_id);
  failed_ += failed(record);
}

void Recorder::write_junit() {
  const std::int64_t now_ms = steady_ms();
  if (now_ms < next_junit_ms_) return;
  junit_.write(setup_.folder / "junit.xml");
  const std::int64_t written_ms = steady_ms();
  next_junit_ms_ = written_ms + std::max(kJunit_ms, kJunitShare * (written_ms - now_ms));
}

bool Recorder::is_last(const std::string& case_id) const {
  const std::size_t others = done_.size() - done_.count(case_id);
  return others + static_cast<std::size_t>(skipped_) + 1 == setup_.plan.size();
}

reports::Progress Recorder::progress() const {
  reports::Progress progress;
  progress.planned = static_cast<int>(setup_.plan.size());
  progress.done = static_cast<int>(done_.size()) + skipped_;
  progress.failed = failed_;
  progress.expected_done_seconds = expected_done_seconds_;
  progress.expected_left_seconds = expected_left_seconds_;
  return progress;
}

}  // namespace graphproof::launcher
