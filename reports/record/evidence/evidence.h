// The evidence of a rank: a file of JSON lines that it writes while it runs a case. Evidence has
// facts and no verdict. The kernel has the whole line before write() returns, so a killed rank
// leaves all lines up to its last step. The kinds of lines and their fields are in lines/.
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

/// The revision that ranks write in the start line; a file without one has revision 1. The table of
/// checks has the first revision that each check can judge, so older evidence is judged only by
/// checks whose lines it has.
///   1  the first revision
///   2  solo arms (timing, busy, memory with `when`), registered generators, pools, operands of
///      replays on the simulated device
///   3  operands of replays also on CUDA
///   4  free_graph is compared with eager_a; in older evidence with an arm free_eager
///   5  the solo arms repeat eager_a and lockstep_graph; in older evidence arms eager_b and graph_b
///      do
///   6  races on the simulated device
///   7  freed memory is overwritten before the last lockstep step; how many buckets of gradients
///      began to be reduced during the backward
///   8  delayed steps and graphs, on GPUs
///   9  announced launches and registered outputs; how often a module that is captured on its own
///      ran before its capture
///   10 kinds and fields have the present names; former_names.h has the older ones
/// A newer kind of line has its revision in its struct (kSince).
inline constexpr std::int64_t kEvidenceRevision = newest_revision(10, LineKinds());
/// The limit for the evidence of one case and rank (bytes), because people have to read it. Writers
/// give details for the first mismatch only.
inline constexpr std::int64_t kEvidenceCaseBytes = 200 * 1024;

/// The limit for the nodes of a rank's graphs, which it leaves as text where something is wrong
/// with them (bytes).
inline constexpr std::size_t kNodeDumpBytes = 64 * 1024;

/// "rank-3.evidence.jsonl".
std::string evidence_file_name(int rank);

/// Where lines of evidence go.
class EvidenceLines {
 public:
  virtual ~EvidenceLines() = default;
  /// Writes a line. Throws WriteError if that fails.
  template <LineKind T>
  void write(const T& line) {
    append(T::kKind, line_json(line));
  }

 private:
  virtual void append(std::string_view kind, const Json& line) = 0;
};

/// The only writer of a rank's file. Threads may share it: lines never mix.
class EvidenceWriter final : public EvidenceLines {
 public:
  /// Creates `file` and its folder. Throws WriteError if the file exists, because evidence of two
  /// attempts must never mix.
  explicit EvidenceWriter(std::filesystem::path file);
  ~EvidenceWriter() override;
  EvidenceWriter(const EvidenceWriter&) = delete;
  EvidenceWriter& operator=(const EvidenceWriter&) = delete;

  /// Writes the last line, {"kind": "end"}, with the count of lines. `complete`: whether the case
  /// ran to its end.
  void end(bool complete, Phase last_phase, std::int64_t t_ms);

  const std::filesystem::path& file() const { return file_; }
  std::int64_t lines() const;
  std::int64_t bytes() const;

 private:
  void append(std::string_view kind, const Json& line) override;

  const std::filesystem::path file_;
  int descriptor_ = -1;
  mutable std::mutex mutex_;
  std::int64_t lines_ = 0, bytes_ = 0;
};

/// A line as JSON.
struct EvidenceLine {
  std::string kind;
  nlohmann::json fields;  // the whole object
  std::size_t line = 0;   // in its file, from 1
};

/// A line that does not have the fields of its kind, or whose kind is unknown.
struct DamagedLine {
  std::string kind;
  std::size_t line = 0;  // in its file, from 1
  Misfit misfit;
};
/// For messages: "line 41 of kind `poison`: `launches` is "x", want an integer".
std::string to_text(const DamagedLine& damaged);

/// A vector of lines for each kind.
template <class List>
struct LinesOfKinds;
template <class... Lines>
struct LinesOfKinds<Kinds<Lines...>> {
  std::tuple<std::vector<Lines>...> lines;
};

/// The evidence of one rank, as far as it can be read.
struct Evidence {
  std::filesystem::path file;
  std::vector<EvidenceLine> lines;
  std::vector<std::string> dropped;  // a sentence about each part that was left out, and why
  LinesOfKinds<LineKinds> typed;     // those of `lines` that have the fields of their kind
  std::vector<DamagedLine> damaged;  // the other ones of `lines`

  /// The undamaged lines of a kind, in file order.
  template <LineKind T>
  std::span<const T> of() const {
    return std::get<std::vector<T>>(typed.lines);
  }
  /// The revision in the start line: 1 if it has none, kEvidenceRevision if there is no start line.
  std::int64_t revision() const;
  /// Whether the last line is an `end` line with `complete` true and the right count of lines, and
  /// nothing was dropped.
  bool reached_its_end() const;
  /// Whether reached_its_end(), and no line is damaged.
  bool complete() const { return damaged.empty() && reached_its_end(); }
};

/// Sets `typed` and `damaged` from `lines`. Lines of older revisions are renamed to the present
/// names first. A line of an unknown kind is damaged in evidence of kEvidenceRevision, and ignored
/// in other evidence.
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

/// Reads the evidence of a rank. Torn and broken lines, which a dying rank may leave, are in
/// `dropped`, and lines without the fields of their kind in `damaged`. Throws ReadError only if the
/// file cannot be opened.
Evidence read_evidence(const std::filesystem::path& file);

/// The evidence of all ranks that left any in this folder, in rank order; none if the folder is
/// absent. Errors are as in read_evidence().
std::vector<Evidence> read_evidence_of_attempt(const std::filesystem::path& attempt_folder);

}  // namespace graphproof::record
