// D80: what several ranks hold in common is equal on them after every eager step: parts of the
// model, and the optimizer's state. Both arms of a lockstep share a rank that drifts, and the
// layout reference looks at the first steps alone. D53.replicas compares all parameters of ranks
// that have the same ones; here each part is compared with all ranks that have this part, such as
// norms over tensor parallel ranks and the tied embedding over stages.
#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "suites/checks/attempt/concat.h"
#include "suites/checks/attempt/judgement.h"

namespace graphproof::checks::d80 {
namespace {

using record::HeldLine;

/// What a `held` line is about.
struct Held {
  const char *what, *part, *words;
};
constexpr Held kHeld[] = {
    {"parameters", "whole", "the parameters that every rank of a stage holds whole"},
    {"parameters", "split", "the parameters that are split over tensor parallel ranks"},
    {"parameters", "experts", "the parameters of experts"},
    {"parameters", "tied", "the embedding that the first and the last stage share"},
    {"state", "whole", "the optimizer's state of what every rank of a stage holds whole"},
    {"state", "split", "the optimizer's state of what is split over tensor parallel ranks"},
    {"state", "experts", "the optimizer's state of experts"},
    {"state", "tied", "the optimizer's state of the shared embedding"},
    {"state", "routers", "the corrections of the routers' scores"},
    {"state", "model", "the optimizer's step number, loss scale and gradient norm"},
};

/// Groups of ranks that hold the same of `held`, in the order of process_groups.h. With a
/// distributed optimizer the state of a parameter is of the elements that a rank owns, and with
/// overlap_param_gather a rank has the new values of these alone.
std::vector<std::vector<int>> holders(const Axes& axes, int world_size, const Held& held) {
  const std::string_view part = held.part;
  const std::int64_t stage_ranks = world_size / axes.integer("pp"), tp = axes.integer("tp");
  const std::int64_t expert_parts = axes.integer("ep") * axes.integer("etp");
  const bool of_parameters = part != "routers" && part != "model";
  const bool owned = of_parameters && axes.flag("distributed_optimizer") &&
                     (std::string_view(held.what) == "state" || axes.flag("overlap_param_gather"));
  std::map<std::vector<std::int64_t>, std::vector<int>> by_holder;
  for (int rank = 0; rank < world_size; ++rank) {
    const std::int64_t place = rank % stage_ranks;
    // Two stages own other elements of the embedding that they share.
    const bool over_stages = part == "model" || (part == "tied" && !owned);
    const std::int64_t stage = over_stages ? 0 : rank / stage_ranks;
    const std::int64_t parts = part == "experts" ? expert_parts : tp;
    const bool cut = part == "split" || part == "tied" || part == "experts";
    by_holder[{stage, cut ? place % parts : 0, owned ? place / parts : 0}].push_back(rank);
  }
  std::vector<std::vector<int>> groups;
  for (auto& [holder, ranks] : by_holder) groups.push_back(std::move(ranks));
  return groups;
}

/// Whether the ranks that may have `held` have it in every case with these axes. With a distributed
/// optimizer a rank may own no element of a part.
bool always_there(const Axes& axes, const Held& held) {
  const std::string_view part = held.part;
  if (part == "model")
    return axes.text("optimizer") == "adam" || axes.text("precision") == "fp16" ||
           axes.flag("clip_grad");
  if (part == "routers") return axes.flag("router_score_correction");
  if (std::string_view(held.what) == "state" &&
      (axes.flag("distributed_optimizer") ||
       (axes.text("optimizer") == "sgd" && axes.text("precision") == "fp32")))
    return false;
  if (part == "split") return axes.integer("tp") > 1;
  if (part == "experts") return axes.integer("experts") > 0;
  if (part == "tied") return shares_embedding(axes);
  return true;
}

class Comparison {
 public:
  Comparison(Judgement& judgement, const Attempt& attempt)
      : judgement_(judgement), attempt_(attempt) {}

  std::size_t compared() const { return compared_; }

  void judge(const Held& held, const std::vector<int>& ranks, std::int64_t step) {
    std::vector<const HeldLine*> lines;
    const HeldLine* first = nullptr;
    for (const int rank : ranks) {
      lines.push_back(of(held, rank, step));
      if (!first) first = lines.back();
    }
    // The first and the last stage have the shared embedding, and no other.
    const bool some_only = std::string_view(held.part) == "tied";
    if (!first && (some_only || !always_there(attempt_.axes, held))) return;
    for (std::size_t i = 0; i < ranks.size(); ++i) {
      const int rank = ranks[i];
      const RankFiles& files = attempt_.ranks[static_cast<std::size_t>(rank)];
      if (!lines[i] && some_only && !at_an_end(rank)) continue;
      concerned_.insert(rank);
      if (!lines[i]) {
        judgement_.absent<HeldLine>(files, concat("of ", held.words), step);
        continue;
      }
      ++compared_;
      if (lines[i]->digest == first->digest && lines[i]->tensors == first->tensors) {
        judgement_.confirm(rank);
        continue;
      }
      judgement_.defect({.rank = rank,
                         .step = step,
                         .what = concat(held.words, " of rank ", rank, " are not those of rank ",
                                        ranks[index_of(lines, first)], " after step ", step),
                         .got = concat("digest ", lines[i]->digest),
                         .want = concat(first->digest, ", because both hold the same"),
                         .why = "copies that differ are of different models, and no later step "
                                "makes them equal again"});
    }
  }

  /// A rank of a middle stage may hold nothing in common with another. Then its own lines show
  /// that.
  void judge_others() {
    for (const RankFiles& files : attempt_.ranks) {
      if (concerned_.contains(files.rank)) continue;
      if (judgement_.find<HeldLine>(files, "eager_a").empty())
        judgement_.absent<HeldLine>(files, "of any part");
      else
        judgement_.confirm(files.rank);
    }
  }

 private:
  const HeldLine* of(const Held& held, int rank, std::int64_t step) {
    const RankFiles& files = attempt_.ranks[static_cast<std::size_t>(rank)];
    for (const HeldLine* line : judgement_.find<HeldLine>(files, "eager_a", step))
      if (line->what == held.what && line->part == held.part) return line;
    return nullptr;
  }
  bool at_an_end(int rank) const {
    const std::int64_t pp = attempt_.axes.integer("pp"),
                       stage = rank / (attempt_.context.world_size / pp);
    return stage == 0 || stage == pp - 1;
  }
  static std::size_t index_of(const std::vector<const HeldLine*>& lines, const HeldLine* line) {
    return static_cast<std::size_t>(std::ranges::find(lines, line) - lines.begin());
  }

  Judgement& judgement_;
  const Attempt& attempt_;
  std::size_t compared_ = 0;
  std::set<int> concerned_;  // ranks of which something was compared, or is missing
};

}  // namespace

/// After every step of eager_a, all ranks that hold the same part of the model have the same bytes
/// of it and of the optimizer's state of it. Not applicable if no two ranks hold anything in
/// common.
record::CheckResult copies_agree(Judgement& judgement, const Attempt& attempt) {
  const std::int64_t steps = judgement.expected().steps;
  Comparison comparison(judgement, attempt);
  for (const Held& held : kHeld)
    for (const std::vector<int>& ranks : holders(attempt.axes, attempt.context.world_size, held)) {
      if (ranks.size() == 1) continue;
      for (std::int64_t step = 0; step < steps; ++step) comparison.judge(held, ranks, step);
    }
  comparison.judge_others();
  return judgement.result(concat("the same bytes in ", comparison.compared(), " parts of ",
                                 attempt.ranks.size(), " ranks in ", steps, " steps"),
                          "equal bytes");
}

}  // namespace graphproof::checks::d80
