#include "reports/record/watched/watched_run.h"

#include "reports/record/watched/table_file.h"

namespace graphproof::record {

Json to_json(const WatchedRun& run) { return table_file_json(kWatchedRunSchema, run); }

WatchedRun watched_run_from(const nlohmann::json& value, const std::string& where) {
  return table_file_from<WatchedRun>(value, kWatchedRunSchema, where);
}

}  // namespace graphproof::record
