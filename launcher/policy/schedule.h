// Which batch starts when, and on which slots. Decides without IO: batches, endings and the time go
// in, starts come out.
//
// The widest first, and of these the longest expected: then hardly anything is ever emptied for a
// wide one, and the narrow ones fill the gaps. What could be the last to end goes before them, the
// longest first. The first that does not fit yet is passed over, but only kPassedOver times: then
// it has a reservation, and only batches that are expected to end before it, or that leave its
// slots alone, still start. When that was not enough either, because expectations were wrong,
// nothing starts before it.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace graphproof::launcher {

/// A GPU's index, or one of the host's places on the simulated device.
using Slot = int;

/// Where a slot is: GPUs of an island are joined by NVLink, those of a node share its fate. Both
/// count from 0 over the whole machine.
struct Place {
  int island = 0;
  int node = 0;
};

struct Queued {
  std::string batch;
  int slots = 1;
  double expected_seconds = 0;
  bool exclusive = false;  // it measures time: nothing runs beside it
  std::vector<Slot> avoided =
      {};  // not there, if the batch fits elsewhere: an attempt of it met trouble there
  std::string prestart_key =
      {};  // of batches that may be prepared while another of the same key runs; "": none
};

struct Start {
  std::string batch;
  std::vector<Slot> slots;
};

class Schedule {
 public:
  static constexpr int kPassedOver = 8;
  // Beyond this the reservation has been missed too often to be believed.
  static constexpr int kPassedOverAtAll = 512;
  // A batch may last twice as long as expected and still end before the last; the rest is for those
  // that end at its side.
  static constexpr double kExpectedTooShort = 2.5;
  // Slots that are free for longer than a start of ranks saves are not left idle for what was
  // prepared on others.
  static constexpr std::int64_t kIdle_ms = 1000;
  // A slot whose batches met infrastructure trouble this often is not leased again.
  static constexpr int kStrikes = 2;

  /// All slots joined with each other, on one node.
  explicit Schedule(int slot_count)
      : Schedule(std::vector<Place>(static_cast<std::size_t>(slot_count))) {}
  /// Nodes of `node_slots` each, their slots joined; a batch lies on one of them. REQUIRES:
  /// slot_count is a multiple of it.
  Schedule(int slot_count, int node_slots);
  /// REQUIRES: at least one place; islands do not reach over nodes. `across_nodes`: a batch that is
  /// wider than every node may lie on several.
  explicit Schedule(std::vector<Place> places, bool across_nodes = true);

  /// REQUIRES: 1 <= queued.slots <= the slots of a node, or slot_count if batches may lie across
  /// nodes; the name is new.
  void add(const Queued& queued);
  /// The batches that start now, with their leases. A batch lies within one island if an island is
  /// large enough for it, otherwise in as few as possible, and likewise within nodes.
  std::vector<Start> start(std::int64_t now_ms = 0);
  /// The batch's processes are gone; its slots are free, and go first to what was prepared on them.
  void release(const std::string& batch);
  /// The batch ended by infrastructure trouble. Call before release(). Slots that it struck too
  /// often are never leased again; they are returned.
  std::vector<Slot> strike(const std::string& batch);
  /// These are never leased again: at once if they are free, otherwise when their batch has ended.
  void withdraw(const std::vector<Slot>& slots);

  /// Batches whose processes may be started now, to wait until start() names them: each on the
  /// slots of a running batch of the same key, one for each, and never more processes than there.
  /// One that starts gets these slots, unless others are free for a while before: then it is
  /// prepared no longer, and starts there like any other.
  std::vector<Start> prestart();
  /// Takes out a batch that waits.
  void drop(const std::string& batch);

  /// Takes out the waiting batches that need more slots than are left for good.
  std::vector<std::string> drop_unfit();
  /// Nothing waits any more; what runs goes on. Returns the batches that will not start.
  std::vector<std::string> drop_waiting();

  /// REQUIRES: it runs.
  std::vector<Slot> slots_of(const std::string& batch) const;
  /// It waits for the slots of a running batch; no longer once these are lost, or others are free.
  bool prestarted(const std::string& batch) const;
  /// Whether a batch of so many slots can ever be placed without these.
  bool fits_elsewhere(int slots, const std::vector<Slot>& avoided) const;

  bool idle() const { return waiting_.empty() && running_.empty(); }
  int slot_count() const { return static_cast<int>(places_.size()); }
  /// Slots that are not leased again, ascending.
  std::vector<Slot> withdrawn() const;
  int busy_slots() const;

 private:
  struct Waiting {
    Queued queued;
    int passed_over = 0;
    std::optional<std::vector<Slot>> prestarted_on;  // slots of the batch that it waits for
    bool elsewhere = false;  // there are free ones for it: not prepared again
  };
  struct Running {
    Queued queued;
    std::vector<Slot> slots;
    std::int64_t expected_end_ms = 0;
    std::string successor;  // the batch that waits for these slots
  };
  /// What nobody may have who would still hold it then.
  struct Reservation {
    std::int64_t at_ms = 0;
    std::vector<bool> slots;
  };
  using Flags = std::vector<bool>;  // by slot

  /// The waiting batches in the order in which they are asked for.
  std::vector<std::size_t> order(std::int64_t now_ms) const;
  std::vector<Running>::iterator running(const std::string& batch);
  std::vector<Waiting>::iterator waiting(const std::string& batch);
  int count(const Flags& flags) const;
  /// The most slots that a batch can have there.
  int widest(const Flags& usable) const;
  std::optional<std::vector<Slot>> place(const Queued& queued, const Flags& free) const;
  std::optional<std::vector<Slot>> place_within(int slots, const Flags& free,
                                                const Flags& usable) const;
  std::optional<std::vector<Slot>> may_start(const Waiting& waiting,
                                             const std::optional<Reservation>& reservation,
                                             std::int64_t now_ms) const;
  Reservation reserve(const Queued& queued, Flags free, std::int64_t now_ms) const;
  /// Nothing else could be started: what was prepared on other slots may have to take the free
  /// ones.
  void check_idle_slots(const std::optional<Reservation>& reservation, std::int64_t now_ms);

  std::vector<Place> places_;
  bool across_nodes_;
  int island_count_ = 0;
  Flags free_, withdrawn_;
  std::vector<int> strikes_;
  std::vector<Waiting>
      waiting_;  // what runs alone first, then the widest, then the longest expected
  std::vector<Running> running_;
  std::optional<std::int64_t> idle_since_ms_;  // slots that a prepared batch could have
};

}  // namespace graphproof::launcher
