#include "suites/case/arm_lines.h"

#include "fixtures/comm/ledger.h"
#include "fixtures/device/resident.h"
#include "fixtures/inspect/tensor_comparison.h"
#include "fixtures/tensors/torch.h"
#include "suites/case/reference.h"

namespace graphproof::suites {
namespace {

void write_distances(const CaseParts& parts, const record::CompareLine& compared,
                     const Snapshot& left, const Snapshot& right) {
  const matrix::Tolerances& tolerances = parts.config.tolerances;
  const ReferenceBound rounding = rounding_bound(parts.config, compared.step);
  record::DistancesLine line{.left = compared.left,
                             .right = compared.right,
                             .compared = compared.compared,
                             .step = compared.step,
                             .tensors = {},
                             .rounding = rounding.relative,
                             .rounding_why = rounding.why};
  const auto rtol = [&](const std::string& tensor) {
    const auto found = tolerances.find(matrix::class_of_tensor(tensor));
    return found == tolerances.end() ? 0 : found->second.rtol;
  };
  for (const fixtures::Distance& one : fixtures::distances(left, right, rtol))
    line.tensors.push_back({.tensor = one.tensor,
                            .elements = one.elements,
                            .differing = one.differing,
                            .incomparable = one.incomparable,
                            .element = one.element,
                            .left = one.left,
                            .right = one.right,
                            .max_abs = one.max_abs,
                            .largest = one.largest,
                            .beyond_rtol = one.beyond_rtol,
                            .resolution = one.resolution});
  parts.scope.write(line);
}

}  // namespace

void run_sections(const CaseParts& parts, const std::function<void()>& eager,
                  const std::function<void()>& lockstep, const std::function<void()>& free) {
  CaseScope& scope = parts.scope;
  scope.enter(Phase::build, "", 0);
  scope.section(Phase::build, [&] { parts.device.synchronize(); });
  scope.section(Phase::eager, eager);
  if (!parts.config.graphs()) return;
  scope.section(Phase::replay, lockstep);
  scope.section(Phase::replay, free);
  scope.section(Phase::compare, [] {});
}

record::TensorMismatch mismatch_of(const fixtures::Mismatch& mismatch) {
  return {.tensor = mismatch.tensor,
          .element = mismatch.element,
          .left = mismatch.left,
          .right = mismatch.right,
          .max_abs = mismatch.max_abs,
          .max_rel = mismatch.max_rel,
          .max_ulp = mismatch.max_ulp,
          .elements = mismatch.elements,
          .differing = mismatch.differing};
}

record::MemoryLine memory_line(const CaseParts& parts, const std::string& arm, const char* when,
                               std::int64_t step) {
  const capture::MemoryUse use = parts.device.memory();
  return {.arm = arm,
          .step = step,
          .when = when,
          .allocated = use.allocated,
          .reserved = use.reserved,
          .pool = use.pool,
          .device = use.device,
          .resident = fixtures::resident_bytes(),
          .heap = fixtures::heap_bytes(),
          .threads = std::nullopt,
          .files = std::nullopt,
          .regions = std::nullopt};
}

void write_exec_updates(const CaseParts& parts, const std::string& arm, const char* run,
                        std::int64_t step, const WatchedDevice& device) {
  if (!parts.config.exec_update) return;
  const GraphCounts& counts = device.counts();
  parts.scope.write(record::ExecUpdatesLine{.arm = arm,
                                            .run = run,
                                            .step = step,
                                            .captures = counts.captures_ended,
                                            .most_alive = counts.most_alive,
                                            .updates = counts.updates,
                                            .refused = counts.refused,
                                            .stale_launches = counts.stale_launches,
                                            .given_up_in_flight = counts.given_up_in_flight,
                                            .kept_clusters = counts.kept_clusters});
}

bool write_comparison(const CaseParts& parts, const std::string& left, const std::string& right,
                      const std::string& name, std::int64_t step, const std::string& input,
                      const Snapshot& of_left, const Snapshot& of_right) {
  const fixtures::Comparison compared = fixtures::compare(of_left, of_right);
  record::CompareLine line{.left = left,
                           .right = right,
                           .compared = name,
                           .step = step,
                           .input = input,
                           .tensors = compared.tensors,
                           .bytes = compared.bytes,
                           .equal = compared.equal,
                           .mismatch = std::nullopt};
  if (compared.mismatch) line.mismatch = mismatch_of(*compared.mismatch);
  if (!compared.equal) parts.scope.doubt(right + " differs from " + left);
  parts.scope.write(line);
  if (!compared.equal && !parts.config.tolerances.empty())
    write_distances(parts, line, of_left, of_right);
  return compared.equal;
}

CountedCollectives::CountedCollectives(const CaseParts& parts, std::string arm)
    : parts_(parts), arm_(std::move(arm)) {
  if (parts_.groups) parts_.groups->ledger().reset();
}

void CountedCollectives::write() {
  const workloads::Layout& layout = parts_.config.layout;
  if (!parts_.groups || layout.tp * layout.replicas() * layout.pp == 1) return;
  const auto totals = parts_.groups->ledger().totals();
  record::CollectivesLine line{
      .arm = arm_, .count = totals.count, .digest = totals.digest, .last = std::nullopt};
  if (totals.last)
    line.last = record::CollectiveCall{
        .sequence = totals.last->sequence, .op = totals.last->op, .group = totals.last->group};
  parts_.scope.write(line);
}

}  // namespace graphproof::suites
