// The batches that run a mismatching case once more, only to find the first tensor in which graph
// and eager differ. No verdict comes of them. Without IO.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "reports/record/run/record.h"

namespace graphproof::launcher {

/// The searches of one run, by their batches.
class DivergenceSearches {
 public:
  // This holds in addition to the limits of the phases. The verdict exists already, and its
  // explanation is not worth a longer wait.
  static constexpr std::int64_t kLimit_ms = 180'000;

  /// `batch` searches for the mismatch of `record`.
  void add(const std::string& batch, record::Record record);
  void started(const std::string& batch, std::int64_t now_ms);

  bool contains(const std::string& batch) const { return searches_.contains(batch); }
  /// It has run for longer than kLimit_ms.
  bool overdue(const std::string& batch, std::int64_t now_ms) const;
  /// Takes the search out: it has ended, or will not run. Returns its record; nothing if `batch`
  /// is no search.
  std::optional<record::Record> remove(const std::string& batch);

 private:
  /// A search that waits or runs.
  struct Search {
    record::Record record;
    std::optional<std::int64_t> started_ms;
  };
  std::map<std::string, Search> searches_;  // by batch
};

}  // namespace graphproof::launcher
