"""Faults: defects of public reports, put back into the installed packages when a rank starts.

A case names its fault by axis `fault`, so that none is left on unnoticed. The table of faults
(matrix/tables/faults.json) has for each its title, the detector that must catch it, and the case
that it is planted in; the function here has the name of its row.
"""

from graphproof.message import Error
from graphproof.planted import (allocation, buckets, callables, graphs, megatron_core, optimizers,
                                resume, steps, transformer_engine)

# id -> a function that replaces functions of this process and returns nothing.
FAULTS = {
    "M250": callables.callable_inputs_not_copied,
    "M251": callables.callable_gradients_not_copied,
    "M252": callables.callable_forward_not_launched,
    "M253": callables.callable_backward_not_launched,
    "M254": callables.callable_gradients_doubled,
    "M255": callables.callable_runs_old_forward,
    "M256": callables.callables_swap_graphs,
    "M257": callables.callable_pools_not_shared,
    "M258": graphs.frozen_generators,
    "M259": graphs.empty_launches,
    "M260": graphs.graphs_kept_alive,
    "M261": allocation.tensor_kept_by_launch,
    "M262": allocation.parameter_rebound,
    "M263": optimizers.frozen_rate,
    "M264": optimizers.freed_rate,
    "M265": optimizers.rate_read_on_host,
    "M266": optimizers.frozen_adam_steps,
    "M267": optimizers.gradients_doubled,
    "M268": graphs.losses_not_copied,
    "M269": graphs.inputs_not_copied,
    "M270": graphs.launched_twice,
    "M271": optimizers.parameters_changed_by_capture,
    "M272": steps.gradients_not_cleared,
    "M273": steps.dropout_left_out,
    "M274": steps.gradients_not_clipped,
    "M275": optimizers.weight_decay_left_out,
    "M276": steps.other_capture_mode,
    "M277": steps.captured_every_step,
    "M278": steps.gradients_not_reduced,
    "M279": optimizers.adam_rate_read_on_host,
    "M280": transformer_engine.te_inputs_not_copied,
    "M281": transformer_engine.te_gradients_not_copied,
    "M282": transformer_engine.te_gradient_scales_not_updated,
    "M283": transformer_engine.te_rounded_weights_kept,
    "M284": transformer_engine.te_forward_not_launched,
    "M285": transformer_engine.te_backward_not_launched,
    "M286": transformer_engine.te_callables_swap_graphs,
    "M287": transformer_engine.te_pools_not_shared,
    "M288": transformer_engine.te_warm_up_scales_kept,
    "M289": optimizers.frozen_loss_scale,
    "M290": megatron_core.mcore_inputs_not_copied,
    "M291": megatron_core.mcore_inputs_into_first_buffer,
    "M292": megatron_core.mcore_main_gradient_added_twice,
    "M293": megatron_core.mcore_validation_graph_in_training,
    "M294": megatron_core.mcore_iteration_graph_kept,
    "M295": megatron_core.mcore_iteration_not_replayed,
    "M296": megatron_core.mcore_layer_inputs_not_copied,
    "M297": megatron_core.mcore_layer_gradients_not_copied,
    "M298": megatron_core.mcore_layer_forward_not_launched,
    "M299": megatron_core.mcore_gradient_scales_not_updated,
    "M300": megatron_core.mcore_rounded_weights_kept,
    "M301": megatron_core.mcore_wrong_microbatch,
    "M302": megatron_core.mcore_layer_graphs_kept,
    "M303": megatron_core.mcore_gradients_not_reduced,
    "M304": callables.callable_evaluates_from_graph,
    "M305": allocation.optimizer_state_replaced_by_load,
    "M306": steps.captured_evaluation_with_dropout,
    "M307": steps.decoded_keys_not_kept,
    "M308": megatron_core.mcore_validation_with_dropout,
    "M450": megatron_core.mcore_delayed_gradients_added_early,
    "M340": steps.memory_pinned_by_another_thread,
    "M341": steps.autocast_missing_at_replay,
    "M342": steps.workspace_shared_by_graphs,
    "M343": megatron_core.mcore_gather_hooks_not_called,
    "M344": buckets.ignored_labels_counted,
    "M345": buckets.evicted_graphs_kept,
    "M346": buckets.length_of_the_latest_graph,
    "M347": buckets.evicted_while_running,
    "M390": graphs.graphs_dropped_while_running,
    "M424": steps.loss_read_on_host,
    "M425": callables.callable_arguments_reordered,
    "M426": callables.callable_argument_broadcast,
    "M427": callables.callable_parameter_replaced,
    "M428": steps.recompute_not_captured,
    "M422": megatron_core.mcore_decoded_lengths_frozen,
    "M423": megatron_core.mcore_decoded_blocks_frozen,
    "M440": resume.resume_without_optimizer_steps,
    "M441": resume.resume_without_generators,
    "M442": transformer_engine.te_resume_with_new_scales,
    "M443": resume.capture_ahead_of_loading,
    "M444": resume.resume_without_step,
    "M445": resume.resume_without_loss_scale,
    "M446": resume.resume_in_same_process,
    "M447": megatron_core.mcore_resume_from_rounded_weights,
}


def plant(fault: str) -> None:
    """Plants the fault of a case; "none" plants nothing. Once a process: a case with a fault has
    a process of its own. Error for a fault that this package does not know."""
    if fault == "none":
        return
    if fault not in FAULTS:
        raise Error("the fault of a case", fault, "none, or one of " + ", ".join(FAULTS),
                    "a case under the name of a fault must have it",
                    "plant faults of graphproof's own engines with subject=reference")
    FAULTS[fault]()
