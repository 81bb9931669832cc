#include "suites/arms/history.h"

namespace graphproof::suites {

void History::add(Snapshot left) {
  bytes_ += fixtures::total_bytes(left);
  if (bytes_ > kept_bytes_)
    for (Snapshot& old : steps_) old.clear();
  steps_.push_back(std::move(left));
}

const Snapshot* History::at(std::int64_t step) const {
  const auto index = static_cast<std::size_t>(step);
  return index < steps_.size() && !steps_[index].empty() ? &steps_[index] : nullptr;
}

}  // namespace graphproof::suites
