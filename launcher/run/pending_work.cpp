#include "launcher/run/pending_work.h"

#include <map>
#include <optional>
#include <system_error>
#include <utility>

#include "launcher/batch/attempt_folder.h"
#include "launcher/policy/case_policy.h"
#include "reports/record/text/file.h"

namespace graphproof::launcher {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kBatch = "b";

/// How the attempt ended. Nothing where that was not written, or was lost when the host lost its
/// power, because its evidence may be lost as well then.
std::optional<record::Context> context_in(const fs::path& attempt) {
  const fs::path file = attempt / "context.json";
  std::error_code absent;
  if (!fs::exists(file, absent)) return std::nullopt;
  try {
    return record::context_from(record::read_json(file), file);
  } catch (const record::ReadError&) {
    return std::nullopt;
  }
}

/// What the journal and the folder contain of one case.
struct Standing {
  const record::Record* last = nullptr;
  int infra_count = 0;
  int highest = 0;  // number of an attempt that has a folder
};

class Sorting {
 public:
  Sorting(const fs::path& folder, PendingWork& pending) : folder_(folder), pending_(pending) {}

  void add(const record::PlanLine& line, const Standing& standing) {
    const int recorded = standing.last ? standing.last->attempt : 0;
    int next = recorded + 1;
    if (standing.highest > recorded) {
      const fs::path attempt = folder_ / attempt_folder(line.id, standing.highest);
      if (auto ended = context_in(attempt)) return judge(line, standing, std::move(*ended));
      // A folder without evidence belongs to an attempt that did not begin; the attempts before it
      // did.
      next = was_begun(attempt) ? standing.highest + 1 : standing.highest;
    }
    if (next > recorded + 1) {
      ++pending_.cut_off;
      return run(line, standing, next,
                 "attempt " + std::to_string(next - 1) + " was cut off before it ended");
    }
    if (standing.last == nullptr) return run(line, standing, next, "");
    if (wants_diagnosis(*standing.last, line))
      return run(line, standing, next, why_alone(*standing.last));
    if (standing.last->verdict.in("infra") && standing.infra_count < kInfraAttempts)
      return run(line, standing, next, why_retry(*standing.last));
    ++pending_.kept;
  }

 private:
  void run(const record::PlanLine& line, const Standing& standing, int number, std::string again) {
    if (standing.last && wants_diagnosis(*standing.last, line)) {
      record::PlanLine alone = line;
      alone.isolation = "process";
      pending_.diagnoses.push_back({*standing.last, {std::move(alone), number, std::move(again)}});
    } else {
      pending_.attempts.push_back({line, number, std::move(again)});
    }
  }

  void judge(const record::PlanLine& line, const Standing& standing, record::Context context) {
    pending_.unjudged.push_back({std::move(context), line});
    if (standing.last && wants_diagnosis(*standing.last, line))
      pending_.firsts.push_back(*standing.last);
  }

  const fs::path& folder_;
  PendingWork& pending_;
};

}  // namespace

PendingWork pending_work(const fs::path& folder, const std::vector<record::PlanLine>& plan,
                         const std::vector<record::Record>& journal) {
  std::map<std::string, Standing> standings;
  for (const record::Record& record : journal) {
    Standing& standing = standings[record.case_id];
    standing.last = &record;
    standing.infra_count += record.verdict.in("infra");
  }
  PendingWork pending;
  Sorting sorting(folder, pending);
  for (const record::PlanLine& line : plan) {
    if (line.skip) continue;
    Standing standing = standings[line.id];
    if (const auto numbers = attempt_numbers(folder, line.id); !numbers.empty())
      standing.highest = numbers.back();
    sorting.add(line, standing);
  }
  if (const auto batches = numbers_in(folder / "batches", kBatch); !batches.empty())
    pending.batch_count = batches.back();
  return pending;
}

}  // namespace graphproof::launcher
