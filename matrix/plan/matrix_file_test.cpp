#include "matrix/plan/matrix_file.h"

#include <gtest/gtest.h>

#include "matrix/testing/thrown.h"

namespace graphproof::matrix {
namespace {

class MatrixFileTest : public testing::Test {
 protected:
  MatrixFile parse(const std::string& members,
                   const std::map<std::string, std::string>& files = {}) const {
    const FileReader read = [&](const std::string& path) {
      const auto found = files.find(path);
      if (found != files.end()) return found->second;
      throw InputError({.what = "no file " + path,
                        .got = "",
                        .want = "",
                        .why = "",
                        .next = "name a file",
                        .place = {}});
    };
    return parse_matrix_file("{\"schema\": \"graphproof-matrix/1\",\n" + members + "}", "m.json",
                             catalogue_, read);
  }
  inline static const Catalogue catalogue_ = load_catalogue();  // read once, never changed
};

TEST_F(MatrixFileTest, ReadsEveryKindOfMember) {
  const MatrixFile file = parse(R"(
     "axes":    { "impl": ["none", "local", "full_iteration"], "tp": [1, 2], "pp": [1, 2],
                  "modules": { "subset_of": ["attn", "mlp", "moe_router"],
                              "when": "impl in {local, transformer_engine}" },
                  "env.NCCL_MAX_NCHANNELS": ["unset", "4"] },  // a variable of the environment
     "define":  { "world": "tp * pp * dp * cp" },
     "require": [ { "id": "fits", "expr": "world <= slots", "why": "the machine has no more",
                   "as": "skipped.gpus" },
                  { "id": "X1", "if": "impl == full_iteration", "then": "not nan_check_loss",
                   "why": "...", "negative": true } ],
     "exclude": [ { "arch": "sm_80", "precision": ["fp8_current", "fp8_delayed"] } ],
     "include": [ { "impl": "local", "modules": ["attn"], "tp": 2 } ],  // perhaps a partial case
     "known_issues": [ { "id": "NCCL-1",
                        "expr": "allocator == expandable and nccl_graph_register == unset",
                        "expect": "fail.hang.replay", "owner": "x", "until": "2027-03-01" } ],
     "oracle":  { "default": "bitwise",
                 "rules": [ { "when": "precision == fp8_current", "rtol": 0.02,
                             "why": "amax history differs" } ] },
     "perf": "graph_step <= 1.02 * eager_step",
     "memory": [ { "limit": "graph_peak <= 2.0 * eager_peak", "when": "impl == full_iteration" },
                 { "limit": "graph_peak <= eager_peak + 4 * GiB" } ],
     "limits":  { "init": "120s", "warmup": "60s", "capture": "60s", "replay": "10s",
                 "teardown_comm": "30s" },
     "profiles": { "nightly": { "cover": 2,
                               "groups": [ { "axes": ["impl", "modules", "recompute"],
                                             "cover": 3 } ],
                               "where": "world <= 8", "budget": "4h", "seed": 1,
                               "cost": "world * minutes" } })");
  ASSERT_EQ(file.axes.size(), 5u);
  EXPECT_EQ(file.axes[0].name, "impl");
  EXPECT_EQ(file.axes[1].name, "modules");
  EXPECT_EQ(file.axes[1].values.size(), 8u);
  EXPECT_EQ(file.axes[1].values[0], Value(std::vector<std::string>{}));
  EXPECT_TRUE(file.axes[1].when);
  EXPECT_EQ(file.axes[4].name, "env.NCCL_MAX_NCHANNELS");
  ASSERT_EQ(file.constraints.size(), 3u);
  EXPECT_EQ(file.constraints[0].skip_as, record::Verdict::from("skipped.gpus"));
  EXPECT_TRUE(file.constraints[1].negative);
  EXPECT_EQ(file.constraints[1].require.text(),
            "impl == full_iteration implies not nan_check_loss");
  EXPECT_EQ(file.constraints[2].id, "exclude.1");
  EXPECT_EQ(
      file.constraints[2].require.text(),
      "not (arch == \"sm_80\" and (precision == \"fp8_current\" or precision == \"fp8_delayed\"))");
  EXPECT_EQ(file.include.size(), 1u);
  EXPECT_EQ(file.known_issues.at(0).expect, "fail.hang.replay");
  EXPECT_EQ(file.oracle.at(0).tolerances.at("losses"), (Tolerance{.rtol = 0.02, .atol = 0}));
  EXPECT_EQ(file.oracle.at(0).tolerances.size(), kTensorClasses.size());
  ASSERT_EQ(file.stated_limits.size(), 3u);
  EXPECT_EQ(file.stated_limits[0].axis, "perf_limit");
  EXPECT_EQ(file.stated_limits[0].text, "graph_step <= 1.02 * eager_step");
  EXPECT_EQ(file.stated_limits[1].axis, "memory_limit");
  EXPECT_EQ(file.stated_limits[1].when.text(), "impl == full_iteration");
  EXPECT_EQ(file.limits.at(record::Phase::init), 120'000);
  EXPECT_EQ(file.profiles.at("nightly").budget_ms, 4 * 3'600'000);
  const CoverRequest& cover = file.profiles.at("nightly").cover.value();
  EXPECT_EQ(cover.strength, 2);
  EXPECT_EQ(cover.groups.at(0).axes, (std::vector<std::string>{"impl", "modules"}))
      << "recompute does not vary in this file";
  EXPECT_EQ(cover.groups.at(0).strength, 2) << "triples with an axis of one value are pairs";
  EXPECT_EQ(cover.cost->text(), "world * minutes");
  EXPECT_EQ(file.sha256.size(), 64u);
}

TEST_F(MatrixFileTest, EveryMistakeNamesItsPlaceAndAWayOut) {
  const struct {
    const char *members, *what, *place, *next;
  } rows[] = {
      {"\"axis\": {}", "unknown key `axis`", "2:1", "did you mean `axes`?"},
      {"\"axes\": {\"ipml\": [\"none\"]}", "unknown axis `ipml`", "2:10", "did you mean `impl`?"},
      {"\"axes\": {\"impl\": [\"none\",\n \"lokal\"]}", "`lokal` is no value of axis `impl`", "3:2",
       "did you mean `local`?"},
      {"\"axes\": {\"tp\": [\"2\"]}", "a value of the wrong type for axis `tp`", "2:17",
       "write an integer"},
      {"\"axes\": {\"tp\": [1, 1]}", "a value of axis `tp` appears twice", "2:20",
       "remove one of them"},
      {"\"axes\": {\"tp\": []}", "axis `tp` has no values", "2:16",
       "list values, or remove the axis"},
      {"\"axes\": {\"tp\": 2}", "an axis without values", "2:16", "write [value, value]"},
      {"\"axes\": {\"tp\": {\"subset_of\": [1]}}", "`subset_of` for axis `tp`, which is no set",
       "2:16", "use `values`"},
      {"\"axes\": {\"fault\": [\"none\", \"M01\"]}", "faults do not vary in a product", "2:19",
       "remove the axis"},
      {"\"axes\": {\"impl\": {\"values\": [\"none\"], \"when\": \"tp == 1\"}, \"tp\": [1, 2]}",
       "`when` of axis `impl` reads `tp`, which comes later", "2:47",
       "make the other axis depend on this one, or use `require`"},
      {"\"define\": {\"w\": \"tpp * 2\"}", "unknown name `tpp`", "2:18", "did you mean `tp`?"},
      {"\"define\": {\"tp\": \"1\"}", "`tp` can't be a define's name", "2:19",
       "choose another name"},
      {"\"require\": [{\"id\": \"a\", \"why\": \"w\", \"expr\": \"tp = 2\"}]",
       "`=` has no meaning in an expression", "2:49", "write == for equality"},
      {"\"require\": [{\"id\": \"a\", \"why\": \"w\", \"if\": \"true\"}]",
       "the key `then` is missing", "2:13", "add it"},
      {"\"require\": [{\"id\": \"a\", \"why\": \"w\"}]",
       "a constraint needs `expr`, or `if` with `then`", "2:13", "add or remove one"},
      {"\"require\": [{\"id\": \"a\", \"expr\": \"true\"}]", "the key `why` is missing", "2:13",
       "add `why`"},
      {"\"require\": [{\"id\": \"R035\", \"why\": \"w\", \"expr\": \"true\"}]",
       "the constraint `R035` appears twice", "2:20", "choose another id"},
      {"\"require\": [{\"id\": \"a\", \"why\": \"w\", \"expr\": \"true\", \"as\": "
       "\"skipped.gpu\"}]",
       "unknown value `skipped.gpu`", "2:59", "did you mean `skipped.gpus`?"},
      {"\"require\": [{\"id\": \"a\", \"why\": \"w\", \"expr\": \"true\", \"as\": "
       "\"skipped.gpus\", \"negative\": true}]",
       "`negative` and `as` together", "2:13", "remove one"},
      {"\"exclude\": [{}]", "an empty exclusion", "2:13", "name axes, or remove it"},
      {"\"exclude\": [{\"tp\": []}]", "axis `tp` without values", "2:20",
       "list values, or remove the axis"},
      {"\"include\": [{\"tp\": 65}]", "`65` is no value of axis `tp`", "2:20",
       "choose a number in the range"},
      {"\"known_issues\": [{\"id\": \"a\", \"expr\": \"true\", \"expect\": \"pass\", \"owner\": "
       "\"o\", \"until\": \"2027-01-01\"}]",
       "a known issue that is no failure", "2:56",
       "write the verdict that is expected, such as fail.hang.replay"},
      {"\"known_issues\": [{\"id\": \"a\", \"expr\": \"true\", \"expect\": \"fail.numerics\", "
       "\"owner\": \"o\", \"until\": \"2027-13-01\"}]",
       "a date that can't be read", "2:96", "write it as 2027-03-01"},
      {"\"known_issues\": [{\"id\": \"a\", \"expr\": \"true\", \"expect\": \"fail.numerics\", "
       "\"owner\": \"\", \"until\": \"2027-12-01\"}]",
       "a known issue without an owner", "2:82", "name a person or a team"},
      {"\"oracle\": {\"rules\": [{\"when\": \"true\", \"why\": \"\"}]}",
       "a tolerance without a reason", "2:46", "write why the results may differ"},
      {"\"oracle\": {\"rules\": [{\"when\": \"true\", \"why\": \"w\", \"rtol\": 2}]}",
       "the number is out of range", "2:59", "choose a number in the range"},
      {"\"oracle\": {\"rules\": [{\"when\": \"true\", \"rtol\": 1e-5}]}",
       "the key `why` is missing", "2:22", "add `why`"},
      {"\"oracle\": {\"rules\": [{\"when\": \"true\", \"why\": \"w\"}]}",
       "an oracle rule without a tolerance", "2:22", "add `rtol` or `atol`, or remove the rule"},
      {"\"oracle\": {\"rules\": [{\"when\": \"true\", \"why\": \"w\", \"rtol\": 0.1, "
       "\"classes\": [\"gradient\"]}]}",
       "there is no class of tensors `gradient`", "2:76", "did you mean `gradients`?"},
      {"\"oracle\": {\"rules\": [{\"when\": \"true\", \"why\": \"w\", \"rtol\": 0.1, "
       "\"classes\": []}]}",
       "a list without a class", "2:75", "name a class, or leave out `classes`"},
      {"\"perf\": \"graph_stop <= eager_step\"",
       "`graph_stop` is not measured, and is no integer axis", "2:10",
       "did you mean `graph_step`?"},
      {"\"memory\": [{\"limit\": \"graph_peak <= 2 * eager_step\"}]",
       "`eager_step` is not measured, and is no integer axis", "2:41", "name a quantity"},
      {"\"memory\": [{\"when\": \"true\"}]", "the key `limit` is missing", "2:12", "add `limit`"},
      {"\"limits\": {\"reply\": \"1s\"}", "unknown phase `reply`", "2:12",
       "did you mean `replay`?"},
      {"\"limits\": {\"replay\": \"1\"}", "a duration that can't be read", "2:22",
       "write it as 10s"},
      {"\"profiles\": {\"p\": {\"sed\": 1}}", "unknown key `sed`", "2:20", "did you mean `seed`?"},
      {"\"profiles\": {\"p\": {\"seed\": -1}}", "the number -1 is out of range", "2:28",
       "choose a number in the range"},
      {"\"profiles\": {\"p\": {\"isolation\": \"thread\"}}", "unknown value `thread`", "2:33",
       "choose one of them"},
      {"\"extends\": \"smok\"", "no shipped profile `smok`", "2:12", "did you mean `smoke`?"},
      {"\"extends\": \"gone.json\"", "no file gone.json", "0:0", "name a file"},
  };
  for (const auto& row : rows) {
    const Problem problem = thrown([&] { parse(row.members); });
    EXPECT_EQ(problem.what, row.what) << row.members;
    EXPECT_EQ(at(problem), row.place) << row.members;
    EXPECT_EQ(problem.next, row.next) << row.members;
  }
}

TEST_F(MatrixFileTest, MalformedFileNamesLineAndColumn) {
  const Problem problem = thrown([&] { parse("\"axes\": {\"tp\": [1,, 2]}"); });
  EXPECT_EQ(problem.what, "malformed JSON");
  EXPECT_EQ(problem.place.source, "m.json");
  EXPECT_EQ(at(problem), "2:19");
  EXPECT_EQ(problem.place.line_text, "\"axes\": {\"tp\": [1,, 2]}}");
}

TEST_F(MatrixFileTest, WrongSchemaIsRefused) {
  EXPECT_EQ(thrown([&] {
              parse_matrix_file("{\"schema\": \"graphproof-matrix/2\"}", "m.json", catalogue_, {});
            }).what,
            "unknown value `graphproof-matrix/2`");
  EXPECT_EQ(thrown([&] { parse_matrix_file("{}", "m.json", catalogue_, {}); }).what,
            "the key `schema` is missing");
}

TEST_F(MatrixFileTest, ExtendingFileReplacesAxesAndAddsTheRest) {
  const std::map<std::string, std::string> files{
      {"base.json",
       R"({"schema": "graphproof-matrix/1", "axes": {"tp": [1, 2], "dp": [1, 2]},
           "define": {"world": "tp * dp"},
           "require": [{"id": "a", "expr": "world > 0", "why": "w"}],
           "profiles": {"p": {"seed": 1}, "q": {}}})"}};
  const MatrixFile file = parse(
      R"("extends": "base.json", "axes": {"tp": [4]},
         "require": [{"id": "b", "expr": "world < 9", "why": "w"}],
         "profiles": {"p": {"seed": 2}})",
      files);
  ASSERT_EQ(file.axes.size(), 2u);
  EXPECT_EQ(file.axes[0].values, std::vector<Value>{std::int64_t{4}});
  EXPECT_EQ(file.constraints.size(), 2u);
  EXPECT_EQ(file.profiles.at("p").seed, 2);
  EXPECT_EQ(file.profiles.count("q"), 1u);
  EXPECT_EQ(file.source, "m.json");
}

TEST_F(MatrixFileTest, ShippedProfileCanBeExtended) {
  const MatrixFile file = parse(R"("extends": "smoke", "axes": {"tp": [1]})");
  EXPECT_EQ(file.profiles.count("smoke"), 1u);
  EXPECT_EQ(file.axes.size(), 5u);
}

TEST_F(MatrixFileTest, FilesThatExtendEachOtherEnd) {
  const std::map<std::string, std::string> files{
      {"a.json", R"({"schema": "graphproof-matrix/1", "extends": "a.json"})"}};
  EXPECT_EQ(thrown([&] { parse("\"extends\": \"a.json\"", files); }).what,
            "files that extend each other without end");
}

TEST_F(MatrixFileTest, UnknownShippedProfileSuggestsTheNearest) {
  const Problem problem = thrown([&] { shipped_matrix_file("smokee", catalogue_); });
  EXPECT_EQ(problem.what, "no profile `smokee`");
  EXPECT_EQ(problem.next, "did you mean `smoke`?");
}

}  // namespace
}  // namespace graphproof::matrix
