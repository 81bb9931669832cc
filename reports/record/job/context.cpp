#include "reports/record/job/context.h"

namespace graphproof::record {
namespace {

Json to_json(const std::optional<Phase>& phase) { return phase ? Json(name(*phase)) : Json(); }
Json to_json(const std::optional<Collective>& collective) {
  return collective ? record::to_json(*collective) : Json();
}
Json to_json(const Exit& exit) { return {{"kind", exit.kind}, {"value", exit.value}}; }

std::optional<Phase> phase_of(const Fields& in, std::string_view key) {
  const auto text = in.nullable<std::string>(key);
  if (!text) return std::nullopt;
  const auto phase = phase_from(*text);
  if (!phase) in.reject(key, "`" + *text + "`", "a phase or null");
  return phase;
}

std::optional<Collective> collective_of(const Fields& in, std::string_view key) {
  const auto inner = in.nullable_object(key);
  return inner ? std::optional(collective_from(*inner)) : std::nullopt;
}

Exit exit_from(const Fields& in) {
  return {.kind = in.word("kind", {"exited", "signal", "killed"}),
          .value = in.required<int>("value")};
}

Json to_json(const RankContext& rank) {
  Json json = {
      {"rank", rank.rank},
      {"pid", rank.pid},
      {"case_ended", rank.case_ended},
      {"phase", to_json(rank.phase)},
      {"arm", rank.arm},
      {"step", rank.step},
      {"collective", to_json(rank.collective)},
      {"silent_ms", rank.silent_ms},
      {"exit", rank.exit ? to_json(*rank.exit) : Json()},
      {"log", {{"file", rank.log.file}, {"begin", rank.log.begin}, {"end", rank.log.end}}}};
  if (rank.progress) json["progress"] = record::to_json(*rank.progress);
  return json;
}

RankContext rank_context_from(const Fields& in) {
  const Fields log = in.object("log");
  const auto exit = in.nullable_object("exit");
  return {.rank = in.required<int>("rank"),
          .pid = in.required<std::int64_t>("pid"),
          .case_ended = in.required<bool>("case_ended"),
          .phase = phase_of(in, "phase"),
          .arm = in.required<std::string>("arm"),
          .step = in.required<std::int64_t>("step"),
          .collective = collective_of(in, "collective"),
          .progress = in.has("progress") ? std::optional(collective_progress_from(in, "progress"))
                                         : std::nullopt,
          .silent_ms = in.required<std::int64_t>("silent_ms"),
          .exit = exit ? std::optional(exit_from(*exit)) : std::nullopt,
          .log = {.file = log.required<std::string>("file"),
                  .begin = log.required<std::int64_t>("begin"),
                  .end = log.required<std::int64_t>("end")}};
}

Json to_json(const Hang& hang) {
  Json json{{"phase", name(hang.phase)},
            {"limit_ms", hang.limit_ms},
            {"missing_rank", hang.missing_rank},
            {"waiting_ranks", hang.waiting_ranks},
            {"last_collective", to_json(hang.last_collective)},
            {"stacks", hang.stacks}};
  if (hang.silent_ms) json["silent_ms"] = *hang.silent_ms;
  if (hang.went_on) json["went_on"] = *hang.went_on;
  return json;
}

Hang hang_from(const Fields& in) {
  const auto phase = phase_of(in, "phase");
  if (!phase) in.reject("phase", "null", "a phase");
  return {.phase = *phase,
          .limit_ms = in.required<std::int64_t>("limit_ms"),
          .missing_rank = in.required<int>("missing_rank"),
          .waiting_ranks = in.required<std::vector<int>>("waiting_ranks"),
          .last_collective = collective_of(in, "last_collective"),
          .stacks = in.required<std::string>("stacks"),
          .silent_ms = in.optional<std::int64_t>("silent_ms"),
          .went_on = in.optional<bool>("went_on")};
}

Json to_json(const Cleanup& cleanup) {
  Json memory;
  if (cleanup.gpu_memory) {
    memory = Json::array();
    for (const Cleanup::GpuMemory& left : *cleanup.gpu_memory)
      memory.push_back({{"gpu", left.gpu}, {"bytes", left.bytes}});
  }
  return {{"processes", cleanup.processes},
          {"shm", cleanup.shm},
          {"files", cleanup.files},
          {"ports", cleanup.ports},
          {"gpu_memory", memory}};
}

Cleanup cleanup_from(const Fields& in) {
  Cleanup cleanup{.processes = in.required<std::vector<std::string>>("processes"),
                  .shm = in.required<std::vector<std::string>>("shm"),
                  .files = in.required<std::vector<std::string>>("files"),
                  .ports = in.required<std::vector<int>>("ports"),
                  .gpu_memory = {}};
  if (in.nullable<nlohmann::json>("gpu_memory")) {
    cleanup.gpu_memory.emplace();
    for (const Fields& left : in.objects("gpu_memory"))
      cleanup.gpu_memory->push_back(
          {.gpu = left.required<int>("gpu"), .bytes = left.required<std::int64_t>("bytes")});
  }
  return cleanup;
}

}  // namespace

Json to_json(const Context& context) {
  Json ranks = Json::array(), first_dead, infra;
  for (const RankContext& rank : context.ranks) ranks.push_back(to_json(rank));
  if (context.first_dead)
    first_dead = {{"rank", context.first_dead->rank},
                  {"exit", to_json(context.first_dead->exit)},
                  {"phase", to_json(context.first_dead->phase)}};
  if (context.infra) infra = {{"kind", context.infra->kind}, {"why", context.infra->why}};
  return {{"schema", kContextSchema},
          {"run_id", context.run_id},
          {"case", context.case_id},
          {"attempt", context.attempt},
          {"batch", context.batch},
          {"device", context.device},
          {"isolation", context.isolation},
          {"engine", context.engine},
          {"start", context.start},
          {"world_size", context.world_size},
          {"seconds", context.seconds},
          {"limits_ms", to_json(context.limits_ms)},
          {"expect", to_json(context.expect)},
          {"axes", context.axes},
          {"required_checks", context.required_checks},
          {"ended", context.ended},
          {"ranks", ranks},
          {"hang", context.hang ? to_json(*context.hang) : Json()},
          {"first_dead", first_dead},
          {"infra", infra},
          {"cleanup", to_json(context.cleanup)},
          {"again", context.again}};
}

Context context_from(const nlohmann::json& value, const std::string& where) {
  const Fields in(value, where);
  in.schema(kContextSchema);
  Context context{.run_id = in.required<std::string>("run_id"),
                  .case_id = in.required<std::string>("case"),
                  .attempt = in.required<int>("attempt"),
                  .batch = in.required<std::string>("batch"),
                  .device = in.word("device", {"sim", "cuda"}),
                  .isolation = in.word("isolation", {"batch", "process"}),
                  .engine = in.word("engine", {"local", "mpirun", "slurm", "slurm-array"}),
                  .start = in.word("start", {"cold", "warm"}),
                  .world_size = in.required<int>("world_size"),
                  .seconds = in.required<double>("seconds"),
                  .limits_ms = limits_from(in, "limits_ms", true),
                  .expect = expect_from(in.object("expect")),
                  .axes = in.required<nlohmann::json>("axes"),
                  .required_checks = in.required<std::vector<std::string>>("required_checks"),
                  .ended = in.word("ended", {"finished", "killed", "died", "interrupted"}),
                  .ranks = {},
                  .hang = {},
                  .first_dead = {},
                  .infra = {},
                  .cleanup = cleanup_from(in.object("cleanup")),
                  .again = in.optional<std::string>("again").value_or("")};
  for (const Fields& rank : in.objects("ranks")) context.ranks.push_back(rank_context_from(rank));
  if (const auto hang = in.nullable_object("hang")) context.hang = hang_from(*hang);
  if (const auto dead = in.nullable_object("first_dead"))
    context.first_dead = FirstDead{.rank = dead->required<int>("rank"),
                                   .exit = exit_from(dead->object("exit")),
                                   .phase = phase_of(*dead, "phase")};
  if (const auto infra = in.nullable_object("infra"))
    context.infra =
        Infra{.kind = infra->word("kind", {"node", "gpu", "launch", "scheduler", "container",
                                           "disk", "network", "preempted"}),
              .why = infra->required<std::string>("why")};
  return context;
}

}  // namespace graphproof::record
