#include "launcher/batch/batch_end.h"

#include <signal.h>

#include <string>

namespace graphproof::launcher {
namespace {

/// A shell or mpirun reports the end of a process by a signal as 128 and the signal.
record::Exit from_starter_exit(const Exit& exit) {
  if (exit.signalled) return {"signal", exit.value};
  return exit.value > 128 ? record::Exit{"signal", exit.value - 128}
                          : record::Exit{"exited", exit.value};
}

}  // namespace

std::optional<Culprit> culprit(const HangDetector& ranks, const StarterReport& report,
                               const std::optional<Exit>& starter) {
  if (report.rank && report.exit && *report.rank < ranks.world_size())
    return Culprit{*report.rank, *report.exit};
  const std::optional<int> dead = ranks.first_dead();
  // mpirun ends the batch for every other end of a rank. It went on, so the rank left without its
  // last heartbeat and with status 0.
  if (!starter) return dead ? std::optional(Culprit{*dead, {"exited", 0}}) : std::nullopt;
  if (*starter == Exit{}) return std::nullopt;
  // mpirun now and then does not print the rank, but it always has the exit code. The first rank
  // that was gone is the likeliest.
  int first = 0;
  for (int rank = 1; rank < ranks.world_size(); ++rank)
    if (ranks.process(rank).gone && ranks.process(rank).gone_ms < ranks.process(first).gone_ms)
      first = rank;
  return Culprit{dead.value_or(first), from_starter_exit(*starter)};
}

record::Exit exit_of(int rank, const HangDetector& ranks, const std::optional<Culprit>& culprit,
                     const std::optional<Exit>& starter, int signal) {
  if (culprit && culprit->rank == rank) return culprit->exit;
  if (ranks.process(rank).bye || (starter && *starter == Exit{})) return {"exited", 0};
  // mpirun ends the other ranks with SIGTERM first. The launcher knows what it sent itself.
  return {"killed", signal != 0 ? signal : SIGTERM};
}

std::optional<record::Infra> ended_from_outside(const std::optional<Culprit>& culprit,
                                                const std::optional<Exit>& starter) {
  if (starter && starter->signalled)
    return record::Infra{
        starter->value == SIGKILL || starter->value == SIGTERM ? "preempted" : "launch",
        "the starter of its ranks ended by signal " + std::to_string(starter->value) +
            ", which the launcher did not send"};
  // No case sends SIGTERM. The end of an allocation sends it to every process of it, and a rank may
  // be gone before the starter and the agent have theirs.
  if (culprit && culprit->exit == record::Exit{"signal", SIGTERM})
    return record::Infra{"preempted", "rank " + std::to_string(culprit->rank) +
                                          " was ended by SIGTERM, which the launcher did not send"};
  return std::nullopt;
}

}  // namespace graphproof::launcher
