#include "suites/rank/case_teardown.h"

#include <cstdlib>
#include <functional>

#include "fixtures/process/teardown.h"
#include "fixtures/tensors/torch.h"
#include "suites/arms/solo.h"
#include "suites/rank/batch_run.h"

namespace graphproof::suites {
namespace {

using std::chrono::milliseconds;

// The launcher checks all heartbeats a few times a second and takes stack traces before it ends a
// case.
constexpr milliseconds kWatcherGrace{30'000};

record::TeardownLine line_of(const fixtures::TeardownLine& line) {
  return {.step = line.step,
          .order = line.order,
          .ms = line.ms,
          .limit_ms = line.limit_ms,
          .in_flight = std::nullopt};
}

class CaseTeardown {
 public:
  CaseTeardown(const CaseParts& parts, RankProcess& process, CaseState& state, const CaseEnd& end)
      : parts_(parts),
        process_(process),
        state_(state),
        end_(end),
        teardown_(
            end.comm_first ? fixtures::kCommFirst : fixtures::kGraphFirst,
            {.overrun =
                 [this](const fixtures::TeardownLine& line) { parts_.scope.write(line_of(line)); },
             .grace = kWatcherGrace,
             .give_up = [] { std::_Exit(kExitOverrun); }}) {}

  void run() {
    if (end_.comm_first) {
      communicators();
      graphs_and_buffers();
    } else {
      graphs_and_buffers();
      communicators();
    }
    parts_.scope.section(Phase::teardown_process, [&] {
      step("device", Phase::teardown_process, [&] { parts_.device.synchronize(); });
    });
  }

 private:
  void step(std::string_view name, Phase phase, const std::function<void()>& action) {
    parts_.scope.enter(phase, "", 0);
    record::TeardownLine line = line_of(teardown_.run(name, process_.limit(phase), action));
    if (name == "graphs") line.in_flight = in_flight_;
    parts_.scope.write(line);
  }

  void graphs_and_buffers() {
    parts_.scope.section(Phase::teardown_graph, [&] {
      step("graphs", Phase::teardown_graph, [&] {
        for (const auto& arm : state_.kept) in_flight_ += arm->drop_graphs();
        if (state_.collective) state_.collective->drop_graphs();
        if (state_.decoding) state_.decoding->drop_graphs();
      });
      step("buffers", Phase::teardown_graph, [&] {
        state_.kept.clear();
        if (state_.collective) state_.collective->drop_buffers();
        if (state_.decoding) state_.decoding->drop_buffers();
        state_.inputs.clear();
        parts_.device.synchronize();
      });
    });
  }

  void communicators() {
    parts_.scope.section(Phase::teardown_comm, [&] {
      step("communicators", Phase::teardown_comm, [&] {
        if (end_.last || end_.comm_first) {
          // Longer than the limit of the phase, so that a communicator whose destruction never
          // returns is reported as a hang by the launcher and not as an error of this call.
          const milliseconds limit = process_.limit(Phase::teardown_comm) + kWatcherGrace;
          end_.abort ? process_.groups().abort(limit) : process_.groups().destroy(limit);
        } else {
          // The next case uses them again; only this case's bindings are removed.
          flush_communicators(parts_);
        }
      });
    });
  }

  const CaseParts& parts_;
  RankProcess& process_;
  CaseState& state_;
  const CaseEnd end_;
  fixtures::Teardown teardown_;
  std::int64_t in_flight_ = 0;  // graphs that were destroyed during a replay
};

}  // namespace

void tear_down(const CaseParts& parts, RankProcess& process, CaseState& state, const CaseEnd& end) {
  CaseTeardown(parts, process, state, end).run();
}

}  // namespace graphproof::suites
