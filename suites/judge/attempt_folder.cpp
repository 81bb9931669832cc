#include "suites/judge/attempt_folder.h"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <limits>

#include "matrix/case/case.h"
#include "reports/record/job/batch.h"
#include "reports/record/text/file.h"

namespace graphproof::judge {
namespace {

namespace fs = std::filesystem;

/// The rank that an evidence file name belongs to.
std::optional<int> rank_of(const std::string& name) {
  constexpr std::string_view kBegin = "rank-";
  if (!name.starts_with(kBegin)) return std::nullopt;
  int rank = 0;
  const auto [end, error] =
      std::from_chars(name.data() + kBegin.size(), name.data() + name.size(), rank);
  if (error != std::errc() || name != record::evidence_file_name(rank)) return std::nullopt;
  return rank;
}

std::vector<int> foreign_ranks(const fs::path& folder, int world_size) {
  std::vector<int> result;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    const std::optional<int> rank = rank_of(entry.path().filename().string());
    if (rank && *rank >= world_size) result.push_back(*rank);
  }
  std::ranges::sort(result);
  return result;
}

/// The bytes [begin, end) of a log; absent if the file is missing or shorter.
std::optional<std::string> read_slice(const fs::path& file, const record::LogRange& range) {
  if (range.begin < 0 || range.end < range.begin) return std::nullopt;
  std::ifstream in(file, std::ios::binary);
  if (!in || !in.seekg(range.begin)) return std::nullopt;
  std::error_code error;
  const std::uintmax_t size = fs::file_size(file, error);
  if (error || size < static_cast<std::uintmax_t>(range.end)) return std::nullopt;
  std::string text(static_cast<std::size_t>(range.end - range.begin), '\0');
  in.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (in.gcount() != static_cast<std::streamsize>(text.size())) return std::nullopt;
  return text;
}

}  // namespace

checks::Attempt load_attempt(const fs::path& folder, const matrix::AxisTable& axes,
                             const matrix::CheckTable& table) {
  const fs::path context_file = folder / "context.json";
  checks::Attempt attempt;
  attempt.context = record::context_from(record::read_json(context_file), context_file.string());
  const matrix::Case test_case =
      matrix::case_from_json(axes, attempt.context.axes, context_file.string());
  attempt.axes = checks::Axes(matrix::effective_values(axes, test_case));
  for (std::string& check : table.judged(test_case)) attempt.asked.insert(std::move(check));
  // The attempt folder is cases/ID/attempt-N, and names of log files are relative to the run
  // folder.
  const fs::path run_folder = fs::absolute(folder).lexically_normal() / ".." / ".." / "..";
  for (int rank = 0; rank < attempt.context.world_size; ++rank) {
    checks::RankFiles files;
    files.rank = rank;
    const fs::path evidence = folder / record::evidence_file_name(rank);
    if (fs::exists(evidence)) files.evidence = record::read_evidence(evidence);
    for (const record::RankContext& facts : attempt.context.ranks)
      if (facts.rank == rank) files.log = read_slice(run_folder / facts.log.file, facts.log);
    attempt.ranks.push_back(std::move(files));
  }
  if (const fs::path log = folder / record::kSanitizerLog; fs::exists(log))
    attempt.sanitizer_log = record::read_text(log);
  attempt.foreign_ranks = foreign_ranks(folder, attempt.context.world_size);
  return attempt;
}

}  // namespace graphproof::judge
