#include "reports/record/job/heartbeat.h"

#include "reports/record/text/file.h"

namespace graphproof::record {
namespace {

bool outside_cases(const Heartbeat& heartbeat) {
  return heartbeat.event == "hello" || heartbeat.event == "ready" || heartbeat.event == "bye";
}

}  // namespace

Json to_json(const Heartbeat& heartbeat) {
  Json json = {{"schema", kHeartbeatSchema},
               {"event", heartbeat.event},
               {"rank", heartbeat.rank},
               {"pid", heartbeat.pid},
               {"t_ms", heartbeat.t_ms}};
  if (outside_cases(heartbeat)) return json;
  json["case"] = heartbeat.case_id;
  json["attempt"] = heartbeat.attempt;
  if (heartbeat.log_bytes) json["log_bytes"] = *heartbeat.log_bytes;
  if (heartbeat.event == "progress") json["progress"] = to_json(heartbeat.progress);
  if (heartbeat.event != "phase") return json;
  if (heartbeat.phase) json["phase"] = name(*heartbeat.phase);
  json["arm"] = heartbeat.arm;
  json["step"] = heartbeat.step;
  json["collective"] = heartbeat.collective ? to_json(*heartbeat.collective) : Json();
  return json;
}

std::string to_line(const Heartbeat& heartbeat) {
  std::string line = to_json(heartbeat).dump(-1, ' ', true, Json::error_handler_t::replace) + "\n";
  if (line.size() >= PIPE_BUF)
    throw WriteError(
        {.what = "a heartbeat of rank " + std::to_string(heartbeat.rank) + " is too long",
         .got = std::to_string(line.size()) + " bytes",
         .want = "less than PIPE_BUF, " + std::to_string(PIPE_BUF) + " bytes",
         .why = "longer writes into a pipe may mix with those of another rank",
         .next = "shorten the names of arm, operator and group"});
  return line;
}

Heartbeat heartbeat_from(std::string_view line, const std::string& where) {
  const nlohmann::json value = parse_json(line, where);
  const Fields in(value, where);
  in.schema(kHeartbeatSchema);
  Heartbeat heartbeat{.event = in.word("event", {"hello", "ready", "case_begin", "phase",
                                                 "progress", "case_end", "bye"}),
                      .rank = in.required<int>("rank"),
                      .pid = in.required<std::int64_t>("pid"),
                      .t_ms = in.required<std::int64_t>("t_ms")};
  if (outside_cases(heartbeat)) return heartbeat;
  heartbeat.case_id = in.required<std::string>("case");
  heartbeat.attempt = in.required<int>("attempt");
  if (heartbeat.event == "progress") {
    heartbeat.progress = collective_progress_from(in, "progress");
    return heartbeat;
  }
  if (heartbeat.event != "phase") {
    heartbeat.log_bytes = in.required<std::int64_t>("log_bytes");
    return heartbeat;
  }
  const std::string phase = in.required<std::string>("phase");
  heartbeat.phase = phase_from(phase);
  if (!heartbeat.phase) in.reject("phase", "`" + phase + "`", "a phase");
  heartbeat.arm = in.required<std::string>("arm");
  heartbeat.step = in.required<std::int64_t>("step");
  if (const auto collective = in.nullable_object("collective"))
    heartbeat.collective = collective_from(*collective);
  return heartbeat;
}

}  // namespace graphproof::record
