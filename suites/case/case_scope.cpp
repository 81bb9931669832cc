#include "suites/case/case_scope.h"

#include <algorithm>
#include <cstdlib>

#include "fixtures/device/error.h"

namespace graphproof::suites {
namespace {

// Differs from the exit codes of the rank program (suites/rank/batch_run.h).
constexpr int kExitPlanted = 12;
// Voted for a failure that has no code of its own.
constexpr int kCodeWithoutNumber = 1;

std::string codes_text(const std::vector<int>& codes) {
  std::string text;
  for (std::size_t rank = 0; rank < codes.size(); ++rank)
    if (codes[rank] != 0)
      text += (text.empty() ? "" : ", ") + ("rank " + std::to_string(rank)) + " with code " +
              std::to_string(codes[rank]);
  return text;
}

}  // namespace

PeerFailure::PeerFailure(Phase boundary, const std::vector<int>& codes)
    : std::runtime_error(
          record::to_text({.what = "vote after phase " + std::string(record::name(boundary)),
                           .got = codes_text(codes),
                           .want = "no error on any rank",
                           .why = "no rank may enter a collective without its peers",
                           .next = "read the evidence of that rank"})) {}

CaseScope::CaseScope(record::EvidenceWriter& evidence, fixtures::HeartbeatWriter& heartbeat)
    : evidence_(evidence),
      evidence_file_(evidence.file()),
      entered_([&heartbeat](Phase phase, const std::string& arm, std::int64_t step) {
        heartbeat.phase(phase, arm, step);
      }),
      since_(Clock::now()) {}

CaseScope::CaseScope(record::EvidenceLines& evidence, Entered entered)
    : evidence_(evidence), entered_(std::move(entered)), since_(Clock::now()) {}

void CaseScope::spent(Phase phase, double ms) {
  spent_.push_back({.phase = phase, .arm = "", .ms = ms});
}

void CaseScope::enter(Phase phase, const std::string& arm, std::int64_t step) {
  account();
  phase_ = phase;
  arm_ = arm;
  step_ = step;
  entered_(phase, arm, step);
  if (exit_in_ == phase) std::_Exit(kExitPlanted);
}

void CaseScope::account() {
  const auto now = Clock::now();
  const double ms = std::chrono::duration<double, std::milli>(now - since_).count();
  since_ = now;
  const auto same = std::find_if(spent_.begin(), spent_.end(), [&](const Spent& spent) {
    return spent.phase == phase_ && spent.arm == arm_;
  });
  if (same != spent_.end())
    same->ms += ms;
  else
    spent_.push_back({.phase = phase_, .arm = arm_, .ms = ms});
}

void CaseScope::write_phases() {
  account();
  for (const Spent& spent : spent_)
    write(record::PhaseLine{.phase = spent.phase, .arm = spent.arm, .ms = spent.ms});
  spent_.clear();
}

std::string CaseScope::place() const {
  return "phase " + std::string(record::name(phase_)) + (arm_.empty() ? "" : ", arm " + arm_) +
         ", step " + std::to_string(step_);
}

void CaseScope::vote(int code) {
  if (!vote_)
    throw std::logic_error("a vote before phase init has ended; next: call votes_through first");
  failure_voted_ = failure_voted_ || code != 0;
  const std::vector<int> codes = vote_(boundary_, code);
  write(record::VoteLine{.phase = boundary_, .codes = {codes.begin(), codes.end()}});
  if (code == 0 && std::any_of(codes.begin(), codes.end(), [](int other) { return other != 0; }))
    throw PeerFailure(boundary_, codes);
}

std::vector<int> CaseScope::gather(int value) {
  if (!vote_)
    throw std::logic_error("gather before phase init has ended; next: call votes_through first");
  return vote_(boundary_, value);
}

int CaseScope::report(const std::exception& error) {
  const capture::DeviceError shown = capture::as_device_error(error, "");
  write(record::ErrorLine{.phase = phase_,
                          .arm = arm_,
                          .step = step_,
                          .type = shown.type,
                          .code = shown.code,
                          .call = shown.call,
                          .message = shown.what()});
  return shown.code != 0 ? shown.code : kCodeWithoutNumber;
}

void CaseScope::section(Phase boundary, const std::function<void()>& work) {
  boundary_ = boundary;
  try {
    work();
  } catch (const PeerFailure&) {
    throw;
  } catch (const std::exception& error) {
    const int code = report(error);
    if (!failure_voted_ && vote_) {
      // The communication itself may have failed. Then the vote fails too, and only the error lines
      // report the failure.
      try {
        vote(code);
      } catch (const std::exception& vote_error) {
        report(vote_error);
      }
    }
    throw CaseFailure(error.what());
  }
  vote(0);
}

std::int64_t monotonic_ms() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

}  // namespace graphproof::suites
