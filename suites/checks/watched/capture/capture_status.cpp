// D19 in a watched run: how each capture ended, by the driver and by PyTorch.
#include "suites/checks/attempt/concat.h"
#include "suites/checks/watched/job/watched_judgement.h"

namespace graphproof::checks::watched::d19 {
namespace {

bool has(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

/// What cures a failed capture, by its error code and by what PyTorch raised.
std::string cure(const record::WatchedCaptureLine& capture) {
  switch (capture.result) {
    case 900:  // CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED
      return "move the call that the driver refused out of the capture";
    case 901:  // CUDA_ERROR_STREAM_CAPTURE_INVALIDATED
      return "find the call that was refused before it: D61.foreign_threads names calls of other "
             "threads, evidence/ those of this one";
    case 904:  // CUDA_ERROR_STREAM_CAPTURE_UNJOINED
      return "let the capturing stream wait for every other stream that took part "
             "(torch.cuda.current_stream().wait_stream(side)) before the capture ends";
    case 905:  // CUDA_ERROR_STREAM_CAPTURE_ISOLATION
      return "do not wait in the capture for an event that was recorded before it";
    case 906:  // CUDA_ERROR_STREAM_CAPTURE_IMPLICIT
      return "keep work of the default stream out of the capture; D68.stream_of_accumulators names "
             "a common cause";
    default:
      break;
  }
  if (has(capture.error, "generator"))
    return "register the generator before the capture: graph.register_generator_state(generator)";
  if (has(capture.error, "out of memory") || has(capture.error, "OutOfMemory"))
    return "give memory back before the capture (torch.cuda.empty_cache()), share one pool between "
           "graphs, or capture less";
  return "capture without the statement that failed, or move it out of the capture";
}

std::string got(const record::WatchedCaptureLine& capture) {
  std::string text = capture.error.empty() ? "" : first_line(capture.error);
  if (capture.result != 0)
    text = concat(capture.result_name, " (", capture.result, ")", text.empty() ? "" : "; ", text);
  if (!capture.driver_words.empty())
    text += concat("; the driver logged: ", capture.driver_words.back());
  return text;
}

}  // namespace

record::CheckResult capture_status(WatchedJudgement& judgement, const WatchedJob& job) {
  int captures = 0;
  for (const JobProcess& process : job.processes) {
    for (const auto& capture : process.of<record::WatchedCaptureLine>()) {
      ++captures;
      const std::string which = concat("capture ", capture.capture, captured_at(capture));
      if (capture.result != 0 || !capture.error.empty())
        judgement.defect(process, {.what = concat(which, ", failed"),
                                   .got = got(capture),
                                   .want = "a capture that ends without an error",
                                   .why = "there is no graph of this work; a program that catches "
                                          "the error runs it eagerly from then on",
                                   .next = cure(capture)});
      else if (!capture.ended && process.line().state == "ended")
        judgement.defect(process, {.what = concat(which, ", was never ended"),
                                   .got = "the process ended while the capture was open",
                                   .want = "an end for every capture",
                                   .why = "there is no graph of this work",
                                   .next = "end the capture, also where an exception leaves it"});
      else if (!capture.ended)
        judgement.unexercised(concat(process.title(), " was cut short during ", which));
      else
        judgement.confirm(process);
    }
    // A graph that was built node by node has no capture.
    if (process.line().captures == 0 && process.line().executables > 0)
      judgement.excuse(process, "its graphs were not captured");
  }
  return judgement.result(concat(captures, " captures ended without an error"),
                          "every capture ends without an error");
}

}  // namespace graphproof::checks::watched::d19
