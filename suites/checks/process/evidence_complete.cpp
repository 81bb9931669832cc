// D21, first half: every rank left evidence from its start to its end. A rank that vanished, was
// killed, or wrote the evidence of another case fails here, whatever its exit status said.
#include "suites/checks/attempt/concat.h"
#include "suites/checks/attempt/detectors.h"
#include "suites/checks/attempt/judgement.h"

namespace graphproof::checks {
namespace {

void judge_start(Judgement& judgement, const Attempt& attempt, const RankFiles& files,
                 const Line& start) {
  const auto want = [&](const char* key, const nlohmann::json& value) {
    if (field(start, key) == value) return;
    judgement.defect(
        {.rank = files.rank,
         .step = std::nullopt,
         .what = concat("the evidence of rank ", files.rank, " belongs to something else"),
         .got = concat(key, " ", field(start, key).dump()),
         .want = concat(key, " ", value.dump()),
         .why = "evidence of another case, attempt or rank proves nothing here"});
  };
  want("schema", record::kEvidenceSchema);
  want("case", attempt.context.case_id);
  want("attempt", attempt.context.attempt);
  want("rank", files.rank);
  want("world_size", attempt.context.world_size);
  want("device", attempt.context.device);
  want("fault", attempt.axes.text("fault"));
  if (integer(start, "revision").value_or(1) <= record::kEvidenceRevision) return;
  judgement.defect(
      {.rank = files.rank,
       .step = std::nullopt,
       .what = concat("the evidence of rank ", files.rank, " is newer than this judge"),
       .got = concat("revision ", field(start, "revision").dump()),
       .want = concat("revision ", record::kEvidenceRevision, " at most"),
       .why = "what ranks write down since, nobody would look at"});
}

void judge_rank(Judgement& judgement, const Attempt& attempt, const RankFiles& files) {
  const auto incomplete = [&](std::string what, std::string got, std::string want) {
    judgement.defect({.rank = files.rank,
                      .step = std::nullopt,
                      .what = std::move(what),
                      .got = std::move(got),
                      .want = std::move(want),
                      .why = "a rank without a whole record may have done anything, or nothing"});
  };
  if (!files.evidence || files.evidence->lines.empty()) {
    incomplete(concat("rank ", files.rank, " left no evidence"),
               files.evidence ? "an empty file" : "no file",
               concat(record::evidence_file_name(files.rank), " with lines from start to end"));
    return;
  }
  if (!files.evidence->dropped.empty()) {
    incomplete(concat("a part of the evidence of rank ", files.rank, " cannot be read"),
               files.evidence->dropped.front(), "whole JSON lines");
  }
  const std::vector<Line>& lines = files.evidence->lines;
  if (lines.front().kind != "start" || files.find("start").size() != 1) {
    incomplete(concat("the evidence of rank ", files.rank, " has ", files.find("start").size(),
                      " start lines"),
               concat("first line of kind `", lines.front().kind, "`"),
               "one start line, the first");
    return;
  }
  judge_start(judgement, attempt, files, lines.front());
  const Line& end = lines.back();
  if (end.kind != "end") {
    const record::RankEvidence way = rank_progress(files);
    incomplete(concat("the evidence of rank ", files.rank, " ends before its case did"),
               concat("last line of kind `", end.kind, "`, last phase ",
                      way.last_phase ? record::name(*way.last_phase) : "none"),
               "an end line");
  } else if (flag(end, "complete") != true) {
    incomplete(concat("rank ", files.rank, " ended its case early"),
               concat("complete ", field(end, "complete").dump(), ", last phase ",
                      text(end, "last_phase")),
               "complete true");
  } else if (integer(end, "lines") != static_cast<std::int64_t>(lines.size()) - 1) {
    incomplete(concat("lines of rank ", files.rank, " were lost"),
               concat(lines.size() - 1, " lines before the end line"),
               concat(field(end, "lines").dump(), ", as the rank counted"));
  } else {
    judgement.saw(files.rank);
  }
}

}  // namespace

record::CheckResult evidence_complete(const Attempt& attempt) {
  Judgement judgement("D21.evidence_complete", attempt);
  for (const RankFiles& files : attempt.ranks) judge_rank(judgement, attempt, files);
  for (const int rank : attempt.foreign_ranks) {
    judgement.defect({.rank = rank,
                      .step = std::nullopt,
                      .what = concat("rank ", rank, " is not in the world and left evidence"),
                      .got = record::evidence_file_name(rank),
                      .want = concat("ranks 0 to ", attempt.context.world_size - 1),
                      .why = "more processes ran than were asked for"});
  }
  return judgement.result(concat("whole on ", attempt.ranks.size(), " ranks"),
                          "a start line, an end line and all between, of every rank");
}

}  // namespace graphproof::checks
