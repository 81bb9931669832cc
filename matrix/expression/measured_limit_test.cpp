#include "matrix/expression/measured_limit.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "matrix/testing/loaded_catalogue.h"
#include "matrix/testing/thrown.h"

namespace graphproof::matrix {
namespace {

std::vector<MeasuredLimit> parse(const std::string& text,
                                 std::span<const std::string_view> quantities = kTimeQuantities) {
  return parse_limit(text, Origin::option("perf_limit", text), quantities, catalogue().axes);
}

double excess(const std::string& text, const std::map<std::string, double>& numbers,
              std::span<const std::string_view> quantities = kTimeQuantities) {
  return parse(text, quantities).front().excess([&](const std::string& name) {
    return numbers.at(name);
  });
}

TEST(MeasuredLimit, IsExceededAboveOne) {
  const std::map<std::string, double> times = {{"eager_step", 10}, {"graph_step", 10.2}};
  EXPECT_DOUBLE_EQ(excess("graph_step <= 1.02 * eager_step", times), 1.0);
  EXPECT_DOUBLE_EQ(excess("graph_step <= eager_step", times), 1.02);
  EXPECT_DOUBLE_EQ(excess("eager_step >= 2 * graph_step", times), 2.04);
  EXPECT_DOUBLE_EQ(excess("graph_step <= 5.1", times), 2.0);
  EXPECT_TRUE(std::isinf(excess("graph_step <= eager_step - 10", times)));
}

TEST(MeasuredLimit, MayDependOnTheCase) {
  const std::map<std::string, double> numbers = {
      {"eager_peak", 1 << 20}, {"graph_peak", 4 << 20}, {"microbatches", 4}};
  EXPECT_DOUBLE_EQ(
      excess("graph_peak <= (1 + 0.25 * microbatches) * eager_peak", numbers, kMemoryQuantities),
      2.0);
  EXPECT_DOUBLE_EQ(excess("graph_peak <= eager_peak + 3 * MiB", numbers, kMemoryQuantities), 1.0);
}

TEST(MeasuredLimit, AndJoinsSeveral) {
  const auto limits = parse("graph_step <= 1.02 * eager_step and graph_launch <= 0.5");
  ASSERT_EQ(limits.size(), 2U);
  EXPECT_EQ(limits[0].text, "graph_step <= 1.02 * eager_step");
  EXPECT_EQ(limits[0].named(kTimeQuantities),
            (std::vector<std::string>{"eager_step", "graph_step"}));
  EXPECT_EQ(limits[1].text, "graph_launch <= 0.5");
}

TEST(MeasuredLimit, EveryMistakeNamesItsPlaceAndAWayOut) {
  struct Mistake {
    const char* text;
    const char* what;
    const char* next;
  };
  for (const Mistake& mistake : {
           Mistake{"graph_stop <= eager_step", "`graph_stop` is not measured",
                   "did you mean `graph_step`?"},
           {"graph_peak <= eager_peak", "`graph_peak` is not measured", "name a quantity"},
           {"impl <= graph_step", "`impl` is not measured", "name a quantity"},
           {"2 <= 3", "names no measured quantity", "compare a quantity"},
           {"pp <= 3", "names no measured quantity", "compare a quantity"},
           {"graph_step", "a limit that is no comparison", "1.02 * eager_step"},
           {"graph_step == eager_step", "a limit that is no comparison", "1.02 * eager_step"},
           {"graph_step <= eager_step or pp >= 2", "a limit that is no comparison",
            "1.02 * eager_step"},
           {"graph_step <= 1.0.2 * eager_step", "something else than arithmetic",
            "1.02 * eager_step"},
           {"graph_step <= max(1, 2) * eager_step", "something else than arithmetic",
            "1.02 * eager_step"},
           {"graph_step <= -eager_step", "something else than arithmetic", "1.02 * eager_step"},
           {"graph_step <=", "the expression breaks off", "correct the expression"},
       }) {
    const Problem problem = thrown([&] { parse(mistake.text); });
    EXPECT_NE(problem.what.find(mistake.what), std::string::npos)
        << mistake.text << ": " << problem.what;
    EXPECT_NE(problem.next.find(mistake.next), std::string::npos)
        << mistake.text << ": " << problem.next;
    EXPECT_EQ(problem.place.source, "perf_limit");
  }
}

}  // namespace
}  // namespace graphproof::matrix
