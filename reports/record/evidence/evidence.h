// The evidence of a rank: a file of JSON lines that it writes while it runs a case, and never a
// verdict. A line is whole and in the kernel's hands before write() returns, so that a killed rank
// leaves everything up to its last step. The kinds of lines and their fields: lines/.
#pragma once

#include <cstdint>
#include <filesystem>
#include <mutex>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "reports/record/evidence/lines/kinds.h"
#include "reports/record/text/fields.h"
#include "reports/record/verdict/phase.h"

namespace graphproof::record {

/// What ranks write today, in the start line; a file without it is of revision 1. A check says
/// since which revision it has something to look at, so that old evidence is judged by what could
/// be asked of it.
///   1  the first form
///   2  solo arms (timing, busy, memory with `when`), registered generators, pools, operands of
///      replays on the simulated device
///   3  operands of replays on CUDA too
///   4  free_graph is compared with eager_a; earlier with an arm free_eager
///   5  the solo arms repeat eager_a and lockstep_graph; earlier arms eager_b and graph_b did
///   6  races on the simulated device
///   7  freed memory is overwritten before the last lockstep step; how many buckets of gradients
///      began under backward
///   8  delayed steps and graphs, on GPUs
///   9  announced launches and registered outputs; how often a module that is captured alone had
///      run before
///   10 kinds and fields have the names of today; former_names.h has the earlier ones
inline constexpr std::int64_t kEvidenceRevision = 10;
/// Evidence of one case and rank stays below this (bytes): more than that, no person reads. Writers
/// keep full rows for the first mismatch only.
inline constexpr std::int64_t kEvidenceCaseBytes = 200 * 1024;

/// "rank-3.evidence.jsonl"
std::string evidence_file_name(int rank);

/// The one writer of one rank's file. Threads may share it: a line is written whole.
class EvidenceWriter {
 public:
  /// Creates `file` and its folder. WriteError if it exists: evidence of two attempts must never
  /// mix.
  explicit EvidenceWriter(std::filesystem::path file);
  ~EvidenceWriter();
  EvidenceWriter(const EvidenceWriter&) = delete;
  EvidenceWriter& operator=(const EvidenceWriter&) = delete;

  template <LineKind T>
  void write(const T& line) {
    append(T::kKind, line_json(line));
  }
  /// The last line, {"kind": "end"}: `complete` says that the case went its whole way. Writes the
  /// count of lines.
  void end(bool complete, Phase last_phase, std::int64_t t_ms);

  std::int64_t lines() const;
  std::int64_t bytes() const;

 private:
  void append(std::string_view kind, const Json& line);

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

/// A line that does not fit the table of its kind, or whose kind has none.
struct DamagedLine {
  std::string kind;
  std::size_t line = 0;  // in its file, from 1
  Misfit misfit;
};
/// "line 41 of kind `poison`: `launches` is "x", want an integer"
std::string to_text(const DamagedLine& damaged);

template <class List>
struct LinesOfKinds;
template <class... Lines>
struct LinesOfKinds<Kinds<Lines...>> {
  std::tuple<std::vector<Lines>...> lines;
};

/// One rank's file as far as it can be read.
struct Evidence {
  std::filesystem::path file;
  std::vector<EvidenceLine> lines;
  std::vector<std::string> dropped;  // what was left out and why, one sentence each
  LinesOfKinds<LineKinds> typed;     // of `lines`, those that fit their tables
  std::vector<DamagedLine> damaged;  // of `lines`, those that do not

  /// The lines of a kind that fit its table, in file order.
  template <LineKind T>
  std::span<const T> of() const {
    return std::get<std::vector<T>>(typed.lines);
  }
  /// Revision that the start line names: 1 where it names none, today's where there is no start
  /// line.
  std::int64_t revision() const;
  /// An `end` line with complete true, the last one, whose count of lines holds, and nothing
  /// dropped.
  bool reached_its_end() const;
  /// reached_its_end(), and no line is damaged.
  bool complete() const { return damaged.empty() && reached_its_end(); }
};

/// Reads `lines` of `evidence` by their tables: fills `typed` and `damaged` anew. Lines of an older
/// revision get today's names first. A line of an
/// unknown kind is damaged in evidence of today's revision, and left alone in any other.
void type_lines(Evidence& evidence);

/// Calls `use` with `line` as the struct of its kind, unless it is damaged.
template <class Use, class... Lines>
void with_typed(const EvidenceLine& line, const Use& use, Kinds<Lines...>) {
  const auto try_kind = [&]<class T>(std::in_place_type_t<T>) {
    if (line.kind != T::kKind) return false;
    T typed;
    if (!read_line(line.fields, typed)) use(typed);
    return true;
  };
  static_cast<void>((try_kind(std::in_place_type<Lines>) || ...));
}
template <class Use>
void with_typed(const EvidenceLine& line, const Use& use) {
  with_typed(line, use, LineKinds());
}

/// Never throws for what a dying rank can leave (torn or broken lines): those are in `dropped`, and
/// lines that do not fit their tables in `damaged`. ReadError if the file cannot be opened.
Evidence read_evidence(const std::filesystem::path& file);

/// That of all ranks that left any in this folder, in rank order; nothing if the folder is absent.
/// Otherwise as read_evidence().
std::vector<Evidence> read_evidence_of_attempt(const std::filesystem::path& attempt_folder);

}  // namespace graphproof::record
