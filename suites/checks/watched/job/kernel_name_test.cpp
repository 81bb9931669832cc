#include "suites/checks/watched/job/kernel_name.h"

#include <gtest/gtest.h>

#include <string>

namespace graphproof::checks::watched {
namespace {

TEST(KernelName, MangledNamesAreReadableAndOthersStay) {
  struct Row {
    const char* name;
    const char* text;
  };
  const Row rows[] = {
      {"scale", "scale"},
      {"nvjet_tst_128x64_64x8", "nvjet_tst_128x64_64x8"},
      {"", ""},
      {"_Z31ncclDevKernel_AllReduce_Sum_f32ILi4EEvPf", "ncclDevKernel_AllReduce_Sum_f32<4>"},
      {"_Z5scalePfi", "scale"},
      // `cut` inside namespaces, with parameters that have brackets of their own.
      {"_ZN2at6native12_GLOBAL__N_13cutIfEEvPT_PFviE",
       "at::native::(anonymous namespace)::cut<float>"},
      {"_Zbroken", "_Zbroken"},
      // Cut by the probe.
      {"_ZN2at6native12_GLOBAL__N_111elementwiseIN3c10",
       "at::native::(anonymous namespace)::"
       "elementwise<...>"},
      {"_ZN2at6nat", "at"},
  };
  for (const Row& row : rows) EXPECT_EQ(readable_name(row.name), row.text) << row.name;
}

TEST(KernelName, ALongNameKeepsItsEnds) {
  const std::string name = "begin" + std::string(1000, 'x') + "end";
  const std::string text = readable_name(name);
  EXPECT_EQ(text.size(), kLongestKernelName);
  EXPECT_TRUE(text.starts_with("beginxxx")) << text;
  EXPECT_TRUE(text.ends_with("xxxend")) << text;
  EXPECT_NE(text.find("..."), std::string::npos);
  EXPECT_EQ(readable_name(std::string(kLongestKernelName, 'y')).size(), kLongestKernelName);
}

}  // namespace
}  // namespace graphproof::checks::watched
