// What ranks wait for that were started before their turn: first for the device, then for their
// turn. Without IO: what the launcher allows and what the ranks show goes in, what is due comes
// out.
#pragma once

#include <cstdint>

namespace graphproof::launcher {

/// The wait of the ranks of one batch.
class PrestartWait {
 public:
  /// `waits`: false for ranks that may begin at once.
  explicit PrestartWait(bool waits) : waits_(waits) {}

  /// The ranks may use the device: their predecessor no longer measures it.
  void allow_device() { device_allowed_ = true; }
  /// Their turn has come.
  void begin() { begin_ = device_allowed_ = true; }
  /// They could not be started.
  void fail() { failed_ = true; }

  /// What the ranks show.
  struct Ranks {
    bool ended = false;  // the starter or a rank has ended
    bool ready = false;  // every rank could begin
  };
  enum class Step { none, allow_device, begin };
  /// What the ranks may do from now on. Ranks that end, or that are not ready `limit_ms` after
  /// they may use the device, have failed. REQUIRES: waits().
  Step step(const Ranks& ranks, std::int64_t limit_ms, std::int64_t now_ms);

  /// The ranks have not begun.
  bool waits() const { return waits_; }
  bool failed() const { return failed_; }
  bool device_allowed() const { return device_allowed_; }

 private:
  bool waits_;
  bool device_allowed_ = false, begin_ = false, failed_ = false;
  std::int64_t device_ms_ = 0;  // when they got the device; 0: not yet
};

}  // namespace graphproof::launcher
