#include "suites/checks/attempt/attempt.h"

#include <algorithm>
#include <stdexcept>
#include <type_traits>

#include "suites/checks/attempt/concat.h"

namespace graphproof::checks {
namespace {

using record::Phase;

/// The phase that a rank was in when it wrote `line`; nothing where that does not follow from it.
template <record::LineKind Line>
std::optional<Phase> phase_of(const Line& line) {
  if constexpr (requires { line.phase; })
    return line.phase;
  else if constexpr (std::is_same_v<Line, record::EndLine>)
    return line.last_phase;
  else if constexpr (std::is_same_v<Line, record::StepLine>)
    return line.arm.starts_with("eager") || line.arm == "solo_eager" ? std::optional(Phase::eager)
                                                                     : std::nullopt;
  else if constexpr (std::is_same_v<Line, record::StartLine>)
    return Phase::validate;
  else if constexpr (std::is_same_v<Line, record::ConfigLine>)
    return Phase::init;
  else if constexpr (std::is_same_v<Line, record::CaptureLine> ||
                     std::is_same_v<Line, record::StateLine>)
    return Phase::capture;
  else if constexpr (std::is_same_v<Line, record::AddressLine> ||
                     std::is_same_v<Line, record::PoisonLine> ||
                     std::is_same_v<Line, record::ReplayLine>)
    return Phase::replay;
  else
    return std::nullopt;
}

/// The phase of the last line from which one follows.
std::optional<Phase> last_phase(const record::Evidence& evidence) {
  std::optional<Phase> phase;
  for (auto line = evidence.lines.rbegin(); line != evidence.lines.rend() && !phase; ++line)
    record::with_typed(*line, [&](const auto& typed) { phase = phase_of(typed); });
  return phase;
}

}  // namespace

const nlohmann::json& Axes::at(std::string_view axis) const {
  const auto found = values_.find(axis);
  if (found == values_.end())
    throw std::invalid_argument(
        concat("axis `", axis, "` has no effective value; a check needs it"));
  return *found;
}

std::string Axes::subject() const {
  return values_.contains("subject") ? text("subject") : "reference";
}

std::string Axes::text(std::string_view axis) const {
  if (!at(axis).is_string())
    throw std::invalid_argument(concat("axis `", axis, "` is no text; a check needs it to be one"));
  return at(axis).get<std::string>();
}

std::int64_t Axes::integer(std::string_view axis) const {
  if (!at(axis).is_number_integer()) {
    throw std::invalid_argument(
        concat("axis `", axis, "` is no integer; a check needs it to be one"));
  }
  return at(axis).get<std::int64_t>();
}

bool Axes::flag(std::string_view axis) const {
  if (!at(axis).is_boolean()) {
    throw std::invalid_argument(
        concat("axis `", axis, "` is neither true nor false; a check needs it to be"));
  }
  return at(axis).get<bool>();
}

std::int64_t Axes::size(std::string_view axis) const {
  if (!at(axis).is_array())
    throw std::invalid_argument(concat("axis `", axis, "` is no set; a check needs it to be one"));
  return static_cast<std::int64_t>(at(axis).size());
}

bool Axes::holds(std::string_view axis, std::string_view word) const {
  return size(axis) > 0 && std::find(at(axis).begin(), at(axis).end(), word) != at(axis).end();
}

std::vector<std::string> Axes::words(std::string_view axis) const {
  if (size(axis) == 0) return {};
  return at(axis).get<std::vector<std::string>>();
}

record::RankEvidence rank_progress(const RankFiles& files) {
  record::RankEvidence progress;
  progress.rank = files.rank;
  if (!files.evidence) return progress;
  progress.complete = files.evidence->complete();
  progress.last_phase = last_phase(*files.evidence);
  if (const auto refused = files.lines<record::RefusedLine>(); !refused.empty()) {
    const record::RefusedLine& line = refused.front();
    progress.refused =
        record::Refusal{.rule = line.rule,
                        .phase = line.phase,
                        .device_initialised = line.device_initialised,
                        .message = {line.what, line.got, line.want, line.why, line.next}};
  }
  if (const auto errors = files.lines<record::ErrorLine>(); !errors.empty()) {
    const record::ErrorLine& line = errors.front();
    progress.error = record::RankError{.phase = line.phase,
                                       .arm = line.arm,
                                       .type = line.type,
                                       .code = line.code,
                                       .call = line.call,
                                       .message = line.message};
  }
  return progress;
}

std::string stopped_because(const RankFiles& files) {
  if (!files.evidence) return concat("rank ", files.rank, " left no evidence");
  for (const record::ErrorLine& error : files.lines<record::ErrorLine>())
    return concat("rank ", files.rank, " stopped in phase ", record::name(error.phase), " with ",
                  error.type, " error ", error.code, " at ", error.call, ": ", error.message);
  for (const record::VoteLine& vote : files.lines<record::VoteLine>()) {
    const auto failed = std::ranges::find_if(vote.codes, [](auto code) { return code != 0; });
    if (failed == vote.codes.end()) continue;
    return concat("rank ", files.rank, " stopped after phase ", record::name(vote.phase),
                  ", where rank ", failed - vote.codes.begin(), " voted code ", *failed);
  }
  if (files.evidence->reached_its_end()) return "";
  const std::optional<Phase> phase = last_phase(*files.evidence);
  if (!phase) return concat("the evidence of rank ", files.rank, " holds no phase");
  return concat("the evidence of rank ", files.rank, " is not complete; the last phase in it is ",
                record::name(*phase));
}

std::int64_t evidence_revision(const Attempt& attempt) {
  std::int64_t revision = record::kEvidenceRevision;
  for (const RankFiles& files : attempt.ranks)
    if (files.evidence) revision = std::min(revision, files.evidence->revision());
  return revision;
}

bool shared_gpus(const Attempt& attempt) {
  return std::ranges::any_of(attempt.ranks, [](const RankFiles& files) {
    const auto start = files.lines<record::StartLine>();
    return !start.empty() && start.front().shared_gpus.value_or(0) > 0;
  });
}

std::optional<record::Refusal> refusal_of(const Attempt& attempt) {
  for (const RankFiles& files : attempt.ranks)
    if (auto refused = rank_progress(files).refused) return refused;
  return std::nullopt;
}

}  // namespace graphproof::checks
