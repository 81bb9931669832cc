// Which batch starts when, and on which slots. Decides without IO: batches, their ends and the time
// go in, starts come out.
//
// The widest batch goes first, and of equal widths the one that is expected to take longest: then
// slots seldom have to be emptied for a wide batch, and the narrow ones fill the gaps. A batch that
// could be the last to end goes before them, the longest first. The first batch that does not fit
// yet is passed over, but only kPassedOver times. Then it gets a reservation, and other batches
// still start only if they are expected to end before it, or leave its slots alone. If that is not
// enough either, because expectations were wrong, nothing starts before it.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace graphproof::launcher {

/// The index of a GPU, or of one of the host's places on the simulated device.
using Slot = int;

/// Where a slot is: the GPUs of an island are joined by NVLink, and those of a node fail together.
/// Both numbers count from 0 over the whole machine.
struct Place {
  int island = 0;
  int node = 0;
};

/// A batch that waits for slots.
struct Queued {
  std::string batch;
  int slots = 1;
  double expected_seconds = 0;
  bool exclusive = false;  // it measures time: nothing runs at the same time
  std::vector<Slot> avoided =
      {};  // not used if the batch fits elsewhere, because an attempt of it met trouble there
  std::string prestart_key =
      {};  // batches of the same key may be prestarted on each other's slots; "": never
};

/// A batch that starts now, and the slots that it gets.
struct Start {
  std::string batch;
  std::vector<Slot> slots;
};

/// The slots of a machine, the batches that wait for them, and the batches that have them.
class Schedule {
 public:
  static constexpr int kPassedOver = 8;
  // After this many the reservation has been missed too often to be believed.
  static constexpr int kPassedOverAtAll = 512;
  // A batch may take twice its expected time and still not be the last to end. The remaining
  // reserve covers batches that end at the same time.
  static constexpr double kExpectedTooShort = 2.5;
  // Slots that are free for longer than a start of ranks takes are not kept idle because a batch
  // was prestarted on others.
  static constexpr std::int64_t kIdle_ms = 1000;
  // A slot on which this many batches met trouble of the hardware is not leased again.
  static constexpr int kStrikes = 2;

  /// All slots are joined, on one node.
  explicit Schedule(int slot_count)
      : Schedule(std::vector<Place>(static_cast<std::size_t>(slot_count))) {}
  /// Nodes with `node_slots` slots each, which are joined; a batch lies on one node. REQUIRES:
  /// slot_count is a multiple of it.
  Schedule(int slot_count, int node_slots);
  /// REQUIRES: at least one place; no island reaches over two nodes. `across_nodes`: a batch that
  /// is wider than every node may lie on several.
  explicit Schedule(std::vector<Place> places, bool across_nodes = true);
  /// GPUs each of which has so many slots: slot s is on GPU s % gpus.size(). The GPUs of a batch
  /// that is no wider than that are all different ones. What befalls a slot (strike(), withdraw(),
  /// Queued::avoided) befalls all slots of its GPU. REQUIRES: at least one GPU, all on one node.
  static Schedule of_shared_gpus(const std::vector<Place>& gpus, int slots_per_gpu);

  /// Adds a batch that waits. REQUIRES: 1 <= queued.slots <= the slots of a node, or slot_count if
  /// batches may lie across nodes; the name is new.
  void add(const Queued& queued);
  /// The batches that start now, with their slots. A batch lies within one island if an island is
  /// large enough for it, otherwise in as few as possible, and likewise within nodes.
  std::vector<Start> start(std::int64_t now_ms = 0);
  /// The processes of the batch are gone. Its slots are free, and go first to the batch that was
  /// prestarted on them.
  void release(const std::string& batch);
  /// The batch met trouble of its GPUs. Call it before release(). Returns the slots that are never
  /// leased again because this happened too often. Trouble that batches meet on the same GPU at the
  /// same time counts once.
  std::vector<Slot> strike(const std::string& batch);
  /// These slots are never leased again: from now on if they are free, otherwise from the end of
  /// their batch.
  void withdraw(const std::vector<Slot>& slots);

  /// Batches whose ranks may be started now, to wait until start() names them: each on the slots of
  /// a running batch of the same key, one for each, and never with more ranks than that. Such a
  /// batch starts on these slots, unless others stay free for a while before. Then it counts as
  /// prestarted no longer, and starts there like any other.
  std::vector<Start> prestart();
  /// Takes a waiting batch out.
  void drop(const std::string& batch);

  /// Takes out the waiting batches that need more slots than are left for good. Returns their
  /// names.
  std::vector<std::string> drop_unfit();
  /// Takes out all waiting batches; what runs goes on. Returns the names of the batches that will
  /// not start.
  std::vector<std::string> drop_waiting();

  /// The slots of a running batch. REQUIRES: it runs.
  std::vector<Slot> slots_of(const std::string& batch) const;
  /// Whether the batch waits for the slots of a running batch. It no longer does once these are
  /// lost, or others are free.
  bool prestarted(const std::string& batch) const;
  /// Whether a batch of this many slots can ever be placed without these.
  bool fits_elsewhere(int slots, const std::vector<Slot>& avoided) const;

  bool idle() const { return waiting_.empty() && running_.empty(); }
  int slot_count() const { return static_cast<int>(places_.size()); }
  int gpu_count() const { return gpu_count_; }
  Slot gpu_of(Slot slot) const { return slot % gpu_count_; }
  /// The slots that are not leased again, ascending.
  std::vector<Slot> withdrawn() const;
  int busy_slots() const;

 private:
  /// A batch that waits.
  struct Waiting {
    Queued queued;
    int passed_over = 0;
    std::optional<std::vector<Slot>> prestarted_on;  // slots of the batch that it waits for
    bool elsewhere = false;  // other slots are free for it: it is not prestarted again
  };
  /// A batch that has slots.
  struct Running {
    Queued queued;
    std::vector<Slot> slots;
    std::int64_t expected_end_ms = 0;
    std::string successor;  // the batch that waits for these slots
    bool struck = false;    // trouble of its GPUs has been counted
  };
  /// The slots that no batch may have that would still have them then.
  struct Reservation {
    std::int64_t at_ms = 0;
    std::vector<bool> slots;
  };
  using Flags = std::vector<bool>;  // by slot

  /// The waiting batches in the order in which they are considered.
  std::vector<std::size_t> order(std::int64_t now_ms) const;
  std::vector<Running>::iterator running(const std::string& batch);
  std::vector<Waiting>::iterator waiting(const std::string& batch);
  int count(const Flags& flags) const;
  /// All slots of the GPUs on which these are, ascending.
  std::vector<Slot> of_same_gpus(const std::vector<Slot>& slots) const;
  /// Whether a batch of so many slots can have them of these.
  bool fits(int slots, const Flags& usable) const;
  std::optional<std::vector<Slot>> place(const Queued& queued, const Flags& free) const;
  std::optional<std::vector<Slot>> place_within(int slots, const Flags& free,
                                                const Flags& usable) const;
  std::optional<std::vector<Slot>> may_start(const Waiting& waiting,
                                             const std::optional<Reservation>& reservation,
                                             std::int64_t now_ms) const;
  Reservation reserve(const Queued& queued, Flags free, std::int64_t now_ms) const;
  /// Nothing else could be started. A batch that was prestarted on other slots may have to take the
  /// free ones.
  void check_idle_slots(const std::optional<Reservation>& reservation, std::int64_t now_ms);

  std::vector<Place> places_;
  bool across_nodes_;
  int island_count_ = 0;
  int gpu_count_;  // as many as slots, unless several slots are on a GPU
  Flags free_, withdrawn_;
  std::vector<int> strikes_;
  std::vector<Waiting>
      waiting_;  // exclusive ones first, then the widest, then the longest expected
  std::vector<Running> running_;
  std::optional<std::int64_t>
      idle_since_ms_;  // since when a prestarted batch could have other, free slots
};

}  // namespace graphproof::launcher
