#include "suites/checks/process/sanitizer_log.h"

#include <gtest/gtest.h>

namespace graphproof::checks {
namespace {

// As version 2025.3 prints an access beyond the end of an allocation, with the names shortened.
constexpr const char* kOverrun =
    "========= COMPUTE-SANITIZER\n"
    "========= Invalid __global__ write of size 16 bytes\n"
    "=========     at void at::native::vectorized_elementwise_kernel<(int)4, "
    "at::native::FillFunctor<float>, std::array<char *, (unsigned long)1>>(int, T2, T3)+0x1f0\n"
    "=========     by thread (15,0,0) in block (0,0,0)\n"
    "=========     Access to 0x7f2b0ba000f0 is out of bounds\n"
    "=========     and is 1 bytes after the nearest allocation at 0x7f2b0ba00000 of size 252 "
    "bytes\n"
    "=========     Saved host backtrace up to driver entry point at kernel launch time\n"
    "=========         Host Frame: cuLaunchKernel [0x2f3b17] in libcuda.so.1\n"
    "=========         Host Frame: at::native::fill_kernel_cuda(at::TensorIterator&, c10::Scalar "
    "const&) [0x1a2b] in libtorch_cuda.so\n"
    "=========         Host Frame: graphproof::workloads::Layer::forward() [0x99] in "
    "graphproof-rank-cuda\n"
    "=========         Host Frame: main [0x11] in graphproof-rank-cuda\n"
    "=========\n";

TEST(SanitizerLog, NamesKindKernelAddressAndTheFirstFrameOfOurs) {
  const SanitizerLog log =
      read_sanitizer_log(std::string(kOverrun) + "========= ERROR SUMMARY: 1 error\n");
  ASSERT_EQ(log.reports.size(), 1u);
  EXPECT_EQ(log.reports[0],
            (SanitizerReport{
                .kind = "Invalid __global__ write of size 16 bytes",
                .kernel = "void at::native::vectorized_elementwise_kernel<(int)4, "
                          "at::native::FillFunctor<float>, std::array<char *, (unsigned "
                          "long)1>>(int, T2, T3)",
                .address = "Access to 0x7f2b0ba000f0 is out of bounds and is 1 bytes after the "
                           "nearest allocation at 0x7f2b0ba00000 of size 252 bytes",
                .host_frame = "graphproof::workloads::Layer::forward() [0x99] in "
                              "graphproof-rank-cuda"}));
  EXPECT_EQ(log.errors, 1);
  EXPECT_EQ(log.trouble, "");
}

TEST(SanitizerLog, ReadsTheFormsOfItsToolsAndVersions) {
  struct Form {
    const char* lines;
    SanitizerReport want;
  };
  const Form forms[] = {
      {"========= Uninitialized __global__ memory read of size 4 bytes\n"
       "=========     at vectorAdd(int *)+0x70 in /home/cuda/memset_error.cu:41\n"
       "=========     by thread (31,0,0) in block (1,0,0)\n"
       "=========     Address 0x7f3c7ec000fc\n",
       {"Uninitialized __global__ memory read of size 4 bytes", "vectorAdd(int *)",
        "Address 0x7f3c7ec000fc", ""}},
      {"========= Invalid __global__ write of size 4 bytes\n"
       "=========     at 0x3c8 in /code/lab.cu:42:affine_decrypt(int*,int*)\n"
       "=========     by thread (0,0,0) in block (0,0,0)\n"
       "=========     Address 0x4 is out of bounds\n"
       "=========     Saved host backtrace up to driver entry point at kernel launch time\n"
       "=========     Host Frame:cudaLaunchKernel [0x846eb]\n"
       "=========                in /home/x/lab\n",
       {"Invalid __global__ write of size 4 bytes", "/code/lab.cu:42:affine_decrypt(int*,int*)",
        "Address 0x4 is out of bounds", "cudaLaunchKernel [0x846eb]"}},
      {"========= Error: Race reported between Write access at sumKernel(int *, int *)+0x100 in "
       "block_error.cu:41\n"
       "=========     and Read access at sumKernel(int *, int *)+0x170 in block_error.cu:49 [508 "
       "hazards]\n",
       {"Error: Race reported between Write access", "sumKernel(int *, int *)", "", ""}},
      {"========= Barrier error detected. Divergent thread(s) in warp.\n"
       "=========     at myKernel()+0x110 in divergent_threads.cu:59\n"
       "=========     by thread (32,0,0) in block (0,0,0)\n",
       {"Barrier error detected. Divergent thread(s) in warp.", "myKernel()", "", ""}}};
  for (const Form& form : forms) {
    const SanitizerLog log =
        read_sanitizer_log("========= COMPUTE-SANITIZER\n" + std::string(form.lines) +
                           "=========\n========= ERROR SUMMARY: 1 error\n");
    ASSERT_EQ(log.reports.size(), 1u) << form.lines;
    EXPECT_EQ(log.reports[0], form.want) << form.lines;
    EXPECT_EQ(log.trouble, "") << form.lines;
  }
}

TEST(SanitizerLog, CountsWhatItsSummariesSay) {
  const std::string begin = "========= COMPUTE-SANITIZER\n";
  EXPECT_EQ(read_sanitizer_log(begin + "========= ERROR SUMMARY: 0 errors\n").errors, 0);
  EXPECT_EQ(read_sanitizer_log(begin + "========= RACECHECK SUMMARY: 2 hazards displayed (0 "
                                       "errors, 2 warnings)\n")
                .errors,
            2);
  EXPECT_EQ(read_sanitizer_log(begin + "========= ERROR SUMMARY: 257 errors\n========= ERROR "
                                       "SUMMARY: 157 errors were not printed. Use --print-limit "
                                       "option to adjust the number of printed errors\n")
                .errors,
            257);
  EXPECT_EQ(read_sanitizer_log(begin + "========= LEAK SUMMARY: 0 bytes leaked in 0 allocations\n"
                                       "========= ERROR SUMMARY: 3 errors\n")
                .errors,
            3);
  // Two processes, of which the second has an error.
  EXPECT_EQ(read_sanitizer_log(begin + "========= ERROR SUMMARY: 0 errors\n" + kOverrun +
                               "========= ERROR SUMMARY: 1 error\n")
                .errors,
            1);
}

TEST(SanitizerLog, HasNoCountUntilEveryProcessHasItsSummary) {
  const std::string begin = "========= COMPUTE-SANITIZER\n",
                    end = "========= ERROR SUMMARY: 0 errors\n";
  for (const std::string& text :
       {std::string(), begin, end, begin + "program output\n", begin + end + begin,
        begin + "========= ERROR SUMMARY: 0", begin + "========= ERROR SUMMARY: 0 err",
        begin + "========= RACECHECK SUMMARY: 0 hazards displayed (0 errors",
        begin + "ERROR SUMMARY: 0 errors\n"})
    EXPECT_FALSE(read_sanitizer_log(text).errors) << text;
  // Every beginning of a log is a log that was cut off.
  const std::string whole = begin + end;
  for (std::size_t size = 0; size + 2 < whole.size(); ++size)
    EXPECT_FALSE(read_sanitizer_log(whole.substr(0, size)).errors) << size;
}

TEST(SanitizerLog, TellsTroubleOfTheTool) {
  for (const char* line :
       {"Internal Sanitizer Error: The Sanitizer encountered an error while launching kernel_name "
        "and didn't track the launch. Errors might go undetected.",
        "Error: Target application terminated before first instrumented API call",
        "Target application terminated before first instrumented API call",
        "Error: process didn't terminate successfully", "Target application returned an error",
        "Error: Device not supported. Please refer to the \"Supported Devices\" section of the "
        "sanitizer documentation",
        "Unable to find injection library libsanitizer-collection.so",
        "Error: Could not connect to target application with pid 4710",
        "Warning: Detected overflow of tracked cuda::barrier structures. Results might be "
        "incorrect. Try using --num-cuda-barriers to fix the issue"}) {
    const SanitizerLog log =
        read_sanitizer_log("========= COMPUTE-SANITIZER\n========= " + std::string(line) +
                           "\n=========     The application may have hit an error.\n"
                           "========= ERROR SUMMARY: 0 errors\n");
    EXPECT_EQ(log.trouble, line);
    EXPECT_TRUE(log.reports.empty()) << line;
  }
  EXPECT_EQ(read_sanitizer_log(kOverrun).trouble, "");
}

TEST(SanitizerLog, AllowsOnlyTheKindInTheKernelOfARowOfTheTool) {
  const AllowedReport rows[] = {{"initcheck", "Uninitialized __global__", "scan_kernel", "a link"}};
  const SanitizerReport known{"Uninitialized __global__ memory read of size 4 bytes",
                              "void scan_kernel<int>(int *)", "", ""};
  EXPECT_TRUE(allowed(known, "initcheck", rows));
  EXPECT_FALSE(allowed(known, "memcheck", rows));
  SanitizerReport other = known;
  other.kernel = "sum_kernel(int *)";
  EXPECT_FALSE(allowed(other, "initcheck", rows));
  other = known;
  other.kind = "Invalid __global__ read of size 4 bytes";
  EXPECT_FALSE(allowed(other, "initcheck", rows));
  for (const AllowedReport& row : allowed_reports()) {
    EXPECT_FALSE(row.source.empty()) << row.kernel;
    EXPECT_FALSE(row.kernel.empty()) << row.source;
  }
}

}  // namespace
}  // namespace graphproof::checks
