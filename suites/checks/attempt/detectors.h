// The checks, one function each: from the evidence of an attempt to a result. Each file is one
// detector family; the numbers are those of the detector table in docs and matrix/checks. A case
// that a rank refused is not_applicable for all of them but D21, D22 and D26, which watch exactly
// that. `replayed steps` are warmup_steps .. steps of the lockstep arm, the last of which has the
// capture inputs again; `watched replays` are these and, where the second graph run is an arm of
// its own (arms.h), its own.
//
// Where evidence is missing: of a rank that finished it is a failure, because the axes say that it
// must exist; of a rank that died, met an error or was voted out it leaves the check unexercised,
// since D19, D21, D22 and D26 fail for just that. No check passes unless every rank showed it
// something.
#pragma once

#include "suites/checks/attempt/attempt.h"

namespace graphproof::checks {

/// D01. Wants a `compare` line of every replayed step below `steps`, of more than zero tensors and
/// bytes, all equal; at least one of fresh inputs; finite losses in both arms, because NaN equals
/// nothing; equal digests where both arms wrote some.
record::CheckResult lockstep(const Attempt& attempt);
/// D01. Wants the comparison and equal digests of step `steps`, whose inputs are those of the
/// capture: what only the capture values hid.
record::CheckResult capture_inputs_last(const Attempt& attempt);
/// D01. Wants the comparison of the free-running arms at their last step: lockstep hides races
/// between replays.
record::CheckResult free_run(const Attempt& attempt);

/// D02. Wants every step of both eager runs, finite, with equal digests, and their comparison. An
/// error in phase eager fails it: no graph can then be judged.
record::CheckResult eager_repeats(const Attempt& attempt);
/// D02. Wants the comparison of the second graph run at its last step and, of solo_graph, every
/// step with equal digests.
record::CheckResult graph_repeats(const Attempt& attempt);

/// D03. Wants a `poison` line of every watched replay: no compared output left unpoisoned, the same
/// ones in each, no canary left after it. Kills M49, where the comparison is equal because it reads
/// another buffer.
record::CheckResult outputs_written(const Attempt& attempt);
/// D03. Wants as many launches announced by the engine, and looked at afterwards, as the device
/// counted in each watched replay. Kills M171. Of revision 9.
record::CheckResult launches_watched(const Attempt& attempt);

/// D04. Wants the felt learning rate of every step (eager_a in a case without graphs, otherwise
/// every replayed step) within its bound of the host's. A bound too wide to tell the rate from that
/// of the capture, in all steps, is blind and leaves the check unexercised. Kills M23.
record::CheckResult learning_rate(const Attempt& attempt);
/// D04. The same of Adam's step number, read from device memory. Kills M24.
record::CheckResult optimizer_step(const Attempt& attempt);
/// D04. The same of the loss scale that backward read, and the scale of rank 0 on every rank. Kills
/// M95 and M96.
record::CheckResult loss_scale(const Attempt& attempt);

/// D05. Of what a graph's parameters name. Wants a `freed` line of every replayed step of the
/// lockstep arm: some blocks looked at, none freed since the capture. Kills M27.
record::CheckResult operands_alive(const Attempt& attempt);

/// D06. Of what they don't name: wants the last step of the lockstep arms equal, as all before it,
/// although all memory that nobody has was overwritten in between. Unexercised where the arms
/// differed before. Kills M31.
record::CheckResult freed_memory(const Attempt& attempt);

/// D07. Wants an `address` line of every graph in every watched replay with the same number of
/// registered tensors, none moved. Kills M26.
record::CheckResult static_addresses(const Attempt& attempt);
/// D07. Wants, in each watched replay, the addresses of everything that the step hands out, losses,
/// gradients, parameters and optimizer state, among those. Kills M172. Of revision 9.
record::CheckResult outputs_registered(const Attempt& attempt);

/// D08. Wants, for every replayed step and generator, the eager mask in the graph arm, and another
/// one in the next step. Kills M32.
record::CheckResult masks(const Attempt& attempt);
/// D08. Wants, for every replayed step, the states before and after equal to eager's, and at least
/// one generator moved.
record::CheckResult generator(const Attempt& attempt);

/// D09. Wants, in every graph arm of a case with dropout, as many generators registered as the step
/// draws from. Judges failed captures too, because today's PyTorch refuses the draw. Kills M33.
record::CheckResult registered_generators(const Attempt& attempt);

/// D11. Wants, with several microbatches, equal gradient digests of the lockstep arms in every
/// replayed step whose losses are equal. From the step on in which losses differ it is unexercised:
/// then the forward already differs. Kills M36, M37.
record::CheckResult accumulated_gradients(const Attempt& attempt);

/// D12. Wants the losses that the lockstep arm handed out in a replayed step to be the same one
/// step later. Kills M38.
record::CheckResult kept_losses(const Attempt& attempt);

/// D13, on GPUs. Wants a `late` line of eager_a and every comparison with solo_eager equal,
/// although two of its steps began late. Unexercised where they differ before these. Kills M141.
record::CheckResult late_eager(const Attempt& attempt);
/// D13. The same of free_graph, whose replays all begin late, as do ways within its graphs.
/// Unexercised where the lockstep arms, of which nothing is late, differ. Kills M40 and M165.
record::CheckResult late_replays(const Attempt& attempt);

/// D15. Wants the same captures in every graph arm, with the same nodes in the same order, and as
/// many nodes as the census counts.
record::CheckResult census(const Attempt& attempt);

/// D18. Wants the layers' device counters unmoved by the capture, and moved by every replay of
/// every graph arm as often as the axes say (microbatches). Kills M15.
record::CheckResult coverage(const Attempt& attempt);

/// D19. Wants a successful capture in every graph arm and no error in phase capture. Kills M01.
record::CheckResult capture_status(const Attempt& attempt);

/// D21. Wants, of every rank of the world, one file that starts with the case's own start line,
/// ends with a complete end line and was read without loss. A rank that died fails it.
record::CheckResult evidence_complete(const Attempt& attempt);
/// D21. Wants every rank's log slice, and no line of it that the table of error signatures knows.
record::CheckResult log_clean(const Attempt& attempt);

/// D22. Wants the launcher's watch over every rank, and no silence beyond a phase's limit. Kills
/// M61: names the rank that is missing and the last collective that it entered.
record::CheckResult progress(const Attempt& attempt);

/// D24. Wants equal graph signatures on all ranks of a role.
record::CheckResult rank_signatures(const Attempt& attempt);

/// D25. Wants the collectives of every arm written down, with equal digests and counts within every
/// tensor and data parallel group.
record::CheckResult collective_ledger(const Attempt& attempt);

/// D26. Wants votes after init, build, eager and each phase of the teardown and, with graphs, after
/// every capture, the replays of every arm and compare; the same votes on every rank, all zero.
/// Also fails for an error of a rank outside phase capture, and when only some ranks refused the
/// case. A capture that failed on all ranks alike is D19's.
record::CheckResult votes(const Attempt& attempt);

/// D27. CUDA and model collective only: wants as many registered buffers in NCCL's log on every
/// rank, and none where NCCL_GRAPH_REGISTER is 0. Unexercised where NCCL registered nothing
/// although it was expected to. Kills M52.
record::CheckResult registration_parity(const Attempt& attempt);

/// D26. Wants as many graph launches and fallbacks on every rank as on the first that has a line of
/// that arm and step. Kills M56.
record::CheckResult participation(const Attempt& attempt);

/// D28. CUDA only: exactly one libnccl mapped, of the version that was compiled against.
record::CheckResult one_libnccl(const Attempt& attempt);
/// D28. Wants what the axes ask for to be what was asked of the libraries and what they report.
record::CheckResult effective_config(const Attempt& attempt);

/// D28. Model collective only: wants a `placement` line of both buffers of every arm, as the axis
/// placement asks.
record::CheckResult placement(const Attempt& attempt);

/// D29. Wants all teardown steps, in order, each within its limit.
record::CheckResult teardown_order(const Attempt& attempt);

/// D29. Wants no replay in flight when the graphs that teardown finds are dropped, and none when a
/// length's graphs make room for another's (axis shape_buckets). Kills M72 and M145.
record::CheckResult idle_when_dropped(const Attempt& attempt);

/// D30. Wants what the allocator holds of arm solo_graph back to the byte once it is gone and a
/// flush collective and empty_cache have run, and the device's own count within what it moves
/// around an eager arm. Kills M89.
record::CheckResult returned_after_flush(const Attempt& attempt);

/// D31. Wants the allocator's bytes after the last steady step of each solo arm to be those after
/// the first one; of dropless experts, whose shapes vary, those reserved to rise in half of the
/// steps at most.
record::CheckResult allocator_series(const Attempt& attempt);
/// D31. Wants the upper end of the Theil-Sen interval of solo_graph at most eager's and what one
/// jump explains: of the device's used bytes without those that the allocator reserved, and of the
/// process's resident ones.
record::CheckResult device_trend(const Attempt& attempt);
record::CheckResult resident_trend(const Attempt& attempt);
/// D31. Wants no more graph pools in an arm than the axis pool says. Kills M63.
record::CheckResult pool_sharing(const Attempt& attempt);

/// D32. Wants no bytes left in the graph pools of arm solo_graph once its graphs are gone.
record::CheckResult pools_released(const Attempt& attempt);

/// D33. Wants no bytes left of captures that failed and were taken back. Kills M19 where LibTorch
/// keeps the pool.
record::CheckResult failed_capture_leaves_nothing(const Attempt& attempt);

/// D34. Wants, of a case with shape_buckets, after every step of changing lengths no more lengths
/// with graphs than the axis says, and no more bytes in graph pools than the captures of these
/// took. Kills M66 and M142.
record::CheckResult graph_cache(const Attempt& attempt);

/// D35. Wants no launch out of the order of capture in any graph arm. Kills M43.
record::CheckResult pool_order(const Attempt& attempt);

/// D37. Wants as many runs of the captured work before each capture as the axis warmup_steps says,
/// by the engine's count, and as many forwards of each layer by the layers' own, on the device.
/// Kills M46 and M168.
record::CheckResult warmed_up(const Attempt& attempt);
/// D37. Wants every module that is captured alone to have run as often before, forward and
/// backward, as the engine says, by the module's own count. Kills M169 and M170. Of revision 9.
record::CheckResult modules_warmed_up(const Attempt& attempt);

/// D38. Wants, of each bucket of a case with shape_buckets, losses and gradients of a padded eager
/// step within the bound of reordered sums of the same step without padding. Kills M144.
record::CheckResult padding(const Attempt& attempt);

/// D36. Wants equal state digests before and after every capture in every graph arm.
record::CheckResult capture_changes_nothing(const Attempt& attempt);

/// D39. Wants, in every step of a case with fp8_weights (arms as for D04), as many copies made by
/// each layer as it has weights of linear layers to round: a layer that makes them in every
/// microbatch gives the same numbers. Kills M80 and M161.
record::CheckResult fp8_weights(const Attempt& attempt);

/// D40. Wants, in every step of a model with experts (arms as for D04), each layer's assignments
/// carried or counted as dropped, the flag raised where some were, and the ledger of eager.
/// Unexercised where nothing was over capacity. Kills M74.
record::CheckResult expert_ledger(const Attempt& attempt);

/// D41. Wants, in every step of a pipeline (arms as for D04), each stage's forwards and backwards
/// in the order of its schedule. Kills M76.
record::CheckResult schedule(const Attempt& attempt);

/// D42. Wants, in every step of a case with recompute (arms as for D04), one recompute for each
/// layer and microbatch, with the masks and the outputs of its forward. Kills M34.
record::CheckResult recompute(const Attempt& attempt);

/// D43. Wants as many replays in every graph arm as steps after the warm-up, no fallback, no new
/// capture. Kills M85.
record::CheckResult replays(const Attempt& attempt);

/// D43. Wants, in every replayed step of the lockstep graph arm (every step of eager_a without
/// graphs), as many looks of the host at losses and gradients as the axes nan_check_loss and
/// nan_check_grad ask for. Kills M98.
record::CheckResult host_checks(const Attempt& attempt);
/// D43. Of the same steps, with overlap_grad_reduce: wants all buckets, more than none, begun under
/// backward. PyTorch's reducer does not say. Kills M167.
record::CheckResult overlapped_reduction(const Attempt& attempt);

/// D43. Wants, of a case with shape_buckets, that every step of changing lengths was padded,
/// captured, replayed and made another length's graphs go as a cache of the least recently used
/// would have it. Unexercised where nothing was evicted, came back, or was too long. Kills M143
/// where the numbers agree.
record::CheckResult shape_buckets(const Attempt& attempt);

/// D48. Wants each of these steps equal to eager's, whose padding holds other tokens, and both arms
/// of the free run at the end. Kills M143.
record::CheckResult bucketed_replay(const Attempt& attempt);

/// D47. Wants, of a case with the schedule resume, what a job leaves that goes on from a checkpoint
/// equal to what the one left that saved it, in a fresh model and once more under its live graphs,
/// from as many replays as these steps need. Kills M99.
record::CheckResult resume(const Attempt& attempt);

/// D47. Wants, of a case with the schedule train-eval-train, every evaluation between two replayed
/// steps equal to eager's, the first batch's losses the same when it comes again, and of
/// full_iteration all but its warm-up replayed from one graph of evaluation. Kills M111.
record::CheckResult evaluation(const Attempt& attempt);

/// D53. Wants losses and gradients of the parallel eager arm within their bound of the single-rank
/// model, and the bound below what reordered sums can explain.
record::CheckResult layout_reference(const Attempt& attempt);
/// D53. Wants the digests of the parameters equal after every step of arm eager_a on all ranks that
/// hold the same part of the model: of one pipeline stage, tensor parallel rank and part of the
/// experts. Not where parameters are gathered in the next step. Kills M174.
record::CheckResult replicas(const Attempt& attempt);

/// D53. Model collective only: wants every result of the eager arms, and of the graph arms, equal
/// to the closed form.
record::CheckResult eager_collective(const Attempt& attempt);
record::CheckResult replayed_collective(const Attempt& attempt);

/// D56. On the simulated device: wants all work that touches the same bytes on two streams, one of
/// them to write, ordered by events or the host, in eager steps, inside captures and around
/// replays. Kills M39, M40, M115, M141, M165 and M166.
record::CheckResult races(const Attempt& attempt);

}  // namespace graphproof::checks
