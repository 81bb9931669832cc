#include "reports/record/job/batch.h"

namespace graphproof::record {

Json to_json(const Limits& limits) {
  Json json = Json::object();
  for (const auto& [phase, limit_ms] : limits) json[std::string(name(phase))] = limit_ms;
  return json;
}

Limits limits_from(const Fields& in, std::string_view key, bool all) {
  const Fields inner = in.object(key);
  Limits limits;
  for (const auto& [text, limit_ms] : in.required<std::map<std::string, std::int64_t>>(key)) {
    const auto phase = phase_from(text);
    if (!phase) in.reject(key, "a limit for `" + text + "`", "phases only");
    if (limit_ms <= 0) inner.reject(text, std::to_string(limit_ms) + " ms", "more than 0 ms");
    limits[*phase] = limit_ms;
  }
  if (all)
    for (const std::string_view phase : kPhaseNames) inner.required<std::int64_t>(phase);
  return limits;
}

Json to_json(const Batch& batch) {
  Json cases = Json::array();
  for (const BatchCase& one : batch.cases)
    cases.push_back({{"id", one.id},
                     {"name", one.name},
                     {"attempt", one.attempt},
                     {"axes", one.axes},
                     {"evidence_folder", one.evidence_folder}});
  return {{"schema", kBatchSchema},
          {"run_id", batch.run_id},
          {"batch", batch.batch},
          {"device", batch.device},
          {"world_size", batch.world_size},
          {"seed", batch.seed},
          {"isolation", batch.isolation},
          {"heartbeat_fifo", batch.heartbeat_fifo},
          {"store", batch.store},
          {"log_folder", batch.log_folder},
          {"mark", batch.mark},
          {"limits_ms", to_json(batch.limits_ms)},
          {"cases", cases}};
}

Batch batch_from(const nlohmann::json& value, const std::string& where) {
  const Fields in(value, where);
  in.schema(kBatchSchema);
  Batch batch{.run_id = in.required<std::string>("run_id"),
              .batch = in.required<std::string>("batch"),
              .device = in.word("device", {"sim", "cuda"}),
              .world_size = in.required<int>("world_size"),
              .seed = in.required<std::uint64_t>("seed"),
              .isolation = in.word("isolation", {"batch", "process"}),
              .heartbeat_fifo = in.required<std::string>("heartbeat_fifo"),
              .store = in.required<std::string>("store"),
              .log_folder = in.required<std::string>("log_folder"),
              .mark = in.required<std::string>("mark"),
              .limits_ms = limits_from(in, "limits_ms", true),
              .cases = {}};
  for (const Fields& one : in.objects("cases"))
    batch.cases.push_back({.id = one.required<std::string>("id"),
                           .name = one.required<std::string>("name"),
                           .attempt = one.required<int>("attempt"),
                           .axes = one.required<nlohmann::json>("axes"),
                           .evidence_folder = one.required<std::string>("evidence_folder")});
  return batch;
}

}  // namespace graphproof::record
