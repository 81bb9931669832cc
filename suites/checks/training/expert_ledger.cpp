// D40: every assignment of a token to an expert was carried there or counted as dropped, as eager
// did it.
#include <numeric>

#include "suites/checks/attempt/concat.h"
#include "suites/checks/attempt/detectors.h"
#include "suites/checks/attempt/judgement.h"

namespace graphproof::checks {
namespace {

using Counts = std::vector<std::int64_t>;

/// Of one step: [layers * experts] assigned and carried, [layers] dropped and overflowed, and how
/// many assignments the router makes for each layer.
struct Ledger {
  Counts assigned, carried, dropped, overflowed;
  std::int64_t assignments = 0;

  std::size_t experts() const { return assigned.size() / dropped.size(); }
  std::int64_t of_layer(const Counts& counts, std::size_t layer) const {
    const auto begin = counts.begin() + static_cast<std::ptrdiff_t>(layer * experts());
    return std::accumulate(begin, begin + static_cast<std::ptrdiff_t>(experts()), std::int64_t{0});
  }
  bool operator==(const Ledger&) const = default;
};

std::optional<Ledger> ledger_of(Judgement& judgement, const RankFiles& files, std::string_view arm,
                                std::int64_t step) {
  const auto lines = files.find("experts", arm, step);
  if (lines.empty()) {
    judgement.absent(files, concat("`experts` line of arm ", arm), step);
    return std::nullopt;
  }
  const Line& line = *lines.front();
  const auto assigned = integers(line, "assigned"), carried = integers(line, "carried"),
             dropped = integers(line, "dropped"), overflowed = integers(line, "overflowed");
  const std::int64_t assignments = integer(line, "assignments").value_or(0);
  const auto layers = static_cast<std::size_t>(judgement.expected().expert_layers);
  if (assigned && carried && dropped && overflowed && assignments > 0 && !dropped->empty() &&
      (layers == 0 || dropped->size() == layers) && overflowed->size() == dropped->size() &&
      !assigned->empty() && assigned->size() % dropped->size() == 0 &&
      carried->size() == assigned->size())
    return Ledger{*assigned, *carried, *dropped, *overflowed, assignments};
  judgement.defect(
      {.rank = files.rank,
       .step = step,
       .what = concat("the experts' ledger of arm ", arm, " is incomplete at step ", step),
       .got = line.fields.dump(),
       .want = "counts for each layer and expert",
       .why = "tokens that nobody counts may be lost"});
  return std::nullopt;
}

/// The sums of one arm's ledger, layer by layer.
void judge_sums(Judgement& judgement, const RankFiles& files, std::string_view arm,
                std::int64_t step, const Ledger& ledger) {
  const auto found = [&](std::size_t layer, std::string what, std::string got, std::string want,
                         std::string why) {
    judgement.defect(
        {.rank = files.rank,
         .step = step,
         .what = concat("layer ", layer, " of arm ", arm, " ", what, " at step ", step),
         .got = std::move(got),
         .want = std::move(want),
         .why = std::move(why)});
  };
  for (std::size_t layer = 0; layer < ledger.dropped.size(); ++layer) {
    const std::int64_t assigned = ledger.of_layer(ledger.assigned, layer),
                       carried = ledger.of_layer(ledger.carried, layer);
    const std::int64_t dropped = ledger.dropped[layer], overflowed = ledger.overflowed[layer];
    if (assigned != ledger.assignments)
      return found(layer, "assigned other than its tokens", concat(assigned, " assignments"),
                   concat(ledger.assignments), "every token has its number of experts");
    if (carried + dropped != assigned)
      return found(
          layer, "lost tokens without counting them",
          concat(carried, " carried and ", dropped, " dropped of ", assigned, " assignments"),
          concat(assigned - carried, " dropped"),
          "tokens over capacity that nobody counts as dropped leave the training without a trace");
    if ((dropped > 0) != (overflowed > 0))
      return found(layer, "raised the wrong overflow flag",
                   concat(overflowed, " with ", dropped, " dropped"),
                   dropped > 0 ? "1 or more" : "0",
                   "who runs the job learns of dropped tokens from the flag");
  }
}

}  // namespace

record::CheckResult expert_ledger(const Attempt& attempt) {
  Judgement judgement("D40.expert_ledger", attempt);
  if (judgement.for_training_cases() && attempt.axes.integer("experts") == 0)
    judgement.not_applicable("the model has no experts");
  if (judgement.settled()) return judgement.result("", "");
  const Expected& expected = judgement.expected();
  const std::string_view arm = expected.graph ? "lockstep_graph" : "eager_a";
  const std::int64_t first = expected.graph ? expected.first_replay : 0;
  const std::int64_t last = expected.graph ? expected.last_inputs_step : expected.steps - 1;
  for (const RankFiles& files : attempt.ranks) {
    bool over_capacity = false;
    for (std::int64_t step = first; step <= last; ++step) {
      const auto ledger = ledger_of(judgement, files, arm, step);
      if (!ledger) continue;
      judge_sums(judgement, files, arm, step, *ledger);
      for (const std::int64_t dropped : ledger->dropped) over_capacity |= dropped > 0;
      if (expected.graph) {
        const auto eager = ledger_of(judgement, files, "lockstep_eager", step);
        if (!eager) continue;
        if (!(*eager == *ledger))
          judgement.defect(
              {.rank = files.rank,
               .step = step,
               .what = concat("the replay of step ", step, " routed other tokens than eager"),
               .got = concat("carried ", nlohmann::json(ledger->carried).dump(), ", dropped ",
                             nlohmann::json(ledger->dropped).dump()),
               .want = concat("carried ", nlohmann::json(eager->carried).dump(), ", dropped ",
                              nlohmann::json(eager->dropped).dump()),
               .why = "a replay that routes by the captured tokens trains other experts"});
      }
      judgement.saw(files.rank);
    }
    if (!over_capacity && attempt.axes.text("dispatch") != "dropless")
      judgement.unexercised(concat("on rank ", files.rank,
                                   " no token was over capacity, so a silent drop would not show"));
  }
  return judgement.result(concat("every assignment carried or counted in ", last - first + 1,
                                 " steps on ", attempt.ranks.size(), " ranks"),
                          "as many carried and dropped as assigned, as eager");
}

}  // namespace graphproof::checks
