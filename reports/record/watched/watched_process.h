// Turns what the probe of a process left (probe_file.h) into lines of evidence, and says which
// parts of the process it did not see.
#pragma once

#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "reports/record/evidence/evidence.h"
#include "reports/record/evidence/lines/watched_kinds.h"
#include "reports/record/probe_file/probe_file.h"

namespace graphproof::record {

/// The evidence of one watched process.
struct WatchedProcess {
  LinesOfKinds<WatchedKinds> typed;
  std::vector<std::string> dropped;  ///< what could not be used and why, one sentence each

  template <LineKind T>
  std::span<const T> of() const {
    return std::get<std::vector<T>>(typed.lines);
  }
  template <LineKind T>
  std::vector<T>& lines() {
    return std::get<std::vector<T>>(typed.lines);
  }
  /// The first line: the process itself.
  const WatchedProcessLine& process() const { return of<WatchedProcessLine>().front(); }

  /// All lines as JSON, the process first, the others by kind.
  std::vector<Json> json() const;
};

/// Never throws for what a dying process leaves. There is exactly one WatchedProcessLine.
WatchedProcess watched_process(const probe_file::Contents& contents);

}  // namespace graphproof::record
