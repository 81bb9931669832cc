// D21: every rank left complete evidence, from its start to its end. This fails for a rank that
// vanished, was killed, or wrote evidence of another case, whatever its exit status was.
#include "suites/checks/attempt/concat.h"
#include "suites/checks/attempt/judgement.h"

namespace graphproof::checks::d21 {
namespace {

void judge_start(Judgement& judgement, const Attempt& attempt, const RankFiles& files,
                 const record::StartLine& start) {
  const auto want = [&](std::string_view field, const auto& got, const auto& wanted) {
    if (got == wanted) return;
    judgement.defect(
        {.rank = files.rank,
         .step = std::nullopt,
         .what = concat("the evidence of rank ", files.rank, " belongs to something else"),
         .got = concat(field, " ", shown(got)),
         .want = concat(field, " ", shown(wanted)),
         .why = "evidence of another case, attempt or rank proves nothing here"});
  };
  want("case", start.case_id, attempt.context.case_id);
  want("attempt", start.attempt, std::int64_t{attempt.context.attempt});
  want("rank", start.rank, std::int64_t{files.rank});
  want("world_size", start.world_size, std::int64_t{attempt.context.world_size});
  want("device", start.device, attempt.context.device);
  want("fault", start.fault, attempt.axes.text("fault"));
  if (start.revision.value_or(1) <= record::kEvidenceRevision) return;
  judgement.defect(
      {.rank = files.rank,
       .step = std::nullopt,
       .what = concat("the evidence of rank ", files.rank, " is newer than this judge"),
       .got = concat("revision ", *start.revision),
       .want = concat("revision ", record::kEvidenceRevision, " at most"),
       .why = "this judge would ignore what newer evidence has in addition"});
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
  if (!files.evidence->damaged.empty()) {
    const std::size_t count = files.evidence->damaged.size();
    incomplete(concat("a line of the evidence of rank ", files.rank, " is damaged"),
               concat(record::to_text(files.evidence->damaged.front()),
                      count == 1 ? std::string() : concat(", and ", count - 1, " more")),
               "lines that have the fields of their kind");
  }
  const std::vector<record::EvidenceLine>& lines = files.evidence->lines;
  const auto starts =
      std::ranges::count(lines, record::StartLine::kKind, &record::EvidenceLine::kind);
  if (lines.front().kind != record::StartLine::kKind || starts != 1) {
    incomplete(concat("the evidence of rank ", files.rank, " has ", starts, " start lines"),
               concat("first line of kind `", lines.front().kind, "`"),
               "one start line, the first");
    return;
  }
  for (const record::StartLine& start : files.lines<record::StartLine>())
    judge_start(judgement, attempt, files, start);
  const auto ends = files.lines<record::EndLine>();
  if (lines.back().kind != record::EndLine::kKind || ends.empty()) {
    const record::RankEvidence progress = rank_progress(files);
    incomplete(concat("the evidence of rank ", files.rank, " ends before its case did"),
               concat("last line of kind `", lines.back().kind, "`, last phase ",
                      progress.last_phase ? record::name(*progress.last_phase) : "none"),
               "an end line");
  } else if (const record::EndLine& end = ends.back(); !end.complete) {
    incomplete(concat("rank ", files.rank, " ended its case early"),
               concat("complete false, last phase ", record::name(end.last_phase)),
               "complete true");
  } else if (end.lines != std::ssize(lines) - 1) {
    incomplete(concat("lines of rank ", files.rank, " were lost"),
               concat(lines.size() - 1, " lines before the end line"),
               concat(end.lines, ", as the rank counted"));
  } else {
    judgement.confirm(files.rank);
  }
}

}  // namespace

/// Every rank of the world left one file that begins with the start line of this attempt, ends with
/// a complete end line and was read without loss or damage. A rank that died fails the check.
record::CheckResult evidence_complete(Judgement& judgement, const Attempt& attempt) {
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
                          "a start line, an end line and all lines between them, from every rank");
}

}  // namespace graphproof::checks::d21
