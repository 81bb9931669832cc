// D61: what other threads did while a capture was open. Most calls of other threads are harmless;
// what counts is a call that the driver refused because of the capture, and work or the end of the
// capture from a thread that did not begin it.
#include "suites/checks/attempt/concat.h"
#include "suites/checks/watched/job/watched_judgement.h"

namespace graphproof::checks::watched::d61 {
namespace {

// CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED to CUDA_ERROR_CAPTURED_EVENT (907), and WRONG_THREAD (908).
// Other codes, such as NOT_READY of an event query, have nothing to do with the capture.
bool refused(std::int64_t result) { return result >= 900 && result <= 908; }

/// Autograd's device threads run the backward pass of a step that another thread captures. What is
/// refused to them is a mistake of that step, which D19 reports.
bool of_autograd(const std::string& thread) { return thread.starts_with("pt_autograd"); }

std::string named(std::int64_t thread, const std::string& name) {
  return name.empty() ? concat("thread ", thread) : concat("thread ", thread, " (", name, ")");
}

}  // namespace

record::CheckResult foreign_threads(WatchedJudgement& judgement, const WatchedJob& job) {
  int captures = 0;
  for (const JobProcess& process : job.processes) {
    std::map<std::int64_t, std::string> names;
    for (const record::WatchedThread& thread : process.line().threads)
      names[thread.thread] = thread.name;
    for (const auto& capture : process.of<record::WatchedCaptureLine>()) {
      if (capture.ended) judgement.confirm(process);
      if (capture.failed_calls_left_out.value_or(0) > 0)
        judgement.unexercised(concat(process.title(), ": ", *capture.failed_calls_left_out,
                                     " failed calls during capture ", capture.capture,
                                     " were not kept"));
      ++captures;
      const std::string which = concat("capture ", capture.capture, captured_at(capture));
      for (const auto& call : process.of<record::ForeignCallLine>()) {
        if (call.capture != capture.capture || call.thread == capture.thread) continue;
        if (!refused(call.result) || of_autograd(call.thread_name)) continue;
        judgement.defect(
            process,
            {.what = concat("another thread called the driver during ", which, ", and was refused"),
             .got = concat(call.function, " of ", named(call.thread, call.thread_name),
                           " failed with ", call.result),
             .want = "no call that a capture forbids, from any thread",
             .why =
                 "in the mode " + capture.mode + " such a call fails and makes the capture invalid",
             .next = "let that thread do it before the capture, or capture with "
                     "capture_error_mode=\"thread_local\""});
      }
      for (const auto& [thread, calls] : capture.work_by_thread) {
        const std::int64_t id = std::strtoll(thread.c_str(), nullptr, 10);
        if (id == capture.thread || of_autograd(names[id])) continue;
        judgement.defect(
            process, {.what = concat("another thread added work to ", which),
                      .got = concat(calls, " calls of ", named(id, names[id])),
                      .want = "work of the thread that captures, and of autograd's threads",
                      .why = "the order of the nodes depends on which thread was faster, so "
                             "each capture may be another graph",
                      .next = "keep other threads off the capturing streams during the capture"});
      }
      if (capture.ended && capture.end_thread != 0 && capture.end_thread != capture.thread)
        judgement.defect(
            process,
            {.what = concat(which, ", was ended by another thread"),
             .got = concat("begun by ", named(capture.thread, names[capture.thread]), ", ended by ",
                           named(capture.end_thread, names[capture.end_thread])),
             .want = "begin and end on one thread",
             .why = "in the modes global and thread_local the driver refuses it",
             .next = "end the capture on the thread that began it"});
    }
  }
  return judgement.result(concat(captures, " captures without a forbidden call of other threads"),
                          "no forbidden call and no work of other threads during a capture");
}

}  // namespace graphproof::checks::watched::d61
