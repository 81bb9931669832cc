// A side stream, whose work runs concurrently with that of the current stream. It forks, which
// means that it waits for all work of the current stream so far, and it is joined, which means that
// the current stream waits for it. In a capture both become edges of the graph, and a capture with
// a side stream that is never joined is invalid.
#pragma once

#include <c10/core/Event.h>
#include <c10/core/Stream.h>

#include <utility>

#include "fixtures/tensors/torch.h"
#include "workloads/faults/hooks/fault_hooks.h"

namespace graphproof::workloads {

/// Used by one thread at a time.
class SideStream {
 public:
  /// `work` is the kind of work that runs on it. `faults` outlives it.
  SideStream(c10::Stream stream, faults::SideWork work, faults::FaultHooks& faults)
      : stream_(stream), work_(work), faults_(faults) {}

  const c10::Stream& stream() const { return stream_; }

  /// Makes the side stream wait for all work of the current stream so far.
  void fork() const {
    const c10::Stream current = current_stream();
    c10::Event ready(stream_.device_type());
    ready.record(current);
    wait(faults::SideWait::fork, ready, stream_);
  }
  /// An event that completes when all work of the side stream so far has.
  c10::Event record() const {
    c10::Event done(stream_.device_type());
    done.record(stream_);
    return done;
  }
  /// Makes the current stream wait for `done`.
  void join(c10::Event& done) const { wait(faults::SideWait::join, done, current_stream()); }

 private:
  c10::Stream current_stream() const {
    return c10::impl::VirtualGuardImpl(stream_.device_type()).getStream(stream_.device());
  }
  void wait(faults::SideWait which, c10::Event& event, const c10::Stream& waiting) const {
    if (faults_.waits(work_, which, event, waiting)) event.block(waiting);
  }

  c10::Stream stream_;
  faults::SideWork work_;
  faults::FaultHooks& faults_;
};

}  // namespace graphproof::workloads
