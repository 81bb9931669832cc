// A flag that is true for as long as something goes on, also when it throws.
#pragma once

namespace graphproof::engines {

class During {
 public:
  explicit During(bool& flag) : flag_(flag) { flag_ = true; }
  ~During() { flag_ = false; }
  During(const During&) = delete;
  During& operator=(const During&) = delete;

 private:
  bool& flag_;
};

}  // namespace graphproof::engines
