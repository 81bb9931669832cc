// A batch without processes, for tests of what is decided about batches: it records what is asked
// of it, and is over or failed when the test says so.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "launcher/batch/running_batch.h"

namespace graphproof::launcher {

/// See the members: the test sets `is_over`, `failed` and `left`, and reads the others.
class FakeBatch final : public RunningBatch {
 public:
  explicit FakeBatch(const std::string& name, int pid = 0) : pid(pid) { batch_.batch = name; }

  std::vector<record::Context> step(std::int64_t) override {
    ++steps;
    return {};
  }
  bool over() const override { return is_over; }
  std::vector<Attempt> not_done() const override { return left; }
  std::vector<std::string> unkillable() const override { return {}; }
  void begin() override { begun = true; }
  bool prestart_failed() const override { return failed; }
  void stop(std::int64_t) override { stopped = true; }
  void stop_after_case() override {}
  const record::Batch& batch() const override { return batch_; }
  int starter_pid() const override { return pid; }
  std::string now_doing() const override { return ""; }
  record::LiveCase live(std::int64_t) const override { return {}; }

  int pid = 0, steps = 0;
  bool is_over = false, failed = false, begun = false, stopped = false;
  std::vector<Attempt> left;

 private:
  record::Batch batch_;
};

}  // namespace graphproof::launcher
