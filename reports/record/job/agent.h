// The messages between a launcher and the agent on a node: two files in a folder of the run. Each
// is written by one side, which only appends, and has one JSON object in each line. Larger data are
// in the run's other files: the plan, batch.json, context.json, and the agent's own live.json,
// which shows that the agent is alive.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "reports/record/text/fields.h"

namespace graphproof::record {

inline constexpr std::string_view kOrderSchema = "graphproof-order/1";
inline constexpr std::string_view kReportSchema = "graphproof-report/1";

/// An attempt at a case in a batch. The case itself is in the plan.
struct OrderedCase {
  std::string case_id;
  int attempt = 1;
  std::string again;  // why this is not the first attempt; "" for a first one

  bool operator==(const OrderedCase&) const = default;
};

/// A line of orders.jsonl, which the launcher writes. `order` is one of these, with these members:
/// - start: batch, isolation, slots, cases. Run the cases on these slots of the node.
/// - hold: as start, and predecessor. Prestart the ranks, which wait while that batch has the
///   slots.
/// - go: batch. A prestarted batch may begin.
/// - stop: batch. End its processes now; the case in progress gets no context.json.
/// - stop_after_case: batch. End its processes when the case in progress has ended.
/// - leave: no members. End everything that runs, then the agent itself.
struct Order {
  std::string order;
  std::string batch;
  std::string isolation;  // batch, process
  std::vector<int> slots;
  std::vector<OrderedCase> cases;
  std::string predecessor;  // the batch that has the slots before; "beside" in the file

  bool operator==(const Order&) const = default;
};

/// A line of reports.jsonl, which the agent writes. `report` is one of these, with these members:
/// - hello: node, pid, job, gpus. The agent has started.
/// - ended: batch, case_id, attempt. The case's context.json is written.
/// - over: batch, not_done, unkillable. No process of the batch runs any more.
/// - lost: batch. Prestarted ranks ended or did not get ready; `over` follows, and no case of the
///   batch has an outcome.
/// - doctor: why. What the doctor found on the node, before its first case or after trouble of the
///   infrastructure.
/// - leaving: why. The agent's last line.
struct Report {
  std::string report;
  std::string node;
  std::int64_t pid = 0;
  std::string job;                // the id of the cluster's job; "" without one
  std::vector<std::string> gpus;  // one for each slot, as in CUDA_VISIBLE_DEVICES; empty on sim
  std::string batch, case_id;
  int attempt = 0;
  std::vector<std::string> not_done;  // ids of cases
  /// Processes that even SIGKILL does not end, "4711 graphproof-rank-sim"; "immortal" in the file.
  std::vector<std::string> unkillable;
  std::string why;

  bool operator==(const Report&) const = default;
};

Json to_json(const Order& order);
Json to_json(const Report& report);
/// The line with its newline.
std::string to_line(const Order& order);
std::string to_line(const Report& report);
Order order_from(const nlohmann::json& value, const std::string& where);
Report report_from(const nlohmann::json& value, const std::string& where);

}  // namespace graphproof::record
