// Reads the file that the probe of a watched process left: its lines and its counters. What the
// lines mean is up to watched_process.h.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "reports/record/probe_file/layout.h"

namespace graphproof::record::probe_file {

struct Line {
  std::string kind;
  nlohmann::json fields;  ///< the whole object
};

/// One probe's file as far as it can be read.
struct Contents {
  std::filesystem::path file;
  Header header;
  std::vector<Line> lines;
  std::map<std::int64_t, ExecutableCounters> executables;  ///< by their number
  std::vector<ThreadCounters> threads;
  std::map<std::int64_t, TallyCounters> tallies;  ///< by their number
  std::vector<SeriesCounters> series;
  std::vector<std::string> dropped;  ///< what was left out and why, one sentence each

  /// Lines of `kind`, in order.
  std::vector<const Line*> of(std::string_view kind) const;
};

/// Never throws for what a dying process can leave (records that are cut off, lines that are no
/// JSON): those are in `dropped`. Throws ReadError if the file cannot be opened or no probe wrote
/// it.
Contents read(const std::filesystem::path& file);

/// The files of all probes that wrote into `folder`, in the order of their names; empty if there is
/// no such folder.
std::vector<std::filesystem::path> files_of(const std::filesystem::path& folder);

}  // namespace graphproof::record::probe_file
