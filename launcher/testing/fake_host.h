// What a host may do to a launcher, for the chaos test: the disk under one folder fills up or turns
// read-only, and the wall clock is set. fake_host.cpp, which is preloaded into every process of the
// test, obeys this state, which they all map.
#pragma once

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstring>
#include <limits>
#include <stdexcept>
#include <string>

namespace graphproof::launcher {

// Names the file that holds a FakeHostState.
inline constexpr char kFakeHostVariable[] = "GRAPHPROOF_FAKE_HOST";

/// The state that all processes of a test share.
struct FakeHostState {
  std::atomic<std::int64_t>
      free_bytes;  // free on the disk under `folder`; a write that does not fit fails with ENOSPC
  std::atomic<bool> read_only;  // nothing under `folder` can be written or made: EROFS
  std::atomic<std::int64_t>
      clock_step_s;                   // the wall clock is off by this much; steady clocks are not
  std::atomic<std::int64_t> refused;  // calls that failed so far
  char folder[512];
};
static_assert(std::atomic<std::int64_t>::is_always_lock_free &&
                  std::atomic<bool>::is_always_lock_free,
              "the state is shared between processes");

/// Maps the state in `file`, which is made if `create`. Null when it does not exist or is not
/// complete yet.
inline FakeHostState* map_fake_host(const char* file, bool create) {
  const int descriptor = open(file, O_RDWR | O_CLOEXEC | (create ? O_CREAT : 0), 0600);
  if (descriptor < 0) return nullptr;
  struct stat facts;
  const bool sized = create
                         ? ftruncate(descriptor, sizeof(FakeHostState)) == 0
                         : fstat(descriptor, &facts) == 0 && facts.st_size == sizeof(FakeHostState);
  void* memory = sized ? mmap(nullptr, sizeof(FakeHostState), PROT_READ | PROT_WRITE, MAP_SHARED,
                              descriptor, 0)
                       : MAP_FAILED;
  close(descriptor);
  return memory == MAP_FAILED ? nullptr : static_cast<FakeHostState*>(memory);
}

/// The state as the test sets it.
class FakeHost {
 public:
  /// REQUIRES: `file` lies in a folder that can be written.
  FakeHost(const std::string& file, const std::string& folder)
      : state_(map_fake_host(file.c_str(), true)) {
    if (state_ == nullptr || folder.size() >= sizeof state_->folder)
      throw std::runtime_error("can't make " + file);
    calm();
    std::strcpy(state_->folder, folder.c_str());
  }
  ~FakeHost() { munmap(state_, sizeof(FakeHostState)); }
  FakeHost(const FakeHost&) = delete;
  FakeHost& operator=(const FakeHost&) = delete;

  FakeHostState& operator*() const { return *state_; }
  FakeHostState* operator->() const { return state_; }

  /// A host with room, a writable disk and the right time.
  void calm() const {
    state_->free_bytes = std::numeric_limits<std::int64_t>::max() / 2;
    state_->read_only = false;
    state_->clock_step_s = 0;
  }

 private:
  FakeHostState* state_;
};

}  // namespace graphproof::launcher
