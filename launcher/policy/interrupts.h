// What an interrupt of the user or of a scheduler means to a run: the first lets running cases end,
// a further one ends all processes at once. Without IO: the number of signals so far goes in.
#pragma once

namespace graphproof::launcher {

/// What the run loop does about an interrupt.
enum class InterruptAction {
  none,
  finish_running,  // no case is started any more; those that run end by themselves
  end_running,     // the same, and all processes are ended now
};

/// The interrupts of one run.
class Interrupts {
 public:
  /// What is due now. `count`: interrupts since the start of the run, as Signals counts them. Two
  /// that arrive within one round of the loop ask for what the second asks for.
  InterruptAction next(int count) {
    if (count == handled_) return InterruptAction::none;
    handled_ = count;
    return count == 1 ? InterruptAction::finish_running : InterruptAction::end_running;
  }

 private:
  int handled_ = 0;
};

}  // namespace graphproof::launcher
