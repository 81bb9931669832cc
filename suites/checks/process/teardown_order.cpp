// D29: graphs are destroyed before the communicators that they captured; in the other order the
// teardown hangs.
#include <algorithm>
#include <array>

#include "suites/checks/attempt/concat.h"
#include "suites/checks/attempt/judgement.h"

namespace graphproof::checks::d29 {
namespace {

using record::TeardownLine;

using Order = std::array<std::string_view, 4>;
constexpr Order kGraphFirst = {"graphs", "buffers", "communicators", "device"};
constexpr Order kCommFirst = {"communicators", "graphs", "buffers", "device"};

std::string order_text(const Order& order) {
  std::string text;
  for (const std::string_view step : order) text += concat(text.empty() ? "" : ", ", step);
  return text;
}

}  // namespace

/// Every rank did all teardown steps in the right order, each within its limit.
record::CheckResult teardown_order(Judgement& judgement, const Attempt& attempt) {
  const Order& order_wanted =
      attempt.axes.text("teardown") == "comm_first" ? kCommFirst : kGraphFirst;
  for (const RankFiles& files : attempt.ranks) {
    const auto steps = judgement.lines<TeardownLine>(files);
    if (steps.empty()) judgement.absent<TeardownLine>(files, "");
    for (const std::string_view wanted : order_wanted)
      if (std::ranges::find(steps, wanted, &TeardownLine::step) == steps.end())
        judgement.absent<TeardownLine>(files, concat("of the ", wanted));
    std::ptrdiff_t last_place = -1;
    std::int64_t last_order = 0;
    std::string last_step = "nothing";
    for (const auto& [step, order, ms, limit_ms, in_flight] : steps) {
      const std::ptrdiff_t place = std::ranges::find(order_wanted, step) - order_wanted.begin();
      if (place == std::ssize(order_wanted) || place <= last_place || order <= last_order) {
        judgement.defect(
            {.rank = files.rank,
             .step = std::nullopt,
             .what = concat("rank ", files.rank, " tore down `", step, "` after ", last_step),
             .got = concat("`", step, "` as number ", order),
             .want = concat(order_text(order_wanted), ", in this order"),
             .why = "destroying a communicator that a graph still refers to hangs"});
      } else if (ms < 0 || ms > static_cast<double>(limit_ms)) {
        judgement.defect({.rank = files.rank,
                          .step = std::nullopt,
                          .what = concat("the teardown of ", step, " on rank ", files.rank,
                                         " took too long or was not timed"),
                          .got = concat(shown(ms), " ms"),
                          .want = concat(limit_ms, " ms at most"),
                          .why = "a slow teardown may become a hang"});
      } else {
        judgement.confirm(files.rank);
      }
      last_place = place;
      last_order = order;
      last_step = concat("`", step, "`");
    }
  }
  return judgement.result(concat("in order and in time on ", attempt.ranks.size(), " ranks"),
                          order_text(order_wanted));
}

}  // namespace graphproof::checks::d29
