// Sets a flag for the duration of a scope, also if the scope ends by an exception.
#pragma once

namespace graphproof::engines {

/// Sets `flag` to true, and to false in the destructor. `flag` outlives it.
class ScopedFlag {
 public:
  explicit ScopedFlag(bool& flag) : flag_(flag) { flag_ = true; }
  ~ScopedFlag() { flag_ = false; }
  ScopedFlag(const ScopedFlag&) = delete;
  ScopedFlag& operator=(const ScopedFlag&) = delete;

 private:
  bool& flag_;
};

}  // namespace graphproof::engines
