#include "suites/rank/batch_run.h"

#include <ATen/detail/CUDAHooksInterface.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <utility>

#include "fixtures/process/heartbeat_writer.h"
#include "fixtures/process/rank_log.h"
#include "fixtures/tensors/torch.h"
#include "matrix/catalogue/catalogue.h"
#include "reports/record/job/rank_orders.h"
#include "reports/record/text/file.h"
#include "suites/arms/arms.h"
#include "suites/arms/derivative.h"
#include "suites/arms/divergence.h"
#include "suites/arms/infinity.h"
#include "suites/arms/paged_stash.h"
#include "suites/arms/paired_blocks.h"
#include "suites/arms/shape_buckets.h"
#include "suites/arms/soak.h"
#include "suites/arms/solo.h"
#include "suites/rank/case_settings.h"
#include "suites/rank/case_teardown.h"
#include "suites/rank/configuration.h"
#include "suites/rank/early_exit.h"
#include "suites/rank/fingerprint.h"
#include "suites/rank/planted_stall.h"
#include "suites/rank/rank_process.h"
#include "suites/rank/resuming_process.h"
#include "suites/rank/validate.h"
#include "suites/rank/warm_start.h"

namespace graphproof::suites {
namespace {

/// What all cases of one batch share.
struct BatchContext {
  const RankProgram& program;
  const fixtures::Rank& place;
  const std::filesystem::path& file;  // of the batch
  const record::Batch& batch;
  const matrix::Catalogue& catalogue;
  fixtures::RankLog& log;
  fixtures::HeartbeatWriter& heartbeat;
  RankProcess& process;
  const Purpose purpose;
};

void write_start(const BatchContext& context, const ValidatedCase& validated,
                 record::EvidenceWriter& evidence) {
  record::StartLine line{
      .revision = record::kEvidenceRevision,
      .case_id = validated.listed.id,
      .attempt = validated.listed.attempt,
      .rank = context.place.rank,
      .world_size = context.place.world_size,
      .device = context.batch.device,
      .pid = getpid(),
      .fault = matrix::text_of(context.catalogue.axes, validated.test_case, "fault"),
      .t_ms = monotonic_ms(),
      .shared_gpus = std::nullopt};
  if (context.place.shared_gpus > 0) line.shared_gpus = context.place.shared_gpus;
  evidence.write(line);
}

std::filesystem::path evidence_file(const BatchContext& context, const ValidatedCase& validated) {
  return std::filesystem::path(validated.listed.evidence_folder) /
         record::evidence_file_name(context.place.rank);
}

void refuse_case(const BatchContext& context, const ValidatedCase& validated) {
  const matrix::Finding& refusal = *validated.refusal;
  context.heartbeat.case_begin(validated.listed.id, validated.listed.attempt, context.log.bytes());
  record::EvidenceWriter evidence(evidence_file(context, validated));
  write_start(context, validated, evidence);
  evidence.write(
      record::PhaseLine{.phase = Phase::validate, .arm = "", .ms = validated.validate_ms});
  evidence.write(record::RefusedLine{.phase = Phase::validate,
                                     .rule = refusal.rule,
                                     .device_initialised = context.process.started(),
                                     .what = refusal.what,
                                     .got = refusal.got,
                                     .want = refusal.want,
                                     .why = refusal.why,
                                     .next = refusal.next});
  evidence.end(true, Phase::validate, monotonic_ms());
  context.heartbeat.case_end(context.log.bytes());
}

void run_arms(const CaseParts& parts, CaseState& state) {
  CaseScope& scope = parts.scope;
  scope.enter(Phase::build, "", 0);
  scope.section(Phase::build, [&] {
    state.inputs = make_inputs(parts);
    state.eager = std::make_unique<Arm>(parts, "eager_a", "none", Watch::ranks);
    parts.device.synchronize();
  });
  Snapshot eager_a;
  History repeated;  // by lockstep_eager; only in a case that states a tolerance
  scope.section(Phase::eager, [&] {
    History left = run_eager(parts, state.inputs, *state.eager);
    // eager_a stays alive, so that the second run has other addresses and a dependence on addresses
    // is found.
    run_solo_eager(parts, state.inputs, left);
    eager_a = left.steps().back();
    if (!parts.config.tolerances.empty()) repeated = std::move(left);
    state.eager.reset();
    if (parts.config.layout.tp * parts.config.layout.replicas() * parts.config.layout.pp > 1) {
      run_layout_reference(parts);
      if (parts.config.model.precision == workloads::Precision::fp16) run_infinities(parts);
    }
    run_derivative(parts);
  });
  if (!parts.config.graphs()) return;
  History lockstep_graph;
  scope.section(Phase::replay,
                [&] { lockstep_graph = run_lockstep(parts, state.inputs, repeated, state.kept); });
  scope.section(Phase::replay, [&] { run_free(parts, state.inputs, eager_a, state.kept); });
  if (parts.config.shape_buckets > 0)
    scope.section(Phase::replay, [&] { run_shape_buckets(parts); });
  if (parts.config.model.paged_stash) scope.section(Phase::replay, [&] { run_paged_stash(parts); });
  scope.section(Phase::compare, [] {});
  scope.section(Phase::replay, [&] {
    keep_last(parts, state.kept);
    run_solo_graph(parts, state.inputs, lockstep_graph, state.kept.back()->outputs());
  });
  if (parts.config.times_blocks)
    scope.section(Phase::replay,
                  [&] { run_paired_blocks(parts, state.inputs, state.kept.back()->outputs()); });
  if (parts.config.soak_steps > 0) scope.section(Phase::replay, [&] { run_soak(parts); });
}

void run_again(const CaseParts& parts, CaseState& state) {
  parts.scope.enter(Phase::build, "", 0);
  parts.scope.section(Phase::build, [&] {
    state.inputs = make_inputs(parts);
    parts.device.synchronize();
  });
  locate_divergence(parts, state.inputs);
}

void write_races(const CaseParts& parts) {
  parts.device.synchronize();
  if (const auto races = parts.device.take_races())
    parts.scope.write(record::RacesLine{
        .accesses = races->checked, .count = races->count, .found = races->found});
}

/// REQUIRES: the device is idle, and its communicators exist.
void write_executed(const CaseParts& parts) {
  record::ExecutedLine line;
  for (const record::GroupProgress& group : parts.groups->progress())
    line.groups.push_back({.group = group.group,
                           .first_rank = group.first_rank,
                           .begun = group.begun,
                           .ended = group.ended});
  if (!line.groups.empty()) parts.scope.write(line);  // a single rank is in no group of two
}

/// What the process made and ended of its communicators. The counts are those at the beginning of
/// the arms, at their end, and after the teardown. `kept`: whether the case leaves the
/// communicators to the next one.
record::CommunicatorsLine communicators_line(const std::vector<comm::CommunicatorCount>& before,
                                             const std::vector<comm::CommunicatorCount>& after,
                                             const std::vector<comm::CommunicatorCount>& end,
                                             bool kept) {
  const auto at = [](const std::vector<comm::CommunicatorCount>& counts,
                     const comm::CommunicatorCount& of) {
    const auto found = std::ranges::find_if(counts, [&](const comm::CommunicatorCount& count) {
      return count.group == of.group && count.transport == of.transport;
    });
    return found != counts.end() ? *found : comm::CommunicatorCount{};
  };
  record::CommunicatorsLine line{.kept = kept, .groups = {}};
  for (const comm::CommunicatorCount& count : end) {
    const comm::CommunicatorCount was = at(before, count), then = at(after, count);
    line.groups.push_back({.group = count.group,
                           .transport = count.transport,
                           .before = was.made - was.ended,
                           .made = then.made - was.made,
                           .ended = then.ended - was.ended,
                           .left = count.made - count.ended});
  }
  return line;
}

/// The groups of `layouts`, and each of them once more under another name.
std::vector<comm::GroupLayout> made_again(std::vector<comm::GroupLayout> layouts) {
  const std::size_t count = layouts.size();
  for (std::size_t i = 0; i < count; ++i) {
    comm::GroupLayout again = layouts[i];
    again.name += " again";
    layouts.push_back(std::move(again));
  }
  return layouts;
}

/// Where a job of the case resumes, with a checkpoint on a file system that all ranks see.
CaseParts::NewProcess new_process_of(const BatchContext& context, const record::BatchCase& listed,
                                     CaseScope& scope) {
  const std::filesystem::path folder =
      std::filesystem::path(context.batch.store) /
      ("resumed-" + listed.id + "-" + std::to_string(listed.attempt));
  return {.folder = folder, .run = [&context, &listed, &scope, folder] {
            run_in_new_process({.batch_file = context.file, .id = listed.id, .folder = folder},
                               context.process, scope);
          }};
}

/// Returns whether the case ran to its end.
bool run_case(const BatchContext& context, const ValidatedCase& validated, bool last) {
  context.heartbeat.case_begin(validated.listed.id, validated.listed.attempt, context.log.bytes());
  record::EvidenceWriter evidence(evidence_file(context, validated));
  write_start(context, validated, evidence);
  CaseScope scope(evidence, context.heartbeat);
  const char* ends = std::getenv(kEarlyExitVariable);
  scope.exit_in(early_exit(ends ? ends : "", context.place.rank));
  scope.spent(Phase::validate, validated.validate_ms);
  // Leaked after a failure, because destructors would call a device with a sticky error.
  auto state = std::make_unique<CaseState>();
  bool complete = false;
  try {
    CaseSettings settings;
    const StepConfig& config = settings.config;
    const faults::RunPlan& plan = settings.plan;
    std::optional<PlantedStall> stall;
    std::optional<c10::Stream> stream;
    scope.enter(Phase::init, "", 0);
    scope.section(Phase::init, [&] {
      settings = case_settings(context.catalogue.axes, validated.test_case, context.place,
                               context.batch.seed);
      context.process.start();
      scope.votes_through([&](Phase boundary, int code) {
        return context.process.vote(record::name(boundary), code);
      });
      comm::ProcessGroups& groups = context.process.groups();
      groups.use(process_groups(config.layout), context.process.limit(Phase::init));
      stall.emplace(plan.stall, context.place.rank, context.process.device());
      groups.ledger().listen([&](const record::Collective& collective) {
        context.heartbeat.collective(collective);
        stall->before(collective, scope);
      });
      context.heartbeat.report_progress([&groups] { return groups.progress(); });
      stream = apply(settings, context.process.device());
      write_configuration(scope, context.process, config, *stream,
                          matrix::effective_values(context.catalogue.axes, validated.test_case));
    });
    const CaseParts::NewProcess new_process = new_process_of(context, validated.listed, scope);
    const CaseParts parts{.scope = scope,
                          .device = context.process.device(),
                          .config = config,
                          .stream = *stream,
                          .groups = &context.process.groups(),
                          .new_process = plan.new_process ? &new_process : nullptr};
    static_cast<void>(parts.device.take_races());  // discards those of the previous case
    const auto before = context.process.groups().communicators();
    if (config.collective) {
      state->collective = std::make_unique<CollectiveArms>(parts);
      state->collective->run();
    } else if (config.schedule == Schedule::decode) {
      state->decoding = std::make_unique<DecodingArms>(parts);
      state->decoding->run();
    } else if (context.purpose == Purpose::divergence) {
      run_again(parts, *state);
    } else {
      run_arms(parts, *state);
    }
    write_races(parts);
    write_executed(parts);
    if (plan.groups_made_again)
      context.process.groups().use(made_again(process_groups(config.layout)),
                                   context.process.limit(Phase::init));
    const auto after = context.process.groups().communicators();
    tear_down(parts, context.process, *state,
              {.comm_first = plan.communicators_first,
               .abort = plan.abort_communicators,
               .last = last && !plan.communicators_kept});
    if (const auto end = context.process.groups().communicators(); !end.empty())
      scope.write(communicators_line(before, after, end, !last && !plan.communicators_first));
    complete = true;
  } catch (const PeerFailure& failure) {
    std::cerr << "case " << validated.listed.id << ", rank " << context.place.rank << ": "
              << failure.what() << std::endl;
  } catch (const CaseFailure& failure) {
    std::cerr << "case " << validated.listed.id << ", rank " << context.place.rank << ", "
              << scope.place() << ": " << failure.what() << std::endl;
  }
  if (context.process.started()) {
    context.process.groups().ledger().listen({});
    context.heartbeat.report_progress({});
  }
  const Phase last_phase = scope.phase();
  scope.write_phases();
  evidence.end(complete, last_phase, monotonic_ms());
  context.heartbeat.case_end(context.log.bytes());
  if (!complete) static_cast<void>(state.release());
  return complete;
}

/// Ends this process after a failed case, after the peers have written their evidence too, because
/// mpirun ends all ranks when the first one exits.
[[noreturn]] void end_after_failure(const BatchContext& context) {
  try {
    if (context.process.world() && !context.process.world()->broken())
      context.process.vote("end", kExitCaseFailed);
  } catch (const std::exception& error) {
    std::cerr << "rank " << context.place.rank
              << ": peers did not follow to the end: " << error.what() << std::endl;
  }
  std::cout.flush();
  std::fflush(nullptr);
  std::_Exit(kExitCaseFailed);
}

}  // namespace

int run_batch(const RankProgram& program, const fixtures::Rank& place,
              const std::filesystem::path& file, Purpose purpose) {
  const nlohmann::json read = record::read_json(file);
  const record::Batch batch = record::batch_from(read, file.string());
  const matrix::Catalogue catalogue = matrix::load_catalogue();
  const matrix::Machine machine{.device = program.device,
                                .slots = place.world_size,
                                .stack = matrix::stack_variables(fingerprint())};
  const auto cases = validate(batch, catalogue, machine, place.world_size);

  fixtures::RankLog log(batch.log_folder, place.rank);
  fixtures::HeartbeatWriter heartbeat(batch.heartbeat_fifo, place.rank);
  RankProcess process(program, place, batch,
                      purpose == Purpose::divergence ? "" : matrix::sha256_hex(read.dump()));
  const BatchContext context{program, place,     file,    batch,  catalogue,
                             log,     heartbeat, process, purpose};

  if (const char* go = std::getenv(record::kGoVariable); go != nullptr && *go != '\0') {
    // This initialises the driver, which counts its GPUs, but makes no context.
    static_cast<void>(at::detail::getCUDAHooks().deviceCount());
    wait_for_go(std::string(go) + record::kDeviceSuffix);
    // A refusal must precede all device work. A failure here fails no case: the launcher starts
    // these cases again.
    if (std::none_of(cases.begin(), cases.end(), [](const ValidatedCase& validated) {
          return validated.refusal.has_value();
        })) {
      process.start();
      const StepConfig first =
          step_config(catalogue.axes, cases.front().test_case, place, batch.seed);
      process.groups().use(process_groups(first.layout), process.limit(Phase::init));
    }
    heartbeat.ready();
    wait_for_go(go);
  }
  for (const ValidatedCase& validated : cases)
    if (validated.refusal) refuse_case(context, validated);
  std::size_t left = static_cast<std::size_t>(
      std::count_if(cases.begin(), cases.end(),
                    [](const ValidatedCase& validated) { return !validated.refusal; }));
  bool first = true;
  for (const ValidatedCase& validated : cases) {
    if (validated.refusal) continue;
    if (!std::exchange(first, false) && process.asked_to_stop()) break;
    if (!run_case(context, validated, --left == 0)) end_after_failure(context);
  }
  process.finish();
  heartbeat.bye();
  return kExitDone;
}

}  // namespace graphproof::suites
