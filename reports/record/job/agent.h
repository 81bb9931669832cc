// What a launcher and the agent on a node tell each other: two files in a folder of the run, each
// written by one side, only ever appended to, a JSON object a line. What is larger lies in the
// run's other files: the plan, batch.json, context.json, and the agent's own live.json, which is
// its sign of life.
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

/// A case of a batch, as an attempt of its own; everything else of it is in the plan.
struct OrderedCase {
  std::string case_id;
  int attempt = 1;
  std::string again;  // why it is not the first; "" of a first one

  bool operator==(const OrderedCase&) const = default;
};

/// A line of orders.jsonl, by the launcher.
///   start            batch, isolation, slots, cases: run them on these slots of the node
///   hold             the same, and beside: prestart the ranks, which wait while the batch that
///                    `beside` names still has the slots
///   go               batch: a prestarted batch may begin
///   stop             batch: end its processes now; the case in progress gets no context
///   stop_after_case  batch: end its processes when the case in progress has ended
///   leave            nothing else: end what runs, then the agent itself
struct Order {
  std::string order;
  std::string batch;
  std::string isolation;  // batch, process
  std::vector<int> slots;
  std::vector<OrderedCase> cases;
  std::string predecessor;  // the batch that has the slots until then

  bool operator==(const Order&) const = default;
};

/// A line of reports.jsonl, by the agent.
///   hello    node, pid, job, gpus: the agent has arrived
///   ended    batch, case, attempt: its context.json is written
///   over     batch, not_done, immortal: nothing of the batch runs any more
///   lost     batch: prestarted ranks ended, or did not get ready; `over` follows, and no case of
///            the batch is decided
///   doctor   why: what the doctor found on the node, before its first case or after trouble of the
///            infrastructure
///   leaving  why: the agent's last line
struct Report {
  std::string report;
  std::string node;
  std::int64_t pid = 0;
  std::string job;                // of the cluster's scheduler; "" without one
  std::vector<std::string> gpus;  // as CUDA_VISIBLE_DEVICES spells them, one a slot; empty on sim
  std::string batch, case_id;
  int attempt = 0;
  std::vector<std::string> not_done;  // ids of cases
  std::vector<std::string>
      unkillable;  // "4711 graphproof-rank-sim": what even SIGKILL does not end
  std::string why;

  bool operator==(const Report&) const = default;
};

Json to_json(const Order& order);
Json to_json(const Report& report);
/// With their newline.
std::string to_line(const Order& order);
std::string to_line(const Report& report);
Order order_from(const nlohmann::json& value, const std::string& where);
Report report_from(const nlohmann::json& value, const std::string& where);

}  // namespace graphproof::record
