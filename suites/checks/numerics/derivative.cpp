// D92: the gradients are the derivative of the loss, with the losses that routers add. Arms and
// layouts are compared with each other, and all of them share one backward, so no other check finds
// a backward that is wrong.
#include <algorithm>
#include <cmath>
#include <string_view>

#include "suites/checks/attempt/concat.h"
#include "suites/checks/attempt/judgement.h"

namespace graphproof::checks::d92 {
namespace {

using record::DerivativeLine, record::RouterLossLine;

// A line says something of its gradients if its bound is at most this share of the change that it
// measures, or computes. Some gradients are zero by definition, so not all lines have to.
constexpr double kResolved = 0.25;
constexpr double kShareResolved = 0.5;

template <class Line>
bool within(const Line& line) {
  return std::abs(line.measured - line.computed) <= line.bound;
}
template <class Line>
bool resolved(const Line& line) {
  return line.bound <= kResolved * std::max(std::abs(line.measured), std::abs(line.computed));
}
const char* const kBounds = ", which curvature of the loss and rounding explain";

/// The gradients that the loss of axis `name` adds are its derivative. One rank says so.
void judge_router_loss(Judgement& judgement, const Attempt& attempt, std::string_view name) {
  bool told = false;
  for (const RankFiles& files : attempt.ranks)
    for (const RouterLossLine& line : judgement.lines<RouterLossLine>(files)) {
      if (line.loss != name) continue;
      told |= resolved(line);
      if (within(line)) continue;
      judgement.defect(
          {.rank = files.rank,
           .step = std::nullopt,
           .what = concat("the gradients that ", name, " adds are not its derivative"),
           .got = concat("by the gradients of ", line.tensors,
                         " parameters a change of all of them changes this loss by ", line.computed,
                         ", measured by ", line.measured, " of ", line.value),
           .want = concat("both within ", line.bound, kBounds),
           .why =
               "a step returns the loss of its tokens alone, so a job without this loss, or with "
               "another one, shows only in what it learns"});
    }
  // Tokens that use all experts load all of them equally: the balancing loss is constant.
  const bool constant =
      name == "router_aux_loss" && attempt.axes.integer("topk") == attempt.axes.integer("experts");
  if (told || constant) return;
  for (const RankFiles& files : attempt.ranks)
    judgement.absent<RouterLossLine>(
        files, concat("of ", name, " with a bound that is small against its change"));
}

}  // namespace

/// For every change of parameters, the change of the loss that the gradients predict is within its
/// bound of the one that forwards measure. Either a bound for all parameters together is small
/// against what is measured, or at least half of those for groups of them. The same holds for every
/// loss that routers add to the gradients alone.
record::CheckResult derivative(Judgement& judgement, const Attempt& attempt) {
  std::int64_t groups = 0, told = 0, together = 0;
  for (const RankFiles& files : attempt.ranks) {
    const auto lines = judgement.lines<DerivativeLine>(files);
    if (lines.empty()) judgement.absent<DerivativeLine>(files, "of its share of the parameters");
    for (const DerivativeLine& line : lines) {
      if (line.moved == "all") {
        together += resolved(line) ? 1 : 0;
      } else {
        ++groups;
        told += resolved(line) ? 1 : 0;
      }
      if (within(line)) {
        judgement.confirm(files.rank);
        continue;
      }
      judgement.defect(
          {.rank = files.rank,
           .step = std::nullopt,
           .what = concat("the gradient of `", line.moved, "` is not the derivative of the loss"),
           .got = concat("by the gradient a change of it changes the loss by ", line.computed,
                         ", measured by ", line.measured),
           .want = concat("both within ", line.bound, kBounds),
           .why = "all arms and layouts have the same backward, so they agree, and train another "
                  "model than the one that was asked for"});
    }
  }
  if (together == 0 && static_cast<double>(told) < kShareResolved * static_cast<double>(groups))
    for (const RankFiles& files : attempt.ranks)
      judgement.absent<DerivativeLine>(
          files, concat("with a bound that is small against the change of the loss, in half of ",
                        groups, " groups of parameters: ", told));
  if (evidence_revision(attempt) >= RouterLossLine::kSince)
    for (const std::string_view loss : {"router_aux_loss", "router_z_loss"})
      if (attempt.axes.flag(loss)) judge_router_loss(judgement, attempt, loss);
  return judgement.result(concat("the gradients of all parameters in ", together,
                                 " directions, and of ", groups, " groups of them alone"),
                          "the derivative of the loss");
}

}  // namespace graphproof::checks::d92
