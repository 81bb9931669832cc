// journal.jsonl: append-only, one writer, every record on the disk before append() returns. A run
// is what its journal says: kill the launcher at any byte and the records before it stand.
#pragma once

#include <cstddef>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "reports/record/run/record.h"

namespace graphproof::record {

struct JournalContent {
  std::vector<Record> records;
  std::string dropped;  // "" or a sentence about the torn last line that was left out
};

/// An absent file is an empty journal. A broken line that is not the last one is a ReadError with
/// its number: a journal is written by appending alone, so nothing but damage can cause it.
JournalContent read_journal(const std::filesystem::path& file);

/// A case's verdict is that of its last record.
std::map<std::string, Record> last_records(const std::vector<Record>& records);

/// The one writer. Holds a lock on the file for as long as it lives, so a second launcher in the
/// same run folder is refused (WriteError) before it starts a rank.
class JournalWriter {
 public:
  /// Creates the file if absent; cuts a torn last line off (see dropped()).
  explicit JournalWriter(std::filesystem::path file);
  ~JournalWriter();
  JournalWriter(const JournalWriter&) = delete;
  JournalWriter& operator=(const JournalWriter&) = delete;

  /// WriteError if the record cannot be put on the disk; what was written of it is then cut off
  /// again.
  void append(const Record& record);

  /// "" or a sentence about the torn last line that opening cut off.
  const std::string& dropped() const { return dropped_; }

 private:
  const std::filesystem::path file_;
  int descriptor_ = -1;
  std::string dropped_;
};

}  // namespace graphproof::record
