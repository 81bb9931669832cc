// What a rank leaves behind of one case: JSON lines, each whole and in the kernel's hands before
// write() returns, so that a killed rank leaves everything up to its last step. Kinds and their
// fields: schema/evidence.schema.json. The rank program writes evidence and never a verdict.
#pragma once

#include <cstdint>
#include <filesystem>
#include <mutex>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "reports/record/text/fields.h"
#include "reports/record/verdict/phase.h"

namespace graphproof::record {

inline constexpr std::string_view kEvidenceSchema = "graphproof-evidence/1";
/// What ranks write today, in the start line; a file without it is of revision 1. A check says
/// since which revision it has something to look at, so that old evidence is judged by what could
/// be asked of it.
///   1  the first form
///   2  solo arms (timing, busy, memory with `when`), registered generators, pools, operands of
///   replays on sim 3  operands of replays on CUDA too 4  free_graph is compared with eager_a;
///   before, with an arm free_eager 5  the solo arms repeat eager_a and lockstep_graph; before,
///   arms eager_b and graph_b did 6  races on sim 7  freed memory is overwritten before the last
///   lockstep step; how many buckets of gradients began under backward 8  late steps and graphs, on
///   GPUs 9  launches and addresses that were watched, and how often a part that is captured alone
///   ran before
inline constexpr std::int64_t kEvidenceRevision = 9;
/// Above this a case tells more than anybody reads; writers keep full rows for the first mismatch
/// only (bytes).
inline constexpr std::int64_t kEvidenceCaseBytes = 200 * 1024;

/// "rank-3.evidence.jsonl"
std::string evidence_file_name(int rank);

/// JSON has no NaN and no infinity: they are written as "nan", "inf", "-inf", and number_from reads
/// both spellings.
Json number(double value);
double number_from(const nlohmann::json& value);

/// The one writer of one rank's file. Threads may share it: a line is written whole.
class EvidenceWriter {
 public:
  /// Creates `file` and its folder. WriteError if it exists: evidence of two attempts must never
  /// mix.
  explicit EvidenceWriter(std::filesystem::path file);
  ~EvidenceWriter();
  EvidenceWriter(const EvidenceWriter&) = delete;
  EvidenceWriter& operator=(const EvidenceWriter&) = delete;

  /// Writes {"kind": kind, ...fields}. Non-finite numbers anywhere in `fields` are spelled as
  /// number() does.
  void write(std::string_view kind, const Json& fields);
  /// The last line, {"kind": "end"}: `complete` says that the case went its whole way. Writes the
  /// count of lines.
  void end(bool complete, Phase last_phase, std::int64_t t_ms);

  std::int64_t lines() const;
  std::int64_t bytes() const;

 private:
  const std::filesystem::path file_;
  int descriptor_ = -1;
  mutable std::mutex mutex_;
  std::int64_t lines_ = 0, bytes_ = 0;
};

struct EvidenceLine {
  std::string kind;
  nlohmann::json fields;  // the whole object
  std::size_t line = 0;   // in its file, from 1
};

/// One rank's file as far as it can be read.
struct Evidence {
  std::filesystem::path file;
  std::vector<EvidenceLine> lines;
  std::vector<std::string> dropped;  // what was left out and why, one sentence each

  /// Lines of `kind`, in order.
  std::vector<const EvidenceLine*> of(std::string_view kind) const;
  /// An `end` line with complete true, the last one, whose count of lines holds, and nothing
  /// dropped.
  bool complete() const;
};

/// Never throws for what a dying rank can leave (torn or broken lines): those are in `dropped`.
/// ReadError if the file cannot be opened.
Evidence read_evidence(const std::filesystem::path& file);

/// That of all ranks that left any in this folder, in rank order; nothing if the folder is absent.
/// Otherwise as read_evidence().
std::vector<Evidence> read_evidence_of_attempt(const std::filesystem::path& attempt_folder);

}  // namespace graphproof::record
