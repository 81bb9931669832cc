// journal.jsonl: the results of a run. One writer appends to it, and every record is on the disk
// before append() returns. If the launcher is killed at any byte, the records before it remain
// valid.
#pragma once

#include <cstddef>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "reports/record/run/record.h"

namespace graphproof::record {

/// A journal that was read.
struct JournalContent {
  std::vector<Record> records;
  std::string dropped;  // a sentence about a torn last line that was left out; otherwise ""
};

/// Reads a journal; an absent file is an empty one. A broken line other than the last one is a
/// ReadError with its number, because only damage can cause it: journals are only appended to.
JournalContent read_journal(const std::filesystem::path& file);

/// The last record of each case, which has its verdict.
std::map<std::string, Record> last_records(std::vector<Record> records);

/// The writer of a journal. It locks the file while it exists, so that a second launcher in the
/// same run folder is refused (WriteError) before it starts a rank.
class JournalWriter {
 public:
  /// Creates the file if it is absent, and cuts off a torn last line (see dropped()).
  explicit JournalWriter(std::filesystem::path file);
  ~JournalWriter();
  JournalWriter(const JournalWriter&) = delete;
  JournalWriter& operator=(const JournalWriter&) = delete;

  /// Writes a record to the disk. Throws WriteError if that fails, after it cut off what was
  /// written.
  void append(const Record& record);

  /// A sentence about a torn last line that the constructor cut off; otherwise "".
  const std::string& dropped() const { return dropped_; }

 private:
  const std::filesystem::path file_;
  int descriptor_ = -1;
  std::string dropped_;
};

}  // namespace graphproof::record
