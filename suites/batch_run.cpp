#include "suites/batch_run.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <iostream>

#include "fixtures/comm/collectives.h"
#include "fixtures/heartbeat_writer.h"
#include "fixtures/rank_log.h"
#include "fixtures/teardown.h"
#include "fixtures/torch.h"
#include "matrix/catalogue.h"
#include "reports/record/file.h"
#include "suites/arms.h"
#include "suites/configuration.h"
#include "suites/fingerprint.h"
#include "suites/rank_process.h"
#include "suites/validate.h"

namespace graphproof::suites {
namespace {

/// What the cases of one batch run with.
struct BatchContext {
  const RankProgram& program;
  const fixtures::Rank& place;
  const record::Batch& batch;
  const matrix::Catalogue& catalogue;
  fixtures::RankLog& log;
  fixtures::HeartbeatWriter& heartbeat;
  RankProcess& process;
};

void write_start(const BatchContext& context, const ValidatedCase& validated, record::EvidenceWriter& evidence) {
  evidence.write("start", {{"schema", record::kEvidenceSchema},
                           {"case", validated.listed.id},
                           {"attempt", validated.listed.attempt},
                           {"rank", context.place.rank},
                           {"world_size", context.place.world_size},
                           {"device", context.batch.device},
                           {"pid", static_cast<std::int64_t>(getpid())},
                           {"fault", matrix::text_of(context.catalogue.axes, validated.test_case, "fault")},
                           {"t_ms", monotonic_ms()}});
}

std::filesystem::path evidence_file(const BatchContext& context, const ValidatedCase& validated) {
  return std::filesystem::path(validated.listed.evidence_folder) / record::evidence_file_name(context.place.rank);
}

void refuse_case(const BatchContext& context, const ValidatedCase& validated) {
  const matrix::Finding& refusal = *validated.refusal;
  context.heartbeat.case_begin(validated.listed.id, validated.listed.attempt, context.log.bytes());
  record::EvidenceWriter evidence(evidence_file(context, validated));
  write_start(context, validated, evidence);
  evidence.write("phase", {{"phase", record::name(Phase::validate)}, {"arm", ""}, {"ms", validated.validate_ms}});
  evidence.write("refused", {{"phase", record::name(Phase::validate)},
                             {"rule", refusal.rule},
                             {"device_initialised", context.process.started()},
                             {"what", refusal.what},
                             {"got", refusal.got},
                             {"want", refusal.want},
                             {"why", refusal.why},
                             {"next", refusal.next}});
  evidence.end(true, Phase::validate, monotonic_ms());
  context.heartbeat.case_end(context.log.bytes());
}

/// The arms and what they leave alive. Destroyed by teardown in order; leaked where a device error may stick.
struct CaseState {
  std::vector<StepInput> inputs;
  std::unique_ptr<EagerArms> eager;
  KeptArms kept;
};

void run_arms(const CaseParts& parts, CaseState& state) {
  CaseScope& scope = parts.scope;
  scope.enter(Phase::build, "", 0);
  scope.section(Phase::build, [&] {
    state.inputs = make_inputs(parts);
    state.eager = std::make_unique<EagerArms>(parts);
    parts.device.synchronize();
  });
  scope.section(Phase::eager, [&] {
    run_eager_repeats(parts, state.inputs, *state.eager);
    state.eager.reset();
    if (parts.config.layout.tp * parts.config.layout.dp > 1) run_layout_reference(parts);
  });
  if (!parts.config.graphs()) return;
  scope.section(Phase::replay, [&] { run_lockstep(parts, state.inputs, state.kept); });
  scope.section(Phase::replay, [&] { run_free(parts, state.inputs, state.kept); });
  scope.section(Phase::compare, [] {});
}

/// A step of teardown that does not return leaves its line and ends the process: whoever waits for it waits for ever.
void overrun(CaseScope& scope, const fixtures::TeardownLine& line) {
  scope.write("teardown", {{"step", line.step}, {"order", line.order}, {"ms", line.ms}, {"limit_ms", line.limit_ms}});
  std::_Exit(kExitOverrun);
}

void tear_down(const BatchContext& context, const CaseParts& parts, CaseState& state, bool last) {
  CaseScope& scope = parts.scope;
  RankProcess& process = context.process;
  fixtures::Teardown teardown([&scope](const fixtures::TeardownLine& line) { overrun(scope, line); });
  const auto run = [&](std::string_view step, Phase phase, const std::function<void()>& action) {
    scope.enter(phase, "", 0);
    const fixtures::TeardownLine& line = teardown.run(step, process.limit(phase), action);
    scope.write("teardown", {{"step", line.step}, {"order", line.order}, {"ms", line.ms}, {"limit_ms", line.limit_ms}});
  };
  scope.section(Phase::teardown_graph, [&] {
    run("graphs", Phase::teardown_graph, [&] {
      for (const auto& arm : state.kept) arm->drop_graphs();
    });
    run("buffers", Phase::teardown_graph, [&] {
      state.kept.clear();
      state.inputs.clear();
      parts.device.synchronize();
    });
  });
  scope.section(Phase::teardown_comm, [&] {
    run("communicators", Phase::teardown_comm, [&] {
      if (last) {
        process.groups().destroy(process.limit(Phase::teardown_comm));
        return;
      }
      // They are kept for the next case. NCCL gives back what dead graphs held in a communicator when that
      // communicator is used again, so one small collective ends this case's hold on it.
      const c10::StreamGuard guard(parts.stream);
      for (const std::string& group : {parts.config.layout.tp_group, parts.config.layout.dp_group})
        if (process.groups().size(group) > 1)
          comm::all_reduce_(at::zeros({1}, at::TensorOptions().device(parts.device.torch_device())), group);
      parts.device.synchronize(parts.stream);
    });
  });
  scope.section(Phase::teardown_process, [&] {
    run("device", Phase::teardown_process, [&] { parts.device.synchronize(); });
  });
}

/// Returns whether the case went its whole way.
bool run_case(const BatchContext& context, const ValidatedCase& validated, bool last) {
  context.heartbeat.case_begin(validated.listed.id, validated.listed.attempt, context.log.bytes());
  record::EvidenceWriter evidence(evidence_file(context, validated));
  write_start(context, validated, evidence);
  CaseScope scope(evidence, context.heartbeat);
  scope.spent(Phase::validate, validated.validate_ms);
  // Not destroyed after a failure: destructors would call into a device whose error sticks.
  auto state = std::make_unique<CaseState>();
  bool complete = false;
  try {
    StepConfig config;
    scope.enter(Phase::init, "", 0);
    scope.section(Phase::init, [&] {
      config = step_config(context.catalogue.axes, validated.test_case, context.place, context.batch.seed);
      context.process.start();
      scope.votes_through([&](Phase boundary, int code) { return context.process.vote(record::name(boundary), code); });
      comm::ProcessGroups& groups = context.process.groups();
      groups.use(comm::tensor_data_groups(config.layout.tp, config.layout.dp), context.process.limit(Phase::init));
      groups.ledger().listen([&](const record::Collective& collective) { context.heartbeat.collective(collective); });
      context.process.device().autograd_threads(config.autograd_threads);
      write_configuration(scope, context.process, config, matrix::effective_values(context.catalogue.axes, validated.test_case));
    });
    const CaseParts parts{.scope = scope,
                          .device = context.process.device(),
                          .config = config,
                          .stream = context.process.device().stream_from_pool(),
                          .groups = &context.process.groups()};
    run_arms(parts, *state);
    tear_down(context, parts, *state, last);
    complete = true;
  } catch (const PeerFailure& failure) {
    std::cerr << "case " << validated.listed.id << ", rank " << context.place.rank << ": " << failure.what() << std::endl;
  } catch (const CaseFailure& failure) {
    std::cerr << "case " << validated.listed.id << ", rank " << context.place.rank << ", " << scope.place() << ": " << failure.what() << std::endl;
  }
  if (context.process.started()) context.process.groups().ledger().listen({});
  const Phase last_phase = scope.phase();
  scope.write_phases();
  evidence.end(complete, last_phase, monotonic_ms());
  context.heartbeat.case_end(context.log.bytes());
  if (!complete) static_cast<void>(state.release());
  return complete;
}

/// Ends this process after a failed case, once the peers have written their evidence too: mpirun ends them all as soon
/// as one has gone.
[[noreturn]] void end_after_failure(const BatchContext& context) {
  try {
    if (context.process.world() && !context.process.world()->broken()) context.process.vote("end", kExitCaseFailed);
  } catch (const std::exception& error) {
    std::cerr << "rank " << context.place.rank << ": peers did not follow to the end: " << error.what() << std::endl;
  }
  std::cout.flush();
  std::fflush(nullptr);
  std::_Exit(kExitCaseFailed);
}

}  // namespace

int run_batch(const RankProgram& program, const fixtures::Rank& place, const std::filesystem::path& file) {
  const record::Batch batch = record::batch_from(record::read_json(file), file.string());
  const matrix::Catalogue catalogue = matrix::load_catalogue();
  const matrix::Machine machine{.device = program.device, .slots = place.world_size, .stack = matrix::stack_variables(fingerprint())};
  const auto cases = validate(batch, catalogue, machine, place.world_size);

  fixtures::RankLog log(batch.log_folder, place.rank);
  fixtures::HeartbeatWriter heartbeat(batch.heartbeat_fifo, place.rank);
  RankProcess process(program, place, batch);
  const BatchContext context{program, place, batch, catalogue, log, heartbeat, process};

  for (const ValidatedCase& validated : cases)
    if (validated.refusal) refuse_case(context, validated);
  std::size_t left = static_cast<std::size_t>(
      std::count_if(cases.begin(), cases.end(), [](const ValidatedCase& validated) { return !validated.refusal; }));
  for (const ValidatedCase& validated : cases) {
    if (validated.refusal) continue;
    if (!run_case(context, validated, --left == 0)) end_after_failure(context);
  }
  process.finish();
  heartbeat.bye();
  return kExitDone;
}

}  // namespace graphproof::suites
