// The checks, one function each: from the evidence of an attempt to a result. Each file is one detector family; the
// numbers are those of the detector table in docs and matrix/checks. A case that a rank refused is not_applicable for
// all of them but D21, D22 and D26, which watch exactly that. `replayed steps` are warmup_steps .. steps of
// the lockstep arm, the last of which has the capture inputs again; `watched replays` are these and those of the second
// graph run.
//
// Where evidence is missing: of a rank that finished it is a failure, because the axes say that it must exist; of a
// rank that died, met an error or was voted out it leaves the check unexercised, since D19, D21, D22 and D26 fail for
// just that. No check passes unless every rank showed it something.
#pragma once

#include "suites/checks/attempt.h"

namespace graphproof::checks {

/// D01. Wants a `compare` line of every replayed step below `steps`, of more than zero tensors and bytes, all equal; at
/// least one of fresh inputs; finite losses in both arms, because NaN equals nothing; equal digests where both arms
/// wrote some.
record::CheckResult lockstep(const Attempt& attempt);
/// D01. Wants the comparison of step `steps`, whose inputs are those of the capture: what only the capture values hid.
record::CheckResult capture_inputs_last(const Attempt& attempt);
/// D01. Wants the comparison of the free-running arms at their last step: lockstep hides races between replays.
record::CheckResult free_run(const Attempt& attempt);

/// D02. Wants every step of both eager arms, finite, with equal digests, and their comparison. An error in phase eager
/// fails it: no graph can then be judged.
record::CheckResult eager_repeats(const Attempt& attempt);
/// D02. Wants the comparison of the second graph run at its last step.
record::CheckResult graph_repeats(const Attempt& attempt);

/// D03. Wants a `poison` line of every watched replay: no compared output left unpoisoned, no canary left after it.
/// Kills M49, where the comparison is equal because it reads another buffer.
record::CheckResult outputs_written(const Attempt& attempt);

/// D04. Wants the felt learning rate of every step (eager_a in a case without graphs, otherwise every replayed step)
/// within its bound of the host's. A bound too wide to tell the rate from that of the capture, in all steps, is blind
/// and leaves the check unexercised. Kills M23.
record::CheckResult learning_rate(const Attempt& attempt);

/// D07. Wants an `address` line of every watched replay with the same number of registered tensors, none moved. Kills
/// M26.
record::CheckResult static_addresses(const Attempt& attempt);

/// D08. Wants, for every replayed step and generator, the eager mask in the graph arm, and another one in the next
/// step. Kills M32.
record::CheckResult masks(const Attempt& attempt);
/// D08. Wants, for every replayed step, the states before and after equal to eager's, and at least one generator moved.
record::CheckResult generator(const Attempt& attempt);

/// D15. Wants a capture in every graph arm with the same nodes in the same order, and as many nodes as the census
/// counts.
record::CheckResult census(const Attempt& attempt);

/// D18. Wants the layers' device counters unmoved by the capture, and moved by every replay of every graph arm as often
/// as the axes say (microbatches). Kills M15.
record::CheckResult coverage(const Attempt& attempt);

/// D19. Wants a successful capture in every graph arm and no error in phase capture. Kills M01.
record::CheckResult capture_status(const Attempt& attempt);

/// D21. Wants, of every rank of the world, one file that starts with the case's own start line, ends with a complete
/// end line and was read without loss. A rank that died fails it.
record::CheckResult evidence_complete(const Attempt& attempt);
/// D21. Wants every rank's log slice, and no line of it that the table of error signatures knows.
record::CheckResult log_clean(const Attempt& attempt);

/// D22. Wants the launcher's watch over every rank, and no silence beyond a phase's limit. Kills M61: names the rank
/// that is missing and the last collective that it entered.
record::CheckResult progress(const Attempt& attempt);

/// D24. Wants equal graph signatures on all ranks of a role.
record::CheckResult rank_signatures(const Attempt& attempt);

/// D25. Wants equal digests and counts of the collectives of each arm within every tensor and data parallel group.
record::CheckResult collective_ledger(const Attempt& attempt);

/// D26. Wants votes after init, build, eager and the teardown of graphs and communicators and, with graphs, after
/// capture, replay and compare; the same votes on every rank, all zero. Also fails for an error of a rank outside phase
/// capture, and when only some ranks refused the case. A capture that failed on all ranks alike is D19's.
record::CheckResult votes(const Attempt& attempt);

/// D28. CUDA only: exactly one libnccl mapped, of the version that was compiled against.
record::CheckResult one_libnccl(const Attempt& attempt);
/// D28. Wants what the axes ask for to be what was asked of the libraries and what they report.
record::CheckResult effective_config(const Attempt& attempt);

/// D29. Wants the teardown steps in order, each within its limit; with graphs, theirs among them.
record::CheckResult teardown_order(const Attempt& attempt);

/// D36. Wants equal state digests before and after the capture in every graph arm.
record::CheckResult capture_changes_nothing(const Attempt& attempt);

/// D43. Wants as many replays in every graph arm as steps after the warm-up, no fallback, no new capture. Kills M85.
record::CheckResult replays(const Attempt& attempt);

/// D53. Wants losses and gradients of the parallel eager arm within their bound of the single-rank model, and the
/// bound below what reordered sums can explain.
record::CheckResult layout_reference(const Attempt& attempt);

}  // namespace graphproof::checks
