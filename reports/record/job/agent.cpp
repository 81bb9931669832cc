#include "reports/record/job/agent.h"

namespace graphproof::record {

Json to_json(const Order& order) {
  Json json = {{"schema", kOrderSchema}, {"order", order.order}};
  if (order.order == "leave") return json;
  json["batch"] = order.batch;
  if (order.order != "start" && order.order != "hold") return json;
  Json cases = Json::array();
  for (const OrderedCase& one : order.cases)
    cases.push_back({{"id", one.case_id}, {"attempt", one.attempt}, {"again", one.again}});
  json["isolation"] = order.isolation;
  json["slots"] = order.slots;
  json["cases"] = cases;
  if (order.order == "hold") json["beside"] = order.predecessor;
  return json;
}

Json to_json(const Report& report) {
  Json json = {{"schema", kReportSchema}, {"report", report.report}};
  if (report.report == "hello") {
    json["node"] = report.node;
    json["pid"] = report.pid;
    json["job"] = report.job;
    json["gpus"] = report.gpus;
  } else if (report.report == "ended") {
    json["batch"] = report.batch;
    json["case"] = report.case_id;
    json["attempt"] = report.attempt;
  } else if (report.report == "over") {
    json["batch"] = report.batch;
    json["not_done"] = report.not_done;
    json["immortal"] = report.unkillable;
  } else if (report.report == "lost") {
    json["batch"] = report.batch;
  } else {
    json["why"] = report.why;
  }
  return json;
}

std::string to_line(const Order& order) { return to_json(order).dump() + "\n"; }

std::string to_line(const Report& report) {
  return to_json(report).dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

Order order_from(const nlohmann::json& value, const std::string& where) {
  const Fields in(value, where);
  in.schema(kOrderSchema);
  Order order{.order =
                  in.word("order", {"start", "hold", "go", "stop", "stop_after_case", "leave"})};
  if (order.order == "leave") return order;
  order.batch = in.required<std::string>("batch");
  if (order.order != "start" && order.order != "hold") return order;
  order.isolation = in.word("isolation", {"batch", "process"});
  order.slots = in.required<std::vector<int>>("slots");
  for (const Fields& one : in.objects("cases"))
    order.cases.push_back({.case_id = one.required<std::string>("id"),
                           .attempt = one.required<int>("attempt"),
                           .again = one.required<std::string>("again")});
  if (order.cases.empty()) in.reject("cases", "none", "at least one");
  if (order.order == "hold") order.predecessor = in.required<std::string>("beside");
  return order;
}

Report report_from(const nlohmann::json& value, const std::string& where) {
  const Fields in(value, where);
  in.schema(kReportSchema);
  Report report{.report =
                    in.word("report", {"hello", "ended", "over", "lost", "doctor", "leaving"})};
  if (report.report == "hello") {
    report.node = in.required<std::string>("node");
    report.pid = in.required<std::int64_t>("pid");
    report.job = in.required<std::string>("job");
    report.gpus = in.required<std::vector<std::string>>("gpus");
  } else if (report.report == "ended") {
    report.batch = in.required<std::string>("batch");
    report.case_id = in.required<std::string>("case");
    report.attempt = in.required<int>("attempt");
  } else if (report.report == "over") {
    report.batch = in.required<std::string>("batch");
    report.not_done = in.required<std::vector<std::string>>("not_done");
    report.unkillable = in.required<std::vector<std::string>>("immortal");
  } else if (report.report == "lost") {
    report.batch = in.required<std::string>("batch");
  } else {
    report.why = in.required<std::string>("why");
  }
  return report;
}

}  // namespace graphproof::record
