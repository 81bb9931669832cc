#include "reports/record/run/run.h"

namespace graphproof::record {

Json to_json(const Stack& stack) {
  Json json = {{"torch_version", stack.torch_version},
               {"cuda_version", stack.cuda_version},
               {"nccl_version", stack.nccl_version},
               {"driver", stack.driver},
               {"cudnn_version", stack.cudnn_version},
               {"mpi", stack.mpi},
               {"gpus", stack.gpus},
               {"sm", stack.sm},
               {"kernel", stack.kernel},
               {"host", stack.host},
               {"cpus", stack.cpus},
               {"environment", stack.environment}};
  if (!stack.python.empty()) json["python"] = stack.python;
  if (!stack.compute_sanitizer.empty()) json["compute_sanitizer"] = stack.compute_sanitizer;
  if (stack.subjects.empty()) return json;
  Json& subjects = json["subjects"] = Json::object();
  for (const auto& [name, state] : stack.subjects)
    subjects[name] = {
        {"available", state.available}, {"version", state.version}, {"why", state.why}};
  return json;
}

Stack stack_from(const Fields& in) {
  std::map<std::string, SubjectState> subjects;
  if (in.has("subjects")) {
    const auto named = in.required<nlohmann::json>("subjects");
    for (const auto& [name, state] : named.items()) {
      const Fields one = in.object("subjects").object(name);
      subjects[name] = {.available = one.required<bool>("available"),
                        .version = one.required<std::string>("version"),
                        .why = one.required<std::string>("why")};
    }
  }
  return {.torch_version = in.required<std::string>("torch_version"),
          .cuda_version = in.required<std::string>("cuda_version"),
          .nccl_version = in.required<std::string>("nccl_version"),
          .driver = in.required<std::string>("driver"),
          .cudnn_version = in.required<std::string>("cudnn_version"),
          .mpi = in.required<std::string>("mpi"),
          .gpus = in.required<std::vector<std::string>>("gpus"),
          .sm = in.required<int>("sm"),
          .kernel = in.required<std::string>("kernel"),
          .host = in.required<std::string>("host"),
          .cpus = in.required<int>("cpus"),
          .environment = in.required<std::map<std::string, std::string>>("environment"),
          .python = in.optional<std::string>("python").value_or(""),
          .subjects = std::move(subjects),
          .compute_sanitizer = in.optional<std::string>("compute_sanitizer").value_or("")};
}

namespace {

Json to_json(const Options& options) {
  return {{"isolation", options.isolation},
          {"budget_ms", options.budget_ms},
          {"max_fail", options.max_fail},
          {"max_gpu_ms", options.max_gpu_ms},
          {"ranks_per_gpu", options.sharing.ranks_per_gpu},
          {"cases_per_gpu", options.sharing.cases_per_gpu},
          {"confirm", options.confirm},
          {"limits_ms", record::to_json(options.limits_ms)}};
}

Options options_from(const Fields& in) {
  return {.isolation = in.word("isolation", {"planned", "process", "batch"}),
          .budget_ms = in.required<std::int64_t>("budget_ms"),
          .max_fail = in.required<int>("max_fail"),
          .max_gpu_ms = in.optional<std::int64_t>("max_gpu_ms").value_or(0),
          .sharing = {.ranks_per_gpu = in.optional<int>("ranks_per_gpu").value_or(1),
                      .cases_per_gpu = in.optional<int>("cases_per_gpu").value_or(1)},
          .confirm = in.optional<int>("confirm").value_or(0),
          .limits_ms = limits_from(in, "limits_ms", false)};
}

}  // namespace

Json to_json(const Run& run) {
  return {{"schema", kRunSchema},
          {"run_id", run.run_id},
          {"started", run.started},
          {"command", run.command},
          {"profile", run.profile},
          {"matrix",
           {{"name", run.matrix.name},
            {"sha256", run.matrix.sha256},
            {"axes_version", run.matrix.axes_version}}},
          {"seed", run.seed},
          {"device", run.device},
          {"engine", run.engine},
          {"slots", run.slots},
          {"stack", to_json(run.stack)},
          {"plan_sha256", run.plan_sha256},
          {"parent", run.parent},
          {"options", to_json(run.options)}};
}

Run run_from(const nlohmann::json& value, const std::string& where) {
  const Fields in(value, where);
  in.schema(kRunSchema);
  const Fields matrix = in.object("matrix");
  return {.run_id = in.required<std::string>("run_id"),
          .started = in.required<std::string>("started"),
          .command = in.required<std::vector<std::string>>("command"),
          .profile = in.required<std::string>("profile"),
          .matrix = {.name = matrix.required<std::string>("name"),
                     .sha256 = matrix.required<std::string>("sha256"),
                     .axes_version = matrix.required<int>("axes_version")},
          .seed = in.required<std::uint64_t>("seed"),
          .device = in.word("device", {"sim", "cuda"}),
          .engine = in.word("engine", {"local", "mpirun", "slurm", "slurm-array"}),
          .slots = in.required<int>("slots"),
          .stack = stack_from(in.object("stack")),
          .plan_sha256 = in.optional<std::string>("plan_sha256").value_or(""),
          .parent = in.optional<std::string>("parent").value_or(""),
          .options = in.has("options") ? options_from(in.object("options")) : Options{}};
}

}  // namespace graphproof::record
