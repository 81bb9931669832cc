// Malformed and oversized matrix files: each is refused soon, in little memory, with one error that
// names its place.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <time.h>

#include "matrix/plan/plan.h"
#include "matrix/testing/thrown.h"

namespace graphproof::matrix {
namespace {

constexpr double kMostSeconds = 5;    // of CPU time; on a quiet machine the slowest takes a tenth
constexpr long kMostKiB = 1'500'000;  // peak memory of the whole test program

double cpu_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

class BadInputTest : public testing::Test {
 protected:
  ~BadInputTest() override {
    EXPECT_LT(cpu_seconds() - began_, kMostSeconds);
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    EXPECT_LT(usage.ru_maxrss, kMostKiB);
  }

  static std::string whole(const std::string& members) {
    return "{\"schema\": \"graphproof-matrix/1\",\n" + members + "}";
  }
  MatrixFile parse(const std::string& text) const {
    return parse_matrix_file(text, "m.json", catalogue_, {});
  }
  Plan plan(const std::string& members) const {
    return make_plan(parse(whole(members)), catalogue_, "p",
                     {.device = "sim", .slots = 4, .stack = {}}, std::nullopt);
  }

  static std::string numbers(int count) {
    std::string list = "1";
    for (int i = 2; i <= count; ++i) list += ", " + std::to_string(i);
    return list;
  }
  static std::string repeated(const std::string& part, int count) {
    std::string text;
    for (int i = 0; i < count; ++i) text += (i > 0 ? ", " : "") + part;
    return text;
  }

  inline static const Catalogue catalogue_ = load_catalogue();  // read once, never changed
  const double began_ = cpu_seconds();
};

TEST_F(BadInputTest, EachMistakeIsNamedAtItsPlace) {
  const struct {
    std::string text;
    const char *what, *place;
  } rows[] = {
      {whole(R"("define": {"a": "b + 1", "b": "tp * c", "c": "a"})"), "the define `a` needs itself",
       "2:17"},
      {whole(R"("define": {"a": "a"})"), "the define `a` needs itself", "2:17"},
      {whole("\"axes\": {\"tp\": [1]},\n\"axes\": {\"dp\": [1]}"), "the key `axes` appears twice",
       "3:1"},
      {whole("\"axes\": {\"tp\": [1],\n\"tp\": [2]}"), "the key `tp` appears twice", "3:1"},
      {whole("\"axes\": {\"tp\": [\"\xff\"]}"), "invalid UTF-8", "2:18"},
      {whole("\"axes\": {\"tp\": [9223372036854775808]}"),
       "the number 9223372036854775808 is out of range", "2:17"},
      {whole("\"axes\": {\"tp\": [1e400]}"), "the number 1e400 is out of range", "2:17"},
      {whole("\"axes\": {\"tp\": [1e2]}"), "a value of the wrong type for axis `tp`", "2:17"},
      {whole("\"require\": [{\"id\": \"a\", \"why\": \"w\", \"expr\": \"tp < "
             "9223372036854775808\"}]"),
       "the number 9223372036854775808 is out of range", "2:51"},
      {whole("\"require\": [{\"id\": \"a\", \"why\": \"w\", \"expr\": \"tp < 1e400\"}]"),
       "`1e400` is neither a number nor a name", "2:51"},
      {whole("\"profiles\": {\"p\": {\"seed\": 9223372036854775808}}"),
       "the number 9223372036854775808 is out of range", "2:28"},
      {whole("\"profiles\": {\"p\": {\"budget\": \"9223372036854775807h\"}}"),
       "a duration that can't be read", "2:30"},
      {std::string(1'000'000, '['), "nested too deeply", "1:66"},
      {whole("\"require\": [{\"id\": \"a\", \"why\": \"w\", \"expr\": \"" +
             std::string(10'000, '(') + "\"}]"),
       "an expression nested too deeply", "2:246"},
      {whole("\"axes\": {\"tp\": {\"values\": [1, 2], \"weigth\": {}}}"), "unknown key `weigth`",
       "2:35"},
      {whole("\"axes\": {\"tp\": {\"values\": [1, 2], \"weight\": {\"3\": 5}}}"),
       "`3` is no value of axis `tp` in this file", "2:46"},
      {whole("\"axes\": {\"tp\": {\"values\": [1, 2], \"weight\": {\"2\": 0}}}"),
       "the number 0 is out of range", "2:51"},
      {std::string(1 << 24, ' ') + "{}", "the matrix file is too large", "1:1"},
      {whole("\"axes\": {\"seq_length\": [" + numbers(100'001) + "]}"),
       "too many values of axis `seq_length`", "2:24"},
      {whole("\"require\": [" + repeated("1", 10'001) + "]"), "too many constraints", "2:12"},
      {whole("\"include\": [" + repeated("{}", 100'001) + "]"), "too many rows", "2:12"},
  };
  for (const auto& row : rows) {
    const Problem problem = thrown([&] { parse(row.text); });
    EXPECT_EQ(problem.what, row.what);
    EXPECT_EQ(at(problem), row.place) << row.what;
    EXPECT_FALSE(problem.next.empty()) << row.what;
  }
}

TEST_F(BadInputTest, CycleOfDefinesIsNamed) {
  EXPECT_EQ(
      thrown([&] { parse(whole(R"("define": {"a": "b + 1", "b": "tp * c", "c": "a"})")); }).why,
      "a -> b -> c -> a");
}

TEST_F(BadInputTest, DefinesMayBeInAnyOrder) {
  const MatrixFile file = parse(whole(
      R"("define": {"a": "b + 1", "b": "tp * 2"}, "axes": {"tp": [1, 2]},
         "require": [{"id": "x", "why": "w", "expr": "a == 3"}])"));
  EXPECT_EQ(file.constraints.at(0).require.text(), "a == 3");
}

TEST_F(BadInputTest, DefineOfABaseThatIsReplacedByItselfIsRefused) {
  const FileReader read = [](const std::string&) {
    return whole(R"("define": {"world": "tp * dp"})");
  };
  const Problem problem = thrown([&] {
    parse_matrix_file(whole(R"("extends": "base.json", "define": {"world": "world * pp"})"),
                      "m.json", catalogue_, read);
  });
  EXPECT_EQ(problem.what, "the define `world` needs itself");
}

TEST_F(BadInputTest, TenThousandValuesAreAccepted) {
  const Plan counted = plan(
      "\"axes\": {\"seq_length\": [" + numbers(10'000) +
      "], \"tp\": [1, 2]}, \"require\": [{\"id\": \"even\", \"why\": \"w\", \"expr\": \"seq_length "
      "% 2 == 0 or seq_length == 1 or tp == 2\"}], \"profiles\": {\"p\": {\"sample\": 50}}");
  EXPECT_EQ(counted.raw.text(), "20000");
  EXPECT_EQ(counted.valid.text(), "15001");
  EXPECT_EQ(counted.lines.size(), 50u);
}

TEST_F(BadInputTest, OfTenThousandValuesTheFirstThatNoRowHasIsNamed) {
  const Problem problem = thrown([&] {
    plan("\"axes\": {\"seq_length\": [" + numbers(10'000) +
         "], \"tp\": [1, 2]}, \"require\": [{\"id\": \"few\", \"why\": \"w\", \"expr\": "
         "\"seq_length < 5000\"}], \"profiles\": {\"p\": {}}");
  });
  EXPECT_EQ(problem.what, "no valid row can have `seq_length == 5000`");
  EXPECT_EQ(problem.got, "5001 of 10000 values that no valid row has");
  EXPECT_EQ(problem.why, "forbidden by few");
  EXPECT_EQ(problem.place.line, 2);
}

TEST_F(BadInputTest, LongLineOfValuesIsReadInTimeThatGrowsWithItsLength) {
  // Each of 100,000 values has a place, in one line of 700 KB that has other characters than ASCII.
  const std::string comment = "/* \u00e9 */ ";
  EXPECT_EQ(parse(whole("\"axes\": {" + comment + "\"seq_length\": [" + numbers(100'000) + "]}"))
                .axes.at(0)
                .values.size(),
            100'000u);
}

TEST_F(BadInputTest, ManyKeysOfOneObjectAreReadInTimeThatGrowsWithTheirNumber) {
  std::string axes;
  for (int i = 0; i < 50'000; ++i)
    axes += (i > 0 ? ", " : "") + std::string("\"env.A") + std::to_string(i) + "\": [\"0\", \"1\"]";
  EXPECT_EQ(thrown([&] { parse(whole("\"axes\": {" + axes + "}")); }).what, "too many axes");
}

}  // namespace
}  // namespace graphproof::matrix
