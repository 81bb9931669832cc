#include "reports/analysis/divergence.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "reports/record/evidence/evidence.h"
#include "reports/record/text/file.h"
#include "reports/record/text/printable.h"

namespace graphproof::reports {
namespace {

using record::DivergenceLine;

/// The line of `rank`; absent if it wrote none or its file cannot be read.
std::optional<DivergenceLine> line_of(const std::filesystem::path& folder, int rank) {
  try {
    const record::Evidence evidence =
        record::read_evidence(folder / record::evidence_file_name(rank));
    const auto lines = evidence.of<DivergenceLine>();
    if (!lines.empty()) return lines.front();
  } catch (const record::ReadError&) {
  }
  return std::nullopt;
}

/// Another stage computed the tensor, and the line of that stage's rank says more.
bool received(const DivergenceLine& line) { return line.module == "transfer"; }

/// A number of the evidence as text; it may be nan.
std::string text_of(double value) {
  const record::Json number = record::number(value);
  return number.is_string() ? number.get<std::string>() : number.dump();
}

std::string named(int rank, const DivergenceLine& line) {
  std::string text = "rank " + std::to_string(rank) + ", step " + std::to_string(line.step);
  const auto add = [&](const std::string& word, const std::string& value) {
    if (!value.empty()) text += ", " + word + value;
  };
  if (line.microbatch >= 0) add("microbatch ", std::to_string(line.microbatch));
  if (line.layer >= 0) add("layer ", std::to_string(line.layer));
  add("", line.module);
  add("", line.direction);
  text += ", " + line.op;
  if (!line.mismatch) return text + ": " + line.why;
  const record::TensorMismatch& mismatch = *line.mismatch;
  if (mismatch.tensor != line.op) text += " into " + mismatch.tensor;
  return text + ", element " + std::to_string(mismatch.element) + ": eager " +
         text_of(mismatch.left) + ", graph " + text_of(mismatch.right) + " (" +
         std::to_string(mismatch.differing) + " of " + std::to_string(mismatch.elements) +
         " elements differ; " + std::to_string(std::max<std::int64_t>(0, line.taps - 1)) +
         " results before it agree)";
}

}  // namespace

std::filesystem::path divergence_folder(const std::filesystem::path& attempt_folder) {
  return attempt_folder / "divergence";
}

std::string divergence_text(const std::filesystem::path& attempt_folder, int ranks) {
  const std::filesystem::path folder = divergence_folder(attempt_folder);
  std::error_code unreadable;
  if (!std::filesystem::is_directory(folder, unreadable)) return {};
  std::optional<std::pair<int, DivergenceLine>> first;
  std::string why;
  for (int rank = 0; rank < ranks; ++rank) {
    const auto line = line_of(folder, rank);
    if (!line) continue;
    if (!line->found)
      why = line->why;
    else if (!first || std::pair(received(*line), line->taps) <
                           std::pair(received(first->second), first->second.taps))
      first = {rank, *line};
  }
  if (first) return record::printable(named(first->first, first->second));
  if (why.empty())
    return "not found: the run that searched for it failed; its evidence is in " + folder.string();
  return record::printable("none: " + why);
}

}  // namespace graphproof::reports
