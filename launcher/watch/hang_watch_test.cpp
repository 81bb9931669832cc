// When a watched command counts as hanging: one row for each kind of activity.
#include "launcher/watch/hang_watch.h"

#include <gtest/gtest.h>

#include <functional>
#include <vector>

namespace graphproof::launcher {
namespace {

constexpr std::int64_t kHangAfter_ms = 60'000, kLook_ms = 1000;

ProcessActivity watched_process() {
  return {.name = "node1.1", .watched = true, .evidence = 7, .inside_call = true};
}

/// The time at which the command hangs, if it does within ten minutes. `next` changes the processes
/// before each look.
std::int64_t hangs_at(std::vector<ProcessActivity> processes,
                      const std::function<void(std::vector<ProcessActivity>&)>& next) {
  HangWatch watch(kHangAfter_ms, 0);
  for (std::int64_t now = kLook_ms; now < 600'000; now += kLook_ms) {
    next(processes);
    if (watch.look(now, processes)) return now;
  }
  return -1;
}

struct Activity {
  const char* name;
  std::vector<ProcessActivity> processes;
  std::function<void(std::vector<ProcessActivity>&)> next;
  bool hangs;
};

TEST(HangWatch, OnlyADeviceProcessWithoutAnyActivityHangs) {
  const auto nothing = [](auto&) {};
  const auto other = [](ProcessActivity process, auto change) {
    change(process);
    return process;
  };
  const ProcessActivity idle = watched_process();
  const ProcessActivity shell = {.name = "sh"};
  const Activity rows[] = {
      {"nothing moves", {idle}, nothing, true},
      {"a shell waits for it", {idle, shell}, nothing, true},
      {"it waits outside the driver",
       {other(idle, [](auto& p) { p.inside_call = false; })},
       nothing,
       true},
      {"its probe writes", {idle}, [](auto& all) { ++all[0].evidence; }, false},
      {"it computes", {idle}, [](auto& all) { all[0].cpu_ms += 900; }, false},
      {"it polls", {idle}, [](auto& all) { all[0].cpu_ms += 10; }, true},
      {"a data loader computes", {idle, shell}, [](auto& all) { all[1].cpu_ms += 900; }, false},
      {"a debugger holds it", {other(idle, [](auto& p) { p.stopped = true; })}, nothing, false},
      {"no process uses CUDA yet", {shell}, nothing, false},
      {"no process at all", {}, nothing, false},
      {"processes come and go", {idle, shell}, [](auto& all) { all[1].name += "x"; }, false},
      {"another host's process waits in the driver",
       {other(idle, [](auto& p) { p.on_this_host = false; })},
       nothing,
       true},
      {"another host's process may compute",
       {other(idle, [](auto& p) { p.on_this_host = p.inside_call = false; })},
       nothing,
       false},
  };
  for (const Activity& row : rows) {
    const std::int64_t at = hangs_at(row.processes, row.next);
    EXPECT_EQ(at >= 0, row.hangs) << row.name;
    if (row.hangs) {
      EXPECT_EQ(at, kHangAfter_ms + kLook_ms) << row.name;
    }
  }
}

TEST(HangWatch, AnyProgressBeginsTheWaitAnew) {
  int looks = 0;
  EXPECT_EQ(hangs_at({watched_process()},
                     [&](auto& all) {
                       if (++looks == 50) ++all[0].evidence;
                     }),
            50 * kLook_ms + kHangAfter_ms);
}

}  // namespace
}  // namespace graphproof::launcher
