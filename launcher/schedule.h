// Which batch starts when, and on which slots. Decides without IO: batches and endings go in, starts come out.
//
// Longest expected first, several side by side; smaller batches fill slots that a larger one can't use yet, but only so
// often: after kPassedOver starts past it, everything waits until the larger one fits.
#pragma once

#include <string>
#include <vector>

namespace graphproof::launcher {

/// A GPU's index, or one of the host's places on the simulated device.
using Slot = int;

struct Queued {
  std::string batch;
  int slots = 1;
  double expected_seconds = 0;
};

struct Start {
  std::string batch;
  std::vector<Slot> slots;
};

class Schedule {
 public:
  static constexpr int kPassedOver = 8;

  explicit Schedule(int slot_count);

  /// REQUIRES: 1 <= queued.slots <= slot_count; the name is new.
  void add(const Queued& queued);
  /// The batches that start now, with their leases.
  std::vector<Start> start();
  /// The batch's processes are gone; its slots are free.
  void release(const std::string& batch);
  /// The batch is over, but a process of it could not be ended: its slots are never leased again.
  void quarantine(const std::string& batch);
  /// Takes out the waiting batches that need more slots than are left for good.
  std::vector<std::string> drop_unfit();
  /// Nothing waits any more; what runs goes on. Returns the batches that will not start.
  std::vector<std::string> drop_waiting();

  bool idle() const { return waiting_.empty() && running_.empty(); }
  int slot_count() const { return slot_count_; }
  /// Quarantined slots, ascending.
  const std::vector<Slot>& quarantined() const { return quarantined_; }
  int busy_slots() const { return slot_count_ - static_cast<int>(free_.size() + quarantined_.size()); }
  /// Estimate of the time until all that is known has run, if slots were used fully: for the progress line.
  double waiting_slot_seconds() const;

 private:
  struct Waiting {
    Queued queued;
    int passed_over = 0;
  };

  std::vector<Start>::iterator running(const std::string& batch);

  int slot_count_;
  std::vector<Slot> free_;        // ascending
  std::vector<Slot> quarantined_;
  std::vector<Waiting> waiting_;  // longest expected first
  std::vector<Start> running_;
};

}  // namespace graphproof::launcher
