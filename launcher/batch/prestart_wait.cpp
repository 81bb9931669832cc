#include "launcher/batch/prestart_wait.h"

namespace graphproof::launcher {

PrestartWait::Step PrestartWait::step(const Ranks& ranks, std::int64_t limit_ms,
                                      std::int64_t now_ms) {
  const bool allowed_now = device_allowed_ && device_ms_ == 0;
  if (allowed_now) device_ms_ = now_ms;
  const bool late = device_ms_ != 0 && !ranks.ready && now_ms - device_ms_ > limit_ms;
  failed_ = failed_ || ranks.ended || late;
  if (allowed_now) return Step::allow_device;
  if (failed_ || !begin_ || !ranks.ready) return Step::none;
  waits_ = false;
  return Step::begin;
}

}  // namespace graphproof::launcher
