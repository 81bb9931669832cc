#include "reports/record/job/live.h"

namespace graphproof::record {

Json to_json(const Live& live) {
  Json running = Json::array();
  for (const LiveCase& one : live.running) {
    Json ranks = Json::array();
    for (const LiveRank& rank : one.ranks)
      ranks.push_back({{"rank", rank.rank},
                       {"pid", rank.pid},
                       {"phase", rank.phase ? Json(name(*rank.phase)) : Json()},
                       {"arm", rank.arm},
                       {"step", rank.step},
                       {"silent_ms", rank.silent_ms}});
    running.push_back({{"case", one.case_id},
                       {"name", one.name},
                       {"attempt", one.attempt},
                       {"batch", one.batch},
                       {"ranks", ranks}});
  }
  return {{"schema", kLiveSchema},
          {"run_id", live.run_id},
          {"pid", live.pid},
          {"host", live.host},
          {"updated_ms", live.updated_ms},
          {"elapsed_seconds", live.elapsed_seconds},
          {"remaining_seconds", live.remaining_seconds ? Json(*live.remaining_seconds) : Json()},
          {"planned", live.planned},
          {"done", live.done},
          {"failed", live.failed},
          {"stopping", live.stopping},
          {"running", running}};
}

Live live_from(const nlohmann::json& value, const std::string& where) {
  const Fields in(value, where);
  in.schema(kLiveSchema);
  Live live{.run_id = in.required<std::string>("run_id"),
            .pid = in.required<std::int64_t>("pid"),
            .host = in.required<std::string>("host"),
            .updated_ms = in.required<std::int64_t>("updated_ms"),
            .elapsed_seconds = in.required<double>("elapsed_seconds"),
            .remaining_seconds = in.nullable<double>("remaining_seconds"),
            .planned = in.required<int>("planned"),
            .done = in.required<int>("done"),
            .failed = in.required<int>("failed"),
            .stopping = in.word(
                "stopping", {"", "interrupted", "budget", "circuit_breaker", "max_fail", "disk"}),
            .running = {}};
  for (const Fields& one : in.objects("running")) {
    LiveCase running{.case_id = one.required<std::string>("case"),
                     .name = one.required<std::string>("name"),
                     .attempt = one.required<int>("attempt"),
                     .batch = one.required<std::string>("batch"),
                     .ranks = {}};
    for (const Fields& rank : one.objects("ranks")) {
      LiveRank seen{.rank = rank.required<int>("rank"),
                    .pid = rank.required<std::int64_t>("pid"),
                    .phase = {},
                    .arm = rank.required<std::string>("arm"),
                    .step = rank.required<std::int64_t>("step"),
                    .silent_ms = rank.required<std::int64_t>("silent_ms")};
      if (const auto text = rank.nullable<std::string>("phase")) {
        seen.phase = phase_from(*text);
        if (!seen.phase) rank.reject("phase", "`" + *text + "`", "a phase or null");
      }
      running.ranks.push_back(std::move(seen));
    }
    live.running.push_back(std::move(running));
  }
  return live;
}

}  // namespace graphproof::record
