#include "suites/checks/process/log_signatures.h"

#include <array>
#include <optional>
#include <regex>

namespace graphproof::checks {
namespace {

// Lines are cut to this many characters for matching, because std::regex recurses once for each
// character.
constexpr std::size_t kLongestLine = 2048;

constexpr std::array kSignatures = {
    LogSignature{"nccl_warn", "NCCL WARN", R"(\bNCCL WARN\b)", "NCCL reports what it could not do",
                 "node1:4710:4720 [0] misc/socket.cc:50 NCCL WARN socketProgress: Connection "
                 "closed by remote peer",
                 "node1:4710:4710 [0] NCCL INFO NCCL_DEBUG set by environment to WARN"},
    LogSignature{
        "nccl_error_code", "nccl",
        R"(\bnccl(UnhandledCudaError|SystemError|InternalError|InvalidUsage|RemoteError)\b)",
        "an NCCL call returned an error",
        "all_reduce failed: ncclUnhandledCudaError (run with NCCL_DEBUG=INFO)",
        "NCCL version 2.28.9+cuda13.0"},
    LogSignature{"cuda_error", "CUDA error", R"(\bCUDA error\b)", "a CUDA call returned an error",
                 "CUDA error: operation not permitted when stream is capturing",
                 "0 CUDA errors seen, CUDA errors would stand here"},
    LogSignature{"cuda_driver_error", "CUDA_ERROR_", R"(\bCUDA_ERROR_(?!NOT_READY\b)[A-Z]+)",
                 "a CUDA driver call returned an error", "cuLaunchKernel: CUDA_ERROR_LAUNCH_FAILED",
                 "cuEventQuery: CUDA_ERROR_NOT_READY"},
    LogSignature{"illegal_access", "an illegal memory access", R"(\ban illegal memory access\b)",
                 "a kernel read or wrote memory that is not its own",
                 "an illegal memory access was encountered", "no illegal memory accesses"},
    LogSignature{"xid", "Xid", R"(\bXid\b\s*(\(|[:=]?\s*[1-9]))", "the driver reported a GPU error",
                 "NVRM: Xid (PCI:0000:3b:00): 79, pid=4710, GPU has fallen off the bus",
                 "Xid watch armed, Xid: 0"},
    LogSignature{"mpi_abort", "MPI_ABORT", R"(\bMPI_ABORT\b)", "a rank ended all others",
                 "MPI_ABORT was invoked on rank 1 in communicator MPI_COMM_WORLD",
                 "MPI_Abort is not called here"},
    LogSignature{"mpi_error", "MPI_ERR", R"(\bMPI_ERR_[A-Z]+|\bMPI_ERRORS_ARE_FATAL\b)",
                 "an MPI call returned an error", "*** MPI_ERR_TRUNCATE: message truncated",
                 "MPI_ERRORS_RETURN is set"},
    LogSignature{"mpi_signal", "Process received signal",
                 R"(\*\*\* Process received signal \*\*\*)", "a rank died by a signal",
                 "[node1:04710] *** Process received signal ***",
                 "a process that received signal 0"},
    LogSignature{
        "terminate", "terminate called", R"(\bterminate called (after throwing|without an active))",
        "an exception left main or a thread",
        "terminate called after throwing an instance of 'c10::Error'", "terminate called for: no"},
    LogSignature{"segmentation_fault", "Segmentation fault", R"(\bSegmentation fault\b)",
                 "a rank read or wrote memory that is not its own",
                 "Signal: Segmentation fault (11)", "Segmentation faults are reported here"},
    LogSignature{"host_sanitizer", "Sanitizer",
                 R"(\b(ERROR|WARNING): (Address|Thread|Leak|Memory|UndefinedBehavior)Sanitizer\b)",
                 "a sanitizer of the compiler found a defect",
                 "==4710==ERROR: AddressSanitizer: heap-use-after-free on address 0x602",
                 "AddressSanitizer is on"},
    LogSignature{"undefined_behaviour", "runtime error: ", R"(:\d+:\d+: runtime error: )",
                 "a sanitizer of the compiler found undefined behaviour",
                 "graph.cpp:12:7: runtime error: signed integer overflow",
                 "runtime error: none so far"},
    LogSignature{"compute_sanitizer", "========= ",
                 R"(^=+ (Invalid |Uninitialized |Program hit |Race reported|Error: Race)"
                 R"(|ERROR SUMMARY: [1-9]))",
                 "compute-sanitizer found a defect in a kernel",
                 "========= Invalid __global__ write of size 4 bytes",
                 "========= ERROR SUMMARY: 0 errors"},
    LogSignature{"accumulate_grad_stream", "AccumulateGrad",
                 R"(AccumulateGrad.*stream does not match)",
                 "a gradient is accumulated on another stream than it was computed on, which "
                 "breaks or slows a capture",
                 "UserWarning: The AccumulateGrad node's stream does not match the stream of the "
                 "node that produced "
                 "the incoming gradient.",
                 "AccumulateGrad runs on the capture stream"},
    LogSignature{
        "no_autograd_kernel", "autograd kernel was not registered",
        R"(\bautograd kernel was not registered\b)",
        "PyTorch warns of silently wrong gradients of a custom operator",
        "graphproof::all_reduce: an autograd kernel was not registered to the Autograd key(s)",
        "an autograd kernel is registered"},
};

}  // namespace

std::span<const LogSignature> log_signatures() { return kSignatures; }

std::vector<LogHit> scan_log(std::string_view log, std::size_t limit) {
  // Patterns are compiled when they are first needed: most logs contain no literal, and compiling
  // all patterns would take longer than reading such a log.
  std::array<std::optional<std::regex>, kSignatures.size()> patterns;
  std::vector<LogHit> hits;
  for (std::size_t number = 1; !log.empty() && hits.size() < limit; ++number) {
    const std::size_t end = log.find('\n');
    const std::string_view whole = log.substr(0, end);
    log.remove_prefix(end == std::string_view::npos ? log.size() : end + 1);
    for (std::size_t index = 0; index < kSignatures.size(); ++index) {
      const LogSignature& signature = kSignatures[index];
      const std::size_t at = whole.find(signature.literal);
      if (at == std::string_view::npos) continue;
      // The part of the line around the literal, so that a signature late in a long line is found.
      const std::size_t begin = at < kLongestLine / 2 ? 0 : at - kLongestLine / 2;
      const std::string_view line = whole.substr(begin, kLongestLine);
      std::optional<std::regex>& pattern = patterns[index];
      if (!pattern) pattern.emplace(signature.pattern.begin(), signature.pattern.end());
      if (!std::regex_search(line.begin(), line.end(), *pattern)) continue;
      constexpr std::size_t kShown = 200;
      hits.push_back({&signature, number, std::string(line.substr(0, kShown))});
      break;
    }
  }
  return hits;
}

}  // namespace graphproof::checks
