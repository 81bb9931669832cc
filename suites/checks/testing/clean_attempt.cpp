#include "suites/checks/testing/clean_attempt.h"

#include <algorithm>
#include <array>
#include <iomanip>
#include <set>
#include <sstream>
#include <stdexcept>

#include "matrix/case/case.h"
#include "suites/checks/attempt/arms.h"
#include "suites/checks/attempt/concat.h"
#include "suites/checks/attempt/expected.h"
#include "suites/checks/inference/job_plan.h"
#include "workloads/engine_traits/engine_traits.h"
#include "workloads/pipeline/pipeline_schedule.h"
#include "workloads/soak/soak_plan.h"

namespace graphproof::checks {
namespace {

using nlohmann::json;
using record::Phase;

/// 16 hexadecimal digits, different for each number.
std::string digest(std::uint32_t of, std::int64_t number) {
  std::ostringstream text;
  text << std::hex << std::setfill('0') << std::setw(8) << of << std::setw(8) << number;
  return text.str();
}

/// Writes the evidence of one rank, in the order of the rank program.
class RankScript {
 public:
  RankScript(const Attempt& attempt, int rank, std::int64_t revision)
      : attempt_(attempt),
        plan_(expected(attempt.axes, ends_of(attempt.axes, rank))),
        revision_(revision),
        control_(control_arms(attempt.axes, revision)),
        rank_(rank),
        world_size_(attempt.context.world_size) {
    parallel_ = attempt.axes.integer("tp") * attempt.axes.integer("cp") *
                    attempt.axes.integer("dp") * attempt.axes.integer("pp") >
                1;
    collective_ = attempt.axes.text("model") == "collective";
    decodes_ = !plan_.trains && !collective_;
    if (decodes_ || plan_.rollouts > 0) job_plan_ = job_plan(attempt.axes);
  }

  /// The log of NCCL in a case of model collective; "" otherwise.
  std::string log() const {
    return !collective_ || attempt_.context.device != "cuda" ? "" : nccl_log();
  }

  record::Evidence write() {
    begin();
    if (collective_ || attempt_.axes.text("placement") == "per_rank") placements();
    eager();
    if (collective_) closed_forms();
    if (decodes_) decoding_eager();
    if (decodes_ && plan_.graph) {
      decoding_graphs();
    } else if (plan_.graph) {
      graph_arms();
    } else if (!control_.solo) {
      solo("solo_eager");
    }
    if (parallel_) layout();
    end();
    record::type_lines(evidence_);
    return std::move(evidence_);
  }

 private:
  template <record::LineKind T>
  void line(const T& fields) {
    evidence_.lines.push_back({.kind = std::string(T::kKind),
                               .fields = record::line_json(fields),
                               .line = evidence_.lines.size() + 1});
  }
  void phase(Phase phase, const char* arm = "") {
    line(record::PhaseLine{.phase = phase, .arm = arm, .ms = 15.0});
  }
  void vote(Phase after) {
    line(record::VoteLine{
        .phase = after,
        .codes = std::vector<std::int64_t>(static_cast<std::size_t>(world_size_), 0)});
  }

  void begin() {
    const Axes& axes = attempt_.axes;
    line(record::StartLine{.revision = revision_,
                           .case_id = attempt_.context.case_id,
                           .attempt = 1,
                           .rank = rank_,
                           .world_size = world_size_,
                           .device = attempt_.context.device,
                           .pid = 4710 + rank_,
                           .fault = axes.text("fault"),
                           .t_ms = 1000});
    const bool cuda = attempt_.context.device == "cuda";
    record::Settings asked{{"capture_mode", axes.text("capture_mode")},
                           {"autograd_threads", axes.text("autograd_threads")},
                           {"allocator", axes.text("allocator")},
                           {"NCCL_GRAPH_REGISTER", axes.text("nccl_graph_register")},
                           {"NCCL_ALGO", axes.text("nccl_algo")}};
    if (cuda) asked["comm"] = axes.text("comm");
    record::Settings effective = asked;
    effective.erase("NCCL_GRAPH_REGISTER");
    effective["mpi_thread_level"] = "serialized";
    effective["deterministic"] = axes.text("deterministic_algorithms") == "on";
    effective["libnccl_mapped"] = cuda ? 1 : 0;
    if (axes.text("sanitizer") != "none")
      effective["tensor_bounds_known_to"] = axes.text("sanitizer");
    effective["nccl_compiled"] = effective["nccl_loaded"] = cuda ? "2.28.9" : "none";
    line(record::ConfigLine{.asked = asked, .effective = effective});
    vote(Phase::init);
    vote(Phase::build);
  }

  /// As many collectives in every group as its number among the groups says.
  record::ExecutedLine executed() const {
    record::ExecutedLine line;
    const auto add = [&](const std::string& name, const std::vector<std::vector<int>>& all) {
      for (const std::vector<int>& group : all)
        if (group.size() > 1 && std::ranges::count(group, rank_) > 0)
          line.groups.push_back({.group = name,
                                 .first_rank = *std::ranges::min_element(group),
                                 .begun = 400 + std::ssize(line.groups),
                                 .ended = 400 + std::ssize(line.groups)});
    };
    for (const std::string& kind : symmetric_groups(attempt_.axes))
      add(kind, groups(attempt_.axes, world_size_, kind));
    if (attempt_.axes.integer("pp") > 1) add("pp", stage_groups(attempt_.axes, world_size_));
    return line;
  }

  /// One communicator for each group of executed().
  record::CommunicatorsLine communicators(bool kept) const {
    record::CommunicatorsLine line{.kept = kept, .groups = {}};
    for (const record::ExecutedGroup& group : executed().groups)
      line.groups.push_back({.group = concat(group.group, "=", group.first_rank, ",9"),
                             .transport = "mpi",
                             .before = 1,
                             .made = 0,
                             .ended = 0,
                             .left = kept ? 1 : 0});
    return line;
  }

  void step(const char* arm, std::int64_t step) {
    if (!plan_.trains) return;
    const std::string bits = digest(0x3f9a0000, step);
    line(record::StepLine{
        .arm = arm,
        .step = step,
        .input = input(step),
        .loss = std::vector<double>(static_cast<std::size_t>(plan_.microbatches), 4.85),
        .loss_bits = bits,
        .grad_norm = 1.25,
        .digest = {.grads = digest(0x8a1f0000, step),
                   .params = digest(0x0b1c0000, step),
                   .losses = bits},
        .learning_rate = rate(step),
        .ms = 3.0 + static_cast<double>(step)});
  }
  /// With a tolerance gradients differ from the second step on: those of eager arms in the last bit
  /// of the largest element, those of others in three.
  void compare(const char* compared, const char* left, const char* right, std::int64_t step) {
    if (attempt_.axes.text("tolerance") != "none" && step > 0)
      return differing(compared, left, right, step);
    line(record::CompareLine{.left = left,
                             .right = right,
                             .compared = compared,
                             .step = step,
                             .input = input(step),
                             .tensors = 33,
                             .bytes = 262144,
                             .equal = true,
                             .mismatch = std::nullopt});
  }
  void differing(const char* compared, const char* left, const char* right, std::int64_t step) {
    const std::string tensor = "grad:embedding.weight";
    const double resolution = 0x1p-23, largest = 0.5,
                 apart = (std::string_view(compared).starts_with("eager_") ? 1 : 3) * resolution *
                         largest;
    line(record::CompareLine{.left = left,
                             .right = right,
                             .compared = compared,
                             .step = step,
                             .input = input(step),
                             .tensors = 33,
                             .bytes = 262144,
                             .equal = false,
                             .mismatch = record::TensorMismatch{.tensor = tensor,
                                                                .element = 17,
                                                                .left = largest,
                                                                .right = largest + apart,
                                                                .max_abs = apart,
                                                                .max_rel = apart / largest,
                                                                .max_ulp = 3,
                                                                .elements = 1024,
                                                                .differing = 311}});
    line(record::DistancesLine{.left = left,
                               .right = right,
                               .compared = compared,
                               .step = step,
                               .tensors = {{.tensor = tensor,
                                            .elements = 1024,
                                            .differing = 311,
                                            .incomparable = 0,
                                            .element = 17,
                                            .left = largest,
                                            .right = largest + apart,
                                            .max_abs = apart,
                                            .largest = largest,
                                            .beyond_rtol = 0,
                                            .resolution = resolution}},
                               .rounding = 3e-4 * static_cast<double>(step + 1),
                               .rounding_why = "sums in another order"});
  }
  void hyperparameters(const char* arm, std::int64_t step) {
    if (!plan_.trains) return;
    line(record::HyperparameterLine{.arm = arm,
                                    .step = step,
                                    .name = "learning_rate",
                                    .host = rate(step),
                                    .effective = rate(step) + 1e-6,
                                    .bound = 5e-4});
    const Axes& axes = attempt_.axes;
    const auto exactly = [&](const char* name, const record::Json& value) {
      line(record::HyperparameterLine{
          .arm = arm, .step = step, .name = name, .host = value, .effective = value, .bound = 0});
    };
    if (axes.text("optimizer") == "adam") exactly("optimizer_step", step + 1);
    if (axes.text("precision") == "fp16") exactly("loss_scale", step % 2 == 0 ? 65536.0 : 32768.0);
    const bool makes_loss = rank_ >= world_size_ - world_size_ / axes.integer("pp");
    if (axes.flag("nan_check_loss")) exactly("losses_checked", makes_loss ? plan_.microbatches : 0);
    if (axes.flag("nan_check_grad")) exactly("gradients_checked", 1);
    if (axes.flag("overlap_grad_reduce")) exactly("buckets_overlapped", 2);
  }
  std::vector<std::int64_t> schedule() const {
    const Axes& axes = attempt_.axes;
    std::vector<std::int64_t> ran;
    if (axes.flag("overlap_ep_comm")) {
      // One stage: layer l of the forward of microbatch m next to layer L - 1 - l of the backward
      // of the one before it.
      const std::int64_t microbatches = plan_.microbatches,
                         layers = plan_.layers + axes.integer("mtp_num_layers");
      for (std::int64_t m = 0; m <= microbatches; ++m)
        for (std::int64_t l = 0; l < layers; ++l) {
          if (m < microbatches) ran.push_back(2 * l * microbatches + m + 1);
          if (m == 0) continue;
          ran.push_back(-(2 * (layers - 1 - l) * microbatches + m));
          if (axes.flag("delay_wgrad"))
            ran.push_back(-((2 * (layers - 1 - l) + 1) * microbatches + m));
        }
      return ran;
    }
    for (const order::ScheduleSlot& slot :
         order::schedule_slots({.pp = axes.integer("pp"),
                                .rank = rank_ / (world_size_ / axes.integer("pp")),
                                .chunks = axes.integer("vpp"),
                                .microbatches = axes.integer("microbatches"),
                                .group = axes.integer("microbatch_group")}))
      if (slot.work) {
        const std::int64_t number =
            slot.work->chunk * axes.integer("microbatches") + slot.work->microbatch + 1;
        ran.push_back(slot.work->forward ? number : -number);
      }
    return ran;
  }
  /// Of a pipeline stage, of a model that recomputes, of one that rounds weights, and of one with
  /// experts: three tokens of the second expert of layer 0 had no room.
  void ledgers(const char* arm, std::int64_t step) {
    const Axes& axes = attempt_.axes;
    if (!plan_.trains) return;
    if (axes.text("recompute") != "none") {
      for (const RecomputedPart& part : recomputed_parts(axes, ends_of(axes, rank_).last)) {
        const bool masked = part.draws && axes.flag("dropout");
        const std::string masks = masked ? digest(0x77aa0000, step) : "";
        const auto counts = [&](std::int64_t until) {
          auto all = forwards(until);
          all.resize(static_cast<std::size_t>(part.layers > 0 ? part.layers : plan_.layers));
          return all;
        };
        line(record::RecomputeLine{.arm = arm,
                                   .step = step,
                                   .part = part.name,
                                   .counter_before = counts(step),
                                   .counter_after = counts(step + 1),
                                   .outputs = digest(0x55aa0000, step),
                                   .outputs_again = digest(0x55aa0000, step),
                                   .masks = masked ? plan_.layers * plan_.microbatches : 0,
                                   .masks_digest = masks,
                                   .masks_again_digest = masks});
      }
    }
    if (axes.integer("pp") > 1 || axes.flag("overlap_ep_comm"))
      line(record::ScheduleLine{.arm = arm, .step = step, .ran = schedule()});
    if (axes.flag("fp8_weights"))
      line(record::Fp8WeightsLine{
          .arm = arm,
          .step = step,
          .copies = rounded_weights(axes, rank_ / (world_size_ / axes.integer("pp")))});
    if (axes.text("precision") == "fp8_delayed") {
      const std::int64_t stage = rank_ / (world_size_ / axes.integer("pp"));
      const std::vector<std::int64_t> updates = fp8_updates(axes, stage);
      line(record::Fp8ScalingLine{.arm = arm,
                                  .step = step,
                                  .updates = updates,
                                  .reductions = updates,
                                  .scales = digest(0x66aa0000 + 0x100 * stage, step)});
    }
    if (axes.flag("cpu_offload") && revision_ >= record::OffloadLine::kSince) {
      const std::int64_t buffers = offloaded_activations(axes);
      line(record::OffloadLine{.arm = arm,
                               .step = step,
                               .buffers = buffers,
                               .pinned = buffers,
                               .written = buffers,
                               .fetched = buffers * plan_.microbatches});
    }
    const std::int64_t experts = axes.integer("experts");
    if (experts == 0) return;
    constexpr std::int64_t kEach = 16, kOver = 3;
    std::vector<std::int64_t> assigned(static_cast<std::size_t>(plan_.expert_layers * experts),
                                       kEach),
        carried = assigned;
    assigned[1] += kOver;
    assigned[0] -= kOver;
    carried[0] -= kOver;
    std::vector<std::int64_t> dropped(static_cast<std::size_t>(plan_.expert_layers), 0),
        overflowed = dropped;
    dropped[0] = kOver;
    overflowed[0] = 1;
    line(record::ExpertsLine{.arm = arm,
                             .step = step,
                             .assignments = kEach * experts,
                             .assigned = assigned,
                             .carried = carried,
                             .dropped = dropped,
                             .overflowed = overflowed});
  }
  /// The products of a step with autocast; none in a replay.
  void products(const char* arm, std::int64_t step) {
    const Axes& axes = attempt_.axes;
    if (axes.text("autocast") == "none" || !plan_.trains ||
        revision_ < record::ProductsLine::kSince)
      return;
    const bool replayed = arm == std::string_view("lockstep_graph") && step > plan_.first_replay;
    const LinearLayers layers = linear_layers(axes, rank_ / (world_size_ / axes.integer("pp")));
    const std::int64_t uses = axes.flag("autocast_cache") ? layers.weights : layers.uses;
    line(record::ProductsLine{.arm = arm,
                              .step = step,
                              .in_16_bits = replayed ? 0 : 3 * layers.uses * plan_.microbatches,
                              .in_32_bits = 0,
                              .parameters = replayed ? 0 : layers.weights,
                              .casts = replayed ? 0 : uses * plan_.microbatches});
  }
  std::string input(std::int64_t step) const {
    return step == plan_.capture_step || step == plan_.last_inputs_step ? "capture" : "fresh";
  }
  static double rate(std::int64_t step) { return 0.1 * (1 - 0.05 * static_cast<double>(step)); }

  /// Lines about what ranks have in common: equal digests on ranks that hold the same.
  void between_ranks(std::int64_t step) {
    const Axes& axes = attempt_.axes;
    const std::int64_t stages = axes.integer("pp"), stage_ranks = world_size_ / stages,
                       stage = rank_ / stage_ranks, place = rank_ % stage_ranks,
                       tp = axes.integer("tp");
    const bool sharded = axes.flag("distributed_optimizer");
    const auto held = [&](const char* what, const char* part, std::int64_t of_stage,
                          std::int64_t parts, bool cut, bool owned) {
      const auto holder = static_cast<std::uint32_t>(
          0x1000 * of_stage + 0x100 * (owned ? place / parts : 0) + (cut ? place % parts : 0));
      line(record::HeldLine{.arm = "eager_a",
                            .step = step,
                            .what = what,
                            .part = part,
                            .tensors = 9,
                            .digest = digest(0x41000000 + holder, step)});
    };
    const auto model = [&](const char* what, bool owned) {
      held(what, "whole", stage, tp, false, owned);
      if (tp > 1) held(what, "split", stage, tp, true, owned);
      if (axes.integer("experts") > 0)
        held(what, "experts", stage, axes.integer("ep") * axes.integer("etp"), true, owned);
      if (shares_embedding(axes) && (stage == 0 || stage == stages - 1))
        held(what, "tied", owned ? stage : 0, tp, true, owned);
    };
    model("parameters", sharded && axes.flag("overlap_param_gather"));
    if (axes.text("optimizer") == "adam" || axes.text("precision") != "fp32")
      model("state", sharded);
    if (axes.flag("router_score_correction")) held("state", "routers", stage, tp, false, false);
    if (axes.text("optimizer") == "adam" || axes.text("precision") == "fp16" ||
        axes.flag("clip_grad"))
      held("state", "model", 0, tp, false, false);
    line(record::UpdatesLine{.arm = "eager_a",
                             .step = step,
                             .tensors = 50,
                             .worst = "param:layers.0.norm.weight",
                             .error = 1e-9,
                             .bound = 6e-9});
    if (!axes.flag("dropout")) return;
    for (const bool inside : {true, false})
      line(record::MasksLine{
          .arm = "eager_a",
          .step = step,
          .region = inside ? "inside" : "outside",
          .masks = 4,
          .digest = digest(static_cast<std::uint32_t>(
                               0x42000000 + 0x1000 * stage +
                               (inside || axes.flag("sequence_parallel") ? place % tp : 0)),
                           step)});
  }
  /// Of each part of the model, whose lowest ranks are those of the stages and their first ranks.
  void infinities() {
    const Axes& axes = attempt_.axes;
    const std::int64_t stage_ranks = world_size_ / axes.integer("pp");
    const auto holder = [&](std::int64_t rank, std::int64_t parts) {
      const std::int64_t place = rank % stage_ranks;
      return std::array{rank / stage_ranks, place % parts,
                        axes.flag("distributed_optimizer") ? place / parts : 0};
    };
    const auto write = [&](const char* part, std::int64_t victim, bool none, bool mine) {
      line(record::InfinityLine{
          .part = part, .victim = victim, .infinite = mine, .skipped = !none, .moved = false});
    };
    write("none", 0, true, false);
    for (const bool experts : {false, true}) {
      if (experts && axes.integer("experts") == 0) continue;
      const std::int64_t parts =
          experts ? axes.integer("ep") * axes.integer("etp") : axes.integer("tp");
      std::set<std::array<std::int64_t, 3>> done;
      for (std::int64_t victim = 0; victim < world_size_; ++victim)
        if (done.insert(holder(victim, parts)).second)
          write(experts ? "experts" : "dense", victim, false,
                holder(victim, parts) == holder(rank_, parts));
    }
  }

  void derivative() {
    for (const char* moved : {"embedding.weight", "layers.*.attention.qkv.weight"})
      line(record::DerivativeLine{
          .moved = moved, .tensors = 2, .computed = 0.031, .measured = 0.0312, .bound = 0.0004});
    if (revision_ < 21) return;
    for (const char* loss : {"router_aux_loss", "router_z_loss"})
      if (attempt_.axes.flag(loss))
        line(record::RouterLossLine{.loss = loss,
                                    .tensors = 9,
                                    .value = 0.0571,
                                    .computed = 0.00114,
                                    .measured = 0.00114,
                                    .bound = 0.00001});
  }

  /// Of subjects that count what they run under a checkpoint.
  void recomputes(const char* arm, std::int64_t eager_steps, bool graph) {
    const Axes& axes = attempt_.axes;
    const std::string subject = axes.text("subject");
    if ((subject != "torch" && subject != "megatron_core") || axes.text("recompute") == "none" ||
        revision_ < record::RecomputesLine::kSince)
      return;
    std::int64_t parts = 0;
    for (const RecomputedPart& part : recomputed_parts(axes, ends_of(axes, rank_).last))
      parts += plan_.microbatches * (part.layers > 0 ? part.layers : plan_.layers);
    line(record::RecomputesLine{.arm = arm,
                                .eager_steps = eager_steps,
                                .parts = eager_steps * parts,
                                .parts_again = eager_steps * parts,
                                .captured = graph ? parts : 0,
                                .captured_again = graph ? parts : 0});
  }

  void delayed_steps(const char* arm, std::int64_t first, std::int64_t count, double ms,
                     int branches) {
    if (!plan_.trains || attempt_.context.device != "cuda" || revision_ < 8) return;
    std::vector<std::int64_t> steps;
    for (std::int64_t k = first; k < first + count; ++k) steps.push_back(k);
    line(record::DelayedStepsLine{
        .arm = arm, .steps = std::move(steps), .ms = ms, .streams = 31, .branches = branches});
  }

  void eager() {
    for (std::int64_t k = 0; k < plan_.steps; ++k) {
      step("eager_a", k);
      hyperparameters("eager_a", k);
      ledgers("eager_a", k);
      products("eager_a", k);
      if (plan_.trains && revision_ >= 14) between_ranks(k);
    }
    if (plan_.trains && revision_ >= 14 && parallel_ && attempt_.axes.text("precision") == "fp16")
      infinities();
    if (plan_.trains && revision_ >= 20) derivative();
    const std::string subject = attempt_.axes.text("subject");
    if ((subject == "torch" || subject == "script") && revision_ >= record::HostWaitsLine::kSince)
      line(record::HostWaitsLine{.arm = "eager_a", .steps = plan_.steps - 1, .waits = {}});
    recomputes("eager_a", plan_.steps, false);
    delayed_steps("eager_a", 1, std::min<std::int64_t>(2, plan_.steps - 1), 10.0, 0);
    if (control_.solo) {
      solo("solo_eager", "eager_repeats", "eager_a");
    } else {
      for (std::int64_t k = 0; k < plan_.steps; ++k) {
        step("eager_b", k);
        compare("eager_repeats", "eager_a", "eager_b", k);
      }
    }
    vote(Phase::eager);
  }

  /// Buffers of odd ranks extend past the end of a span if the case asks for it and the memory has
  /// spans.
  void placements() {
    constexpr std::int64_t kPiece = 20971520, kBytes = 65536;
    const bool expandable = attempt_.axes.text("allocator") == "expandable";
    const bool moved = attempt_.axes.text("placement") == "per_rank" && rank_ % 2 == 1;
    std::vector<const char*> buffers;
    if (collective_) buffers = {"input", "result"};
    if (plan_.trains) buffers = {"gradients"};
    if (plan_.trains && attempt_.axes.flag("distributed_optimizer"))
      buffers.push_back("parameters");
    for (const char* arm : {"eager_a", "eager_b", "lockstep_eager", "lockstep_graph", "graph_b",
                            "free_eager", "free_graph", "solo_eager", "solo_graph"})
      for (const char* buffer : buffers)
        line(record::PlacementLine{.arm = arm,
                                   .buffer = buffer,
                                   .bytes = kBytes,
                                   .offset = moved ? kPiece - kBytes / 2 : 0,
                                   .span_bytes = expandable ? kPiece : 5 * kPiece,
                                   .straddles = moved && expandable});
    if (collective_ || !plan_.graph) return;
    constexpr std::int64_t kBlock = 512;
    const std::int64_t distance = moved ? 3 * kBlock : kBlock;
    for (const char* arm :
         {"lockstep_graph", "free_graph", plan_.trains ? "solo_graph" : "graph_b"})
      line(record::PlacementLine{
          .arm = arm, .buffer = "pool", .bytes = distance, .offset = distance});
  }
  void closed_forms() {
    const auto all = [&](const char* arm, std::int64_t first, std::int64_t last) {
      for (std::int64_t k = first; k <= last; ++k) compare("closed_form", "closed_form", arm, k);
    };
    for (const char* arm : {"eager_a", "eager_b"}) all(arm, 0, plan_.steps - 1);
    if (!plan_.graph) return;
    for (const char* arm : {"lockstep_eager", "lockstep_graph"})
      all(arm, 0, plan_.last_inputs_step);
    all("graph_b", 0, plan_.steps - 1);
    for (const char* arm : {"free_eager", "free_graph"}) all(arm, plan_.steps - 1, plan_.steps - 1);
  }
  /// Three graphs, each with its own buffers, as NCCL 2.28.9 logs them.
  std::string nccl_log() const {
    const std::string head =
        concat("node1:", 4710 + rank_, ":", 4710 + rank_, " [", rank_, "] NCCL INFO ");
    const bool registers = plan_.graph && attempt_.axes.text("allocator") == "expandable" &&
                           attempt_.axes.text("nccl_graph_register") != "0";
    std::string log = head + "NCCL_GRAPH_REGISTER set by environment to 1.\n";
    for (int graph = 0; graph < 3; ++graph) {
      log += head +
             "AllGather: opCount 5 sendbuff 0x7f2a00000000 recvbuff 0x7f2a40000000 count 16384 "
             "datatype 1 op 0 root 0 comm 0x55 [nranks=2] stream 0x66\n";
      log += head + "AllGather: 16777216 Bytes -> Algo RING proto SIMPLE channel{Lo..Hi}={0..23}\n";
      if (registers)
        log += concat(head, "rank ", rank_, " - IPC register buffer 0x7f2a4", graph,
                      "000000 size 16777216 (baseAddr 0x7f2a40000000 size 20971520) to peer ",
                      1 - rank_ % 2, " regAddr 0x7f2b00000000 offsetOut 0\n");
    }
    return log;
  }

  std::vector<std::int64_t> forwards(std::int64_t steps) const {
    return std::vector<std::int64_t>(
        static_cast<std::size_t>(plan_.trains ? plan_.counted_layers : 0),
        steps * plan_.microbatches);
  }
  void capture(const char* arm) {
    capture(arm, "training");
    if (attempt_.axes.flag("optimizer_graph")) capture(arm, "optimizer");
  }
  std::optional<record::ModuleRuns> module_runs(std::string_view graph) const {
    const engines::EngineTraits& engine = engines::traits_of(attempt_.axes.text("impl"));
    if (graph != "training" || !engine.captures_modules() || !plan_.trains) return std::nullopt;
    const std::int64_t runs =
        plan_.warmup_steps + (engine.records_first_step ? plan_.forwards_per_step : 0);
    return record::ModuleRuns{.forwards = runs, .backwards = runs};
  }
  /// Those of a pipeline stage: one for each forward pass of a chunk, at as many addresses as are
  /// in use at one time.
  std::optional<std::vector<std::string>> owned_inputs(std::string_view graph) const {
    const std::int64_t stages = attempt_.axes.integer("pp");
    if (revision_ < 18 || graph != "training" || stages == 1 ||
        !engines::traits_of(attempt_.axes.text("impl")).one_graph_a_layer)
      return std::nullopt;
    const std::int64_t chunks = attempt_.axes.integer("vpp"),
                       forwards = chunks * plan_.microbatches,
                       warmup = order::warmup_forwards(
                           {.pp = stages,
                            .rank = rank_ / (world_size_ / stages),
                            .chunks = chunks,
                            .microbatches = plan_.microbatches,
                            .group = attempt_.axes.integer("microbatch_group")});
    std::vector<std::string> addresses;
    for (std::int64_t i = 0; i < forwards; ++i)
      addresses.push_back(concat("0x7f0000000", 200 + i % std::min(warmup + 1, forwards)));
    return addresses;
  }
  void capture(const char* arm, const char* graph) {
    line(record::CaptureLine{
        .arm = arm,
        .graph = graph,
        .status = "ok",
        .code = 0,
        .site = "",
        .message = "",
        .mode = attempt_.axes.text("capture_mode"),
        .ms = 4.0,
        .nodes = 391,
        .census = {{"kernel", 380}, {"memcpy", 6}, {"memset", 5}, {"host", 0}},
        .signature = "5566778899aabbcc",
        .unjoined = std::vector<std::string>{},
        .pool_bytes = captures_[arm] == 0 ? 4194304 : 0,
        .warmups = plan_.warmup_steps,
        .pools = attempt_.axes.text("pool") == "per_graph" ? ++captured_[arm] : 1,
        .generators = 2,
        .generators_wanted = 2,
        .counter_before = forwards(plan_.first_replay),
        .counter_after = forwards(plan_.first_replay),
        .module_runs = module_runs(graph),
        .owned_inputs = owned_inputs(graph)});
    if (revision_ >= 22)
      line(record::HostWorkLine{.arm = arm,
                                .graph = graph,
                                .host_memory = {{"pinned", 4}},
                                .host_functions = {{"/opt/nccl/lib/libnccl.so.2", 1}},
                                .other_threads = {{"pt_autograd_0", 212}},
                                .unordered = {}});
    line(record::StateLine{
        .arm = arm, .what = "capture", .before = "0b1c2d3e00000000", .after = "0b1c2d3e00000000"});
    vote(Phase::capture);
  }
  void replay(const char* arm, std::int64_t step) {
    const bool free_run = runs_free(arm);
    line(record::ReplayLine{.arm = arm,
                            .graph = "training",
                            .step = step,
                            .replays = plan_.replays_until(step),
                            .fallbacks = 0,
                            .recaptures = 0,
                            .out_of_order = 0,
                            .counter_before = forwards(free_run ? 0 : step),
                            .counter_after = forwards(step + 1),
                            .counter_per_replay = forwards(1)});
  }
  void watched_replay(const char* arm, std::int64_t step) {
    address(arm, step, "training");
    if (attempt_.axes.flag("optimizer_graph")) address(arm, step, "optimizer");
    replay(arm, step);
    poison(arm, step);
  }
  void address(const char* arm, std::int64_t step, const char* graph) {
    line(record::AddressLine{
        .arm = arm, .step = step, .graph = graph, .registered = 31, .moved = {}});
  }
  void poison(const char* arm, std::int64_t step) {
    line(record::PoisonLine{.arm = arm,
                            .step = step,
                            .outputs = 14,
                            .compared = 14,
                            .bytes = 65536,
                            .canary_words = 0,
                            .launches = plan_.launches_per_step,
                            .announced = plan_.launches_per_step,
                            .inspected = plan_.launches_per_step,
                            .unregistered = std::vector<std::string>{}});
  }
  void kept(const char* arm, std::int64_t step) {
    const std::string bits = digest(0x3f9a0000, step);
    line(record::HandedOutLine{
        .arm = arm, .step = step, .what = "losses", .digest = bits, .later_digest = bits});
  }
  void rng(std::int64_t step) {
    for (const char* arm : {"lockstep_eager", "lockstep_graph"})
      line(record::RngLine{.arm = arm,
                           .step = step,
                           .generator = "model-parallel",
                           .before = concat("2718:", 64 * step),
                           .after = concat("2718:", 64 * (step + 1)),
                           .mask = digest(0x77aa0000, step)});
  }

  void evaluated() {
    for (std::int64_t i = 0; i < plan_.evaluations; ++i)
      compare("evaluation", "lockstep_eager", "lockstep_graph", i);
    compare("evaluation_repeats", "lockstep_graph", "lockstep_graph", plan_.evaluations);
    const std::int64_t again = revision_ >= 14 ? 2 : 1;  // the first batch again, and at the end
    if (again == 2)
      compare("evaluation_later", "lockstep_eager", "lockstep_graph", plan_.evaluations + 1);
    const bool captured = engines::traits_of(attempt_.axes.text("impl")).captures_evaluation;
    const std::int64_t replays = captured ? plan_.evaluations + again - plan_.warmup_steps : 0;
    if (captured) capture("lockstep_graph", "validation");
    for (std::int64_t i = 0; i < replays; ++i) {
      address("lockstep_graph", plan_.first_replay, "validation");
      poison("lockstep_graph", plan_.first_replay);
    }
    line(record::EvaluatedLine{.arm = "lockstep_graph",
                               .step = plan_.first_replay + 1,
                               .evaluations = plan_.evaluations + again,
                               .captures = captured ? 1 : 0,
                               .replays = replays,
                               .announced = replays});
  }

  void resumed() {
    const bool in_new_process = attempt_.axes.text("resume_in") == "new_process";
    const std::int64_t first = plan_.steps - plan_.first_replay - (in_new_process ? 2 : 1);
    const std::vector<const char*> runs =
        in_new_process ? std::vector{"resumed"} : std::vector{"resumed", "loaded"};
    for (const char* compared : runs)
      for (std::int64_t k = first; k < plan_.steps; ++k)
        compare(compared, "lockstep_graph", compared, k);
    record::ResumedLine resumed{
        .arm = "resumed",
        .step = first,
        .replays = plan_.launches_per_step *
                   (std::ssize(runs) * (plan_.steps - first) - plan_.first_replay)};
    if (in_new_process) resumed.process = 5710 + rank_;
    line(resumed);
  }

  /// The steps of changing lengths of a cache of two with one warm-up, of sequences of 16 tokens:
  /// buckets 4, 8 and 12.
  void buckets() {
    struct Ran {
      std::int64_t longest, length, captured;
      bool replayed;
      std::vector<std::int64_t> resident, evicted;
    };
    const std::vector<Ran> all{{4, 4, 0, false, {}, {}},        {3, 4, 1, true, {4}, {}},
                               {8, 8, 0, false, {4}, {}},       {7, 8, 1, true, {8, 4}, {}},
                               {4, 4, 0, true, {4, 8}, {}},     {12, 12, 0, false, {4, 8}, {}},
                               {11, 12, 1, true, {12, 4}, {8}}, {14, 14, 0, false, {12, 4}, {}},
                               {5, 8, 1, true, {8, 12}, {4}},   {9, 12, 0, true, {12, 8}, {}},
                               {16, 16, 0, false, {12, 8}, {}}};
    const std::int64_t graphs = engines::traits_of(attempt_.axes.text("impl")).captures_modules()
                                    ? plan_.launches_per_step / plan_.microbatches
                                    : 1;
    for (const std::int64_t length : {4, 8, 12})
      line(record::PaddingLine{.step = length / 2 - 2,
                               .length = length,
                               .lengths = {length, 2},
                               .distance = {.tensors = 2,
                                            .max_abs = 1.2e-7,
                                            .max_rel = 2.5e-8,
                                            .bound = 3.1e-3,
                                            .worst = "losses",
                                            .why = "reordered sums"}});
    std::int64_t captures = 0, replays = 0;
    for (std::size_t k = 0; k < all.size(); ++k) {
      const Ran& ran = all[k];
      captures += ran.captured * graphs;
      replays += ran.replayed ? plan_.launches_per_step : 0;
      std::int64_t held = 0;
      for (const std::int64_t length : ran.resident) held += length << 20;
      compare("buckets", "buckets_eager", "buckets_graph", static_cast<std::int64_t>(k));
      line(record::BucketLine{.arm = "buckets_graph",
                              .step = static_cast<std::int64_t>(k),
                              .longest = ran.longest,
                              .length = ran.length,
                              .replayed = ran.replayed,
                              .captures = captures,
                              .replays = replays,
                              .resident = ran.resident,
                              .evicted = ran.evicted,
                              .captured_bytes = ran.captured * (ran.length << 20),
                              .pool_bytes = held});
    }
    compare("buckets_free_run", "buckets_eager", "buckets_graph",
            static_cast<std::int64_t>(all.size()) - 1);
    for (const char* compared : {"buckets", "buckets_free_run"}) {
      line(record::EvictionsLine{
          .arm = "buckets_graph", .run = compared, .step = std::ssize(all) - 1, .in_flight = 0});
      exec_updates("buckets_graph", compared, std::ssize(all) - 1, captures, 2 * graphs);
    }
  }

  /// Every capture updates an executable graph, but for the first `alive` ones.
  void exec_updates(const char* arm, const char* run, std::int64_t step, std::int64_t captures,
                    std::int64_t alive) {
    if (attempt_.axes.text("recapture") != "exec_update") return;
    line(record::ExecUpdatesLine{.arm = arm,
                                 .run = run,
                                 .step = step,
                                 .captures = captures,
                                 .most_alive = alive,
                                 .updates = captures - alive});
  }

  /// The steps of a paged stash. In the two steps ahead of the last one the first rank needs 128
  /// rows and the others 32; the first of them overflows.
  void stash() {
    const std::int64_t first = plan_.warmup_steps, pulled = first + 2;
    for (std::int64_t k = 0; k < first + 5; ++k) {
      const bool most = k == pulled || k == pulled + 1;
      for (const bool graph : {false, true}) {
        const std::int64_t launched = k < first ? 0 : k - first + 1;
        line(record::StashLine{.arm = graph ? "stash_graph" : "stash_eager",
                               .step = k,
                               .pulled = most,
                               .capacity = k <= pulled ? 80 : 128,
                               .needed = !most        ? 60 + k
                                         : rank_ == 0 ? 128
                                                      : 32,
                               .reruns = k == pulled ? 1 : 0,
                               .grown = k < pulled ? 80 : 128,
                               .captures = !graph || k < first ? 0
                                           : k <= pulled       ? 1
                                                               : 2,
                               .replays = graph ? launched : 0,
                               .assigned = 256,
                               .carried = 256,
                               .dropped = 0});
        if (graph && k >= first) exec_updates("stash_graph", "stash", k, k <= pulled ? 1 : 2, 1);
      }
      compare("stash", "stash_eager", "stash_graph", k);
    }
  }

  /// The steps of an inference job, as the plan of its requests has them. Every rollout is the
  /// whole plan.
  void batch(const char* arm, std::int64_t step, bool graph) {
    const auto& plan = job_plan_.at(replica_of(attempt_.axes, rank_));
    const auto& planned = plan.at(static_cast<std::size_t>(step) % plan.size());
    if (graph) launches_[arm] += launches_of(attempt_.axes, planned);
    line(record::BatchLine{.arm = arm,
                           .step = step,
                           .work = work_word(planned.work),
                           .rows = std::ssize(planned.rows),
                           .size = planned.size,
                           .launches = launches_[arm],
                           .captures = graph ? captures_[arm] : 0});
    if (!graph || runs_free(arm) || launches_of(attempt_.axes, planned) == 0) return;
    address(arm, step, "step");
    line(record::PoisonLine{.arm = arm,
                            .step = step,
                            .outputs = 1,
                            .compared = 1,
                            .bytes = 2048,
                            .canary_words = 0,
                            .launches = launches_of(attempt_.axes, planned),
                            .announced = launches_of(attempt_.axes, planned),
                            .inspected = launches_of(attempt_.axes, planned),
                            .unregistered = std::vector<std::string>{}});
  }
  void decoding_eager() {
    for (std::int64_t k = 0; k < plan_.steps; ++k) {
      for (const char* arm : {"eager_a", "eager_b", "padded_eager"}) batch(arm, k, false);
      compare("padding", "eager_a", "padded_eager", k);
    }
    sequences("eager_a");
  }
  void sequences(const char* arm) {
    const requests::Ended ended = ended_requests(attempt_.axes, replica_of(attempt_.axes, rank_));
    line(record::SequencesLine{.arm = arm,
                               .requests = ended.requests,
                               .tokens = ended.tokens,
                               .distance = {.tensors = ended.tokens,
                                            .max_abs = 1.2e-7,
                                            .max_rel = 2.5e-8,
                                            .bound = 3.1e-3,
                                            .worst = "logits.0.3",
                                            .why = "reordered sums"}});
  }
  /// Of both lockstep arms; the graphs are captured ahead of the first one.
  void rollout(std::int64_t round) {
    if (round == 0) decoding_captures("lockstep_graph_rollout");
    const std::int64_t steps = job_settings(attempt_.axes).steps;
    for (std::int64_t k = round * steps; k < (round + 1) * steps; ++k) {
      batch("lockstep_eager_rollout", k, false);
      batch("lockstep_graph_rollout", k, true);
      compare("rollout", "lockstep_eager_rollout", "lockstep_graph_rollout", k);
    }
    if (round + 1 == plan_.rollouts) sequences("lockstep_eager_rollout");
  }
  void decoding_captures(const char* arm) {
    if (graphs_of_job(attempt_.axes) == 0) return;
    const requests::Settings settings = job_settings(attempt_.axes);
    std::vector<std::string> batches;
    if (settings.chunk > 0) batches.push_back(concat("prefill.", settings.chunk));
    for (const std::int64_t size : settings.sizes) batches.push_back(concat("decode.", size));
    std::ranges::reverse(batches);  // from the largest size to the smallest
    for (const std::string& name : batches) {
      if (attempt_.axes.text("inference_scope") == "block") {
        capture(arm, name.c_str());
        ++captures_[arm];
        continue;
      }
      for (std::int64_t layer = 0; layer < plan_.layers; ++layer, ++captures_[arm])
        capture(arm, concat(name, ".layer", layer).c_str());
    }
  }
  void decoding_graphs() {
    decoding_captures("lockstep_graph");
    for (std::int64_t k = 0; k < plan_.steps; ++k) {
      if (k == plan_.steps / 2)
        line(record::ScribbledLine{.arm = "lockstep_graph", .step = k, .bytes = 23 << 20});
      batch("lockstep_eager", k, false);
      batch("lockstep_graph", k, true);
      compare("lockstep", "lockstep_eager", "lockstep_graph", k);
    }
    decoding_captures("graph_b");
    for (std::int64_t k = 0; k < plan_.steps; ++k) batch("graph_b", k, true);
    compare("graph_repeats", "lockstep_graph", "graph_b", plan_.steps - 1);
    vote(Phase::replay);
    decoding_captures("free_graph");
    for (std::int64_t k = 0; k + 1 < plan_.steps; ++k)
      launches_["free_graph"] +=
          launches_of(attempt_.axes, job_plan_.at(replica_of(attempt_.axes, rank_)).at(k));
    batch("free_eager", plan_.steps - 1, false);
    batch("free_graph", plan_.steps - 1, true);
    compare("free_run", "free_eager", "free_graph", plan_.steps - 1);
    vote(Phase::replay);
    vote(Phase::compare);
  }

  void graph_arms() {
    const bool dropout = attempt_.axes.flag("dropout");
    for (std::int64_t k = 0; k <= plan_.last_inputs_step; ++k) {
      if (k == plan_.first_replay) capture("lockstep_graph");
      if (k > 0 && plan_.trains) kept("lockstep_graph", k - 1);
      if (k == plan_.last_inputs_step && plan_.trains && revision_ >= 7)
        line(record::ScribbledLine{.arm = "lockstep_graph", .step = k, .bytes = 23 << 20});
      for (const char* arm : {"lockstep_eager", "lockstep_graph"}) {
        step(arm, k);
        products(arm, k);
      }
      if (dropout) rng(k);
      if (k >= plan_.first_replay) {
        watched_replay("lockstep_graph", k);
        if (plan_.trains)
          line(
              record::OperandsLine{.arm = "lockstep_graph", .step = k, .blocks = 120, .freed = {}});
        hyperparameters("lockstep_graph", k);
        for (const char* arm : {"lockstep_eager", "lockstep_graph"}) ledgers(arm, k);
      }
      compare(k == plan_.last_inputs_step ? "capture_inputs_last" : "lockstep", "lockstep_eager",
              "lockstep_graph", k);
      if (k < plan_.last_inputs_step && attempt_.axes.text("tolerance") != "none")
        compare("eager_again", "eager_a", "lockstep_eager", k);
      if (plan_.rollouts > 0 && k >= plan_.first_replay) rollout(k - plan_.first_replay);
    }
    recomputes("lockstep_eager", plan_.last_inputs_step + 1, false);
    recomputes("lockstep_graph", plan_.first_replay, true);
    if (attempt_.axes.text("schedule") == "train-eval-train") evaluated();
    if (!control_.solo) {
      capture("graph_b");
      for (std::int64_t k = plan_.first_replay; k < plan_.steps; ++k) {
        watched_replay("graph_b", k);
        compare("graph_repeats", "lockstep_graph", "graph_b", k);
      }
    }
    if (attempt_.axes.text("schedule") == "resume") resumed();
    vote(Phase::replay);
    capture("free_graph");
    replay("free_graph", plan_.steps - 1);
    recomputes("free_graph", plan_.first_replay, true);
    delayed_steps("free_graph", plan_.first_replay, plan_.steps - plan_.first_replay, 6.0, 12);
    compare("free_run", plan_.trains ? "eager_a" : "free_eager", "free_graph", plan_.steps - 1);
    vote(Phase::replay);
    if (attempt_.axes.integer("shape_buckets") > 0) {
      buckets();
      vote(Phase::replay);
    }
    if (attempt_.axes.text("dispatch") == "paged_stash") {
      stash();
      vote(Phase::replay);
    }
    vote(Phase::compare);
    if (plan_.trains) {
      if (!control_.solo) solo("solo_eager");
      capture("solo_graph");
      if (plan_.rollouts > 0) decoding_captures("solo_graph_rollout");
      replay("solo_graph", solo_steps());
      solo("solo_graph", "graph_repeats", "lockstep_graph");
      vote(Phase::replay);
      if (attempt_.axes.text("perf_limit") != "none") {
        capture("paired_graph");
        replay("paired_graph", plan_.first_replay + 17);
        paired_blocks();
        vote(Phase::replay);
      }
      if (attempt_.axes.integer("soak_steps") > 0) {
        soak();
        vote(Phase::replay);
      }
    }
  }

  std::int64_t solo_steps() const { return std::max(plan_.first_replay + 9, plan_.steps + 4); }
  void look(const char* arm, const char* when, std::int64_t step, std::int64_t bytes) {
    line(record::MemoryLine{.arm = arm,
                            .step = step,
                            .when = when,
                            .allocated = bytes,
                            .reserved = 2 * bytes,
                            .pool = std::string_view(arm) == "solo_graph" ? bytes : 0,
                            .device = 2 * bytes,
                            .resident = 70000000 + 4096 * (step % 3),
                            .heap = revision_ >= 14
                                        ? std::optional<std::int64_t>(50000000 + 512 * (step % 3))
                                        : std::nullopt});
  }
  /// `repeats`: the arm whose steps it must repeat, from revision 5 on.
  void second_capture(const char* arm, const char* graph) {
    const std::map<std::string, std::int64_t> kinds{{"kernel", 380}, {"memcpy", 11}};
    line(record::SecondCaptureLine{.arm = arm,
                                   .graph = graph,
                                   .step = plan_.capture_step,
                                   .step_again = solo_steps(),
                                   .learning_rate = rate(plan_.capture_step),
                                   .learning_rate_again = rate(solo_steps()),
                                   .nodes = 391,
                                   .nodes_again = 391,
                                   .kinds = kinds,
                                   .kinds_again = kinds,
                                   .edges = 395,
                                   .edges_again = 395,
                                   .arguments = 1730,
                                   .values = 520,
                                   .unclear = 0,
                                   .unread = 0,
                                   .differing = 0,
                                   .ms = 9.5,
                                   .found = {}});
    vote(Phase::capture);
  }
  void solo(const char* arm, const char* compared = "", const char* repeats = "") {
    if (!plan_.trains) return;
    const bool graph = std::string_view(arm) == "solo_graph";
    look(arm, "before", 0, 0);
    look(arm, "built", 0, 1 << 20);
    for (std::int64_t k = 0; k < solo_steps(); ++k) {
      line(record::TimingLine{
          .arm = arm, .step = k, .wall_ms = graph ? 2.0 : 6.0, .launch_ms = graph ? 0.5 : 5.5});
      look(arm, "step", k, k < plan_.first_replay ? 2 << 20 : 3 << 20);
      if (!control_.solo || k >= plan_.steps) continue;
      step(arm, k);
      compare(compared, repeats, arm, k);
    }
    line(record::BusyLine{.arm = arm, .step = solo_steps(), .device_ms = 1.8});
    recomputes(arm, graph ? plan_.first_replay : solo_steps(), graph);
    if (graph && revision_ >= 16) {
      second_capture(arm, "training");
      if (attempt_.axes.flag("optimizer_graph")) second_capture(arm, "optimizer");
      look(arm, "captured_again", 0, 3 << 20);
    }
    look(arm, "dropped", 0, 1 << 20);
    look(arm, "returned", 0, 0);
  }

  void paired_blocks() {
    constexpr std::int64_t kBlocks = 8;
    for (std::int64_t block = 0; block < kBlocks; ++block)
      line(record::PairedBlockLine{.block = block,
                                   .blocks = kBlocks,
                                   .steps = 2,
                                   .launches = 2 * plan_.launches_per_step,
                                   .first = block % 2 == 0 ? "eager" : "graph",
                                   .clock = "wall",
                                   .eager_ms = 6.0 + 0.01 * static_cast<double>(block),
                                   .eager_launch_ms = 5.5,
                                   .graph_ms = 2.0 + 0.01 * static_cast<double>(block),
                                   .graph_launch_ms = 0.5});
  }

  /// Graphs that took all of their memory from a pool: eager steps need it from elsewhere.
  void soak() {
    const soak::Plan plan(attempt_.axes.integer("soak_steps"));
    const auto read = [&](const char* arm, const char* when, std::int64_t step,
                          std::int64_t bytes) {
      look(arm, when, step, bytes);
      Line& written = evidence_.lines.back();
      written.fields["threads"] = 5;
      written.fields["files"] = 24;
      written.fields["regions"] = 910;
    };
    for (const char* arm : {"soak_eager", "soak_graph"}) {
      const bool graph = std::string_view(arm) == "soak_graph";
      // As many graphs in each cycle, one of them of the evaluation if the engine has it.
      const bool evaluates = engines::traits_of(attempt_.axes.text("impl")).captures_evaluation;
      const std::int64_t launches =
          plan_.launches_per_step * (plan.cycle_steps() - plan_.first_replay) + (evaluates ? 2 : 0);
      read(arm, "before", 0, 0);
      for (std::int64_t cycle = 0; cycle < soak::kCycles; ++cycle) {
        for (std::int64_t number = 0; number < soak::kSamples; ++number)
          read(arm, "step", cycle * plan.cycle_steps() + plan.sample(number), 3 << 20);
        const std::int64_t last = plan.last_step(cycle), done = cycle + 1;
        if (graph) compare("soak", "soak_eager", "soak_graph", last);
        line(record::CycleLine{
            .arm = arm,
            .cycle = cycle,
            .step = last,
            .launches = graph ? done * launches : 0,
            .captures = graph ? done * (evaluates ? 2 : 1) : 0,
            .evaluations = done * (plan_.warmup_steps + 2),
            .loads = done,
            .losses = {4.59, 5.23},
            .params = digest(0x0b1c0000, cycle),
            .params_before_load = revision_ >= 17
                                      ? std::optional<std::string>(digest(0x0b1d0000, cycle))
                                      : std::nullopt});
        const std::int64_t graphs = evaluates ? 2 : 1;
        if (graph) exec_updates(arm, "soak", last, done * graphs, graphs);
        read(arm, "returned", last, 1 << 20);
      }
    }
  }

  void layout() {
    std::map<std::string, std::string> digests;
    for (const std::string& kind : symmetric_groups(attempt_.axes))
      digests[kind] = digest(0x99aa0000, kind[0]);
    const std::int64_t stages = attempt_.axes.integer("pp");
    const auto add = [&](const std::string& name, std::int64_t from, std::int64_t to) {
      for (const auto& pair : pairs(attempt_.axes, world_size_, from, to))
        if (pair[0] == rank_ || pair[1] == rank_)
          digests[name] = digest(0x99aa0000, 16 * from + to);
    };
    for (const order::Edge& edge : order::edges(stages, attempt_.axes.integer("vpp")))
      add(concat("pp.", edge.from, ">", edge.to), edge.from, edge.to);
    if (shares_embedding(attempt_.axes)) add("embd", 0, stages - 1);
    if (reduces_amax(attempt_.axes, rank_ / (world_size_ / stages)))
      digests["amax"] = digest(0x99aa0000, 'a');
    if (reduces_over_stages(attempt_.axes)) digests["pp"] = digest(0x99aa0000, 'p');
    std::vector<const char*> arms = {"eager", "lockstep", "graph_b",
                                     "free_run"};  // of collectives, and once of training
    if (control_.solo) {
      arms = {"eager_a", "solo_eager", "reference"};
      if (plan_.graph) arms.insert(arms.end(), {"lockstep", "free_run", "solo_graph"});
      if (plan_.graph && attempt_.axes.text("schedule") == "resume") arms.push_back("resumed");
      if (plan_.graph && attempt_.axes.integer("shape_buckets") > 0) arms.push_back("buckets");
      if (plan_.graph && attempt_.axes.text("dispatch") == "paged_stash") arms.push_back("stash");
      if (plan_.graph && attempt_.axes.text("perf_limit") != "none") arms.push_back("paired");
      if (plan_.graph && attempt_.axes.integer("soak_steps") > 0) arms.push_back("soak");
    } else if (!plan_.graph) {
      arms = {"eager"};
    }
    for (const char* arm : arms)
      line(record::CollectivesLine{
          .arm = arm,
          .count = 42,
          .digest = digests,
          .last = record::CollectiveCall{.sequence = 42, .op = "all_reduce", .group = "tp"}});
    if (!plan_.trains) return;
    for (const char* compared : {"losses", "gradients"})
      line(record::ReferenceLine{.compared = compared,
                                 .distance = {.tensors = 2,
                                              .max_abs = 1.2e-7,
                                              .max_rel = 2.5e-8,
                                              .bound = 3.1e-3,
                                              .worst = "grad:layers.0.mlp.up.weight",
                                              .why = "reordered sums"}});
  }

  void end() {
    if (attempt_.context.device == "sim" && revision_ >= 6)
      line(record::RacesLine{.accesses = 18211, .count = 0, .found = {}});
    if (revision_ >= 15 && parallel_) line(executed());
    int order = 0;
    const bool comm_first = attempt_.axes.text("teardown") == "comm_first";
    using Order = std::array<const char*, 4>;
    for (const char* what : comm_first ? Order{"communicators", "graphs", "buffers", "device"}
                                       : Order{"graphs", "buffers", "communicators", "device"}) {
      record::TeardownLine step{.step = what, .order = ++order, .ms = 1.2, .limit_ms = 30000};
      if (step.step == "graphs" && plan_.trains) step.in_flight = 0;
      line(step);
      if (std::string_view(what) == "buffers") vote(Phase::teardown_graph);
      if (std::string_view(what) == "communicators") vote(Phase::teardown_comm);
    }
    vote(Phase::teardown_process);
    if (revision_ >= 18 && parallel_) line(communicators(/*kept=*/!comm_first));
    if (!plan_.trains) phase(Phase::eager, "free_eager");
    phase(Phase::replay, "free_graph");
    phase(Phase::teardown_process);
    line(record::EndLine{.complete = true,
                         .lines = std::ssize(evidence_.lines),
                         .last_phase = Phase::teardown_process,
                         .t_ms = 1400});
  }

  const Attempt& attempt_;
  const Expected plan_;
  const std::int64_t revision_;
  const ControlArms control_;
  const int rank_, world_size_;
  bool parallel_ = false, collective_ = false, decodes_ = false;
  std::vector<std::vector<requests::Step>> job_plan_;        // of schedules with inference
  std::map<std::string, std::int64_t> launches_, captures_;  // of its arms, so far
  std::map<std::string, std::int64_t> captured_;             // graphs so far, by arm
  record::Evidence evidence_;
};

}  // namespace

Attempt clean_attempt(const matrix::Catalogue& catalogue, const json& axes,
                      const std::string& device, std::int64_t revision) {
  const matrix::Case test_case = matrix::case_from_json(catalogue.axes, axes, "test");
  Attempt attempt;
  attempt.axes = Axes(matrix::effective_values(catalogue.axes, test_case));
  for (std::string& check : catalogue.checks.judged(test_case))
    attempt.asked.insert(std::move(check));
  record::Context& context = attempt.context;
  context.run_id = "20261121-101500-3f2a";
  context.case_id = matrix::case_id(test_case);
  context.batch = "b001";
  context.device = device;
  context.isolation = "batch";
  context.engine = "local";
  context.start = "cold";
  context.world_size = static_cast<int>(matrix::world_size(catalogue.axes, test_case));
  context.axes = matrix::effective_values(catalogue.axes, test_case);
  context.required_checks = catalogue.checks.required(test_case, device);
  context.ended = "finished";
  for (const std::string_view name : record::kPhaseNames)
    context.limits_ms[*record::phase_from(name)] = 10000;
  for (int rank = 0; rank < context.world_size; ++rank) {
    record::RankContext facts;
    facts.rank = rank;
    facts.pid = 4710 + rank;
    facts.case_ended = true;
    facts.phase = record::Phase::teardown_comm;
    facts.silent_ms = 3;
    facts.log.file = concat("batches/b001/rank-", rank, ".log");
    context.ranks.push_back(facts);
  }
  for (int rank = 0; rank < context.world_size; ++rank) {
    RankFiles files;
    files.rank = rank;
    RankScript script(attempt, rank, revision);
    files.evidence = script.write();
    files.log = "graphproof: rank ready\nNCCL version 2.28.9+cuda13.0\n" + script.log();
    attempt.ranks.push_back(std::move(files));
  }
  if (const std::string tool = attempt.axes.text("sanitizer"); tool != "none")
    attempt.sanitizer_log =
        std::string("========= COMPUTE-SANITIZER\n========= ") +
        (tool == "racecheck" ? "RACECHECK SUMMARY: 0 hazards displayed (0 errors, 0 warnings)\n"
                             : "ERROR SUMMARY: 0 errors\n");
  return attempt;
}

}  // namespace graphproof::checks
