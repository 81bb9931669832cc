#include "suites/checks/attempt/attempt.h"

#include <algorithm>
#include <array>
#include <stdexcept>

#include "suites/checks/attempt/concat.h"

namespace graphproof::checks {
namespace {

using record::Phase;

/// Lines that say by their kind where the rank was: one that died left no other word about it.
struct KindPhase {
  std::string_view kind;
  Phase phase;
};
constexpr std::array kKindPhases = {
    KindPhase{"start", Phase::validate},  KindPhase{"config", Phase::init},
    KindPhase{"capture", Phase::capture}, KindPhase{"state", Phase::capture},
    KindPhase{"address", Phase::replay},  KindPhase{"poison", Phase::replay},
    KindPhase{"replay", Phase::replay}};

std::optional<Phase> phase_of(const Line& line) {
  if (const auto named =
          record::phase_from(text(line, line.kind == "end" ? "last_phase" : "phase")))
    return named;
  if (const std::string arm = text(line, "arm");
      line.kind == "step" && (arm.starts_with("eager") || arm == "solo_eager"))
    return Phase::eager;
  for (const KindPhase& row : kKindPhases)
    if (row.kind == line.kind) return row.phase;
  return std::nullopt;
}

}  // namespace

const nlohmann::json& Axes::at(std::string_view axis) const {
  const auto found = values_.find(axis);
  if (found == values_.end())
    throw std::invalid_argument(
        concat("axis `", axis, "` has no effective value; a check needs it"));
  return *found;
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

std::vector<const Line*> RankFiles::find(std::string_view kind, std::string_view arm,
                                         std::optional<std::int64_t> step) const {
  std::vector<const Line*> result;
  if (!evidence) return result;
  for (const Line& line : evidence->lines) {
    if (line.kind != kind) continue;
    if (!arm.empty() && !is(line, "arm", arm)) continue;
    if (step && integer(line, "step") != step) continue;
    result.push_back(&line);
  }
  return result;
}

const Line* RankFiles::first(std::string_view kind, std::string_view arm,
                             std::optional<std::int64_t> step) const {
  const std::vector<const Line*> found = find(kind, arm, step);
  return found.empty() ? nullptr : found.front();
}

record::RankEvidence rank_progress(const RankFiles& files) {
  record::RankEvidence way;
  way.rank = files.rank;
  if (!files.evidence) return way;
  way.complete = files.evidence->complete();
  for (const Line& line : files.evidence->lines)
    if (const auto phase = phase_of(line)) way.last_phase = phase;
  if (const Line* refused = files.first("refused")) {
    record::Refusal refusal;
    refusal.rule = text(*refused, "rule");
    refusal.phase = record::phase_from(text(*refused, "phase")).value_or(record::Phase::validate);
    // Without the field nobody can say that the device was left alone.
    refusal.device_initialised = flag(*refused, "device_initialised").value_or(true);
    refusal.message = {text(*refused, "what"), text(*refused, "got"), text(*refused, "want"),
                       text(*refused, "why"), text(*refused, "next")};
    way.refused = refusal;
  }
  if (const Line* error = files.first("error")) {
    record::RankError met;
    met.phase = record::phase_from(text(*error, "phase"))
                    .value_or(way.last_phase.value_or(record::Phase::validate));
    met.arm = text(*error, "arm");
    met.type = text(*error, "type");
    met.code = integer(*error, "code").value_or(0);
    met.call = text(*error, "call");
    met.message = text(*error, "message");
    way.error = met;
  }
  return way;
}

std::string stopped_because(const RankFiles& files) {
  if (!files.evidence) return concat("rank ", files.rank, " left no evidence");
  const record::RankEvidence way = rank_progress(files);
  if (way.error) {
    return concat("rank ", files.rank, " stopped in phase ", record::name(way.error->phase),
                  " with ", way.error->type, " error ", way.error->code, " at ", way.error->call,
                  ": ", way.error->message);
  }
  for (const Line* vote : files.find("vote")) {
    const auto codes = integers(*vote, "codes").value_or(std::vector<std::int64_t>{});
    for (std::size_t peer = 0; peer < codes.size(); ++peer) {
      if (codes[peer] == 0) continue;
      return concat("rank ", files.rank, " stopped after phase ", text(*vote, "phase"),
                    ", where rank ", peer, " voted code ", codes[peer]);
    }
  }
  if (way.complete) return "";
  if (!way.last_phase) return concat("the evidence of rank ", files.rank, " holds no phase");
  return concat("the evidence of rank ", files.rank, " is not complete; the last phase in it is ",
                record::name(*way.last_phase));
}

std::int64_t evidence_revision(const Attempt& attempt) {
  std::int64_t revision = record::kEvidenceRevision;
  for (const RankFiles& files : attempt.ranks)
    if (const Line* start = files.first("start"))
      revision = std::min(revision, integer(*start, "revision").value_or(1));
  return revision;
}

bool shared_gpus(const Attempt& attempt) {
  return std::any_of(attempt.ranks.begin(), attempt.ranks.end(), [](const RankFiles& files) {
    const Line* start = files.first("start");
    return start && integer(*start, "shared_gpus").value_or(0) > 0;
  });
}

std::optional<record::Refusal> refusal_of(const Attempt& attempt) {
  for (const RankFiles& files : attempt.ranks)
    if (files.first("refused")) return rank_progress(files).refused;
  return std::nullopt;
}

}  // namespace graphproof::checks
