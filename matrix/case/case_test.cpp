#include "matrix/case/case.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "matrix/catalogue/catalogue.h"
#include "matrix/testing/thrown.h"

namespace graphproof::matrix {
namespace {

class CaseTest : public testing::Test {
 protected:
  Case named(const char* name) const { return case_from_name(catalogue_.axes, name, "test"); }
  Case json(const char* text) const {
    return case_from_json(catalogue_.axes, nlohmann::json::parse(text), "test");
  }
  inline static const Catalogue catalogue_ = load_catalogue();  // read once, never changed
};

TEST_F(CaseTest, CanonicalTextSortsKeysAndLeavesOutDefaults) {
  const Case test_case = json(
      "{\"tp\": 2, \"impl\": \"local\", \"dp\": 1, \"modules\": [\"mlp\", \"attn\"], \"dropout\": "
      "true, \"fault\": \"none\"}");
  EXPECT_EQ(canonical_text(test_case),
            "{\"dropout\":true,\"impl\":\"local\",\"modules\":[\"attn\",\"mlp\"],\"tp\":2}");
  EXPECT_EQ(canonical_text(Case{}), "{}");
}

// These digests never change: recorded runs name their cases by id.
TEST_F(CaseTest, IdIsTheFirstSixteenDigitsOfTheSha256) {
  EXPECT_EQ(sha256_hex("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(case_id(Case{}), "44136fa355b3678a");
  EXPECT_EQ(case_id(named("impl=full_iteration,tp=2,microbatches=2")),
            sha256_hex("{\"impl\":\"full_iteration\",\"microbatches\":2,\"tp\":2}").substr(0, 16));
}

TEST_F(CaseTest, NameListsNonDefaultAxesInAxisOrder) {
  EXPECT_EQ(
      case_name(
          catalogue_.axes,
          json("{\"fault\": \"M23\", \"tp\": 2, \"impl\": \"manual\", \"modules\": [\"attn\"], "
               "\"env.NCCL_DEBUG\": \"INFO\", \"recompute\": \"full(block,2)\"}")),
      "impl=manual,modules=[attn],tp=2,recompute=full(block,2),fault=M23,env.NCCL_DEBUG=INFO");
  EXPECT_EQ(case_name(catalogue_.axes, Case{}), "default");
}

TEST_F(CaseTest, NameIsReadBack) {
  for (const char* name : {"default", "impl=local,modules=[attn,mlp],tp=2,dropout=true",
                           "recompute=selective(core_attn,mlp)", "schedule=train-eval-train",
                           "nccl_graph_register=0", "env.A=\"x,y=z]\",env.B=\"say \\\"no\\\"\""})
    EXPECT_EQ(case_name(catalogue_.axes, named(name)), name);
  EXPECT_EQ(named("modules=[\"mlp\",\"attn\"]"), named("modules=[attn,mlp]"));
  EXPECT_EQ(named("tp=1"), Case{});
}

TEST_F(CaseTest, AnyCaseComesBackFromItsNameAndItsJson) {
  EXPECT_TRUE(rc::check("names and effective values round trip", [&] {
    Case test_case;
    for (const Axis& axis : catalogue_.axes.axes()) {
      if (*rc::gen::inRange(0, 4) != 0) continue;
      Value value = axis.default_value;
      switch (axis.type) {
        case AxisType::boolean:
          value = true;
          break;
        case AxisType::integer:
          value = *rc::gen::inRange(axis.minimum, axis.maximum + 1);
          break;
        case AxisType::choice:
          value = *rc::gen::elementOf(axis.values);
          break;
        case AxisType::call:
          value = *rc::gen::element<std::string>("none", "full(block,3)", "selective(mlp,moe)");
          break;
        case AxisType::text:
          value = "graph_step <= 1." + std::to_string(*rc::gen::inRange(0, 100)) + " * eager_step";
          break;
        default: {
          std::vector<std::string> set;
          for (const std::string& word : axis.values)
            if (*rc::gen::arbitrary<bool>()) set.push_back(word);
          value = set;
        }
      }
      set_value(catalogue_.axes, test_case, axis.name, value);
    }
    std::string text = *rc::gen::string<std::string>();
    std::erase_if(text, [](char c) { return static_cast<unsigned char>(c) >= 0x80 || c == 0; });
    set_value(catalogue_.axes, test_case, "env.ANY", text);
    RC_ASSERT(case_from_name(catalogue_.axes, case_name(catalogue_.axes, test_case), "") ==
              test_case);
    RC_ASSERT(case_from_json(catalogue_.axes, effective_values(catalogue_.axes, test_case), "") ==
              test_case);
    RC_ASSERT(case_id(case_from_json(catalogue_.axes,
                                     nlohmann::json::parse(canonical_text(test_case)), "")) ==
              case_id(test_case));
  }));
}

TEST_F(CaseTest, WrongNamesAreRefusedAtTheirPlace) {
  const struct {
    const char *name, *what, *place;
  } rows[] = {{"impl=local,tpp=2", "unknown axis `tpp`", "1:12"},
              {"impl=local,tp=x", "`x` is no value of axis `tp`", "1:15"},
              {"impl", "`impl` is no axis=value", "1:1"},
              {"", "`` is no axis=value", "1:1"},
              {"tp=2,tp=4", "axis `tp` appears twice", "1:6"},
              {"modules=attn", "`attn` is no value of axis `modules`", "1:9"},
              {"dropout=yes", "`yes` is no value of axis `dropout`", "1:9"},
              {"impl=\"loc", "`\"loc` is no value of axis `impl`", "1:6"}};
  for (const auto& row : rows) {
    const Problem problem = thrown([&] { named(row.name); });
    EXPECT_EQ(problem.what, row.what);
    EXPECT_EQ(at(problem), row.place) << row.name;
  }
}

TEST_F(CaseTest, WrongJsonIsRefusedAtItsPlace) {
  EXPECT_EQ(thrown([&] { json("{\"impl\": \"none\", \"tpp\": 2}"); }).next, "did you mean `tp`?");
  EXPECT_EQ(thrown([&] { json("{\"tp\": \"2\"}"); }).what,
            "a value of the wrong type for axis `tp`");
  EXPECT_EQ(thrown([&] { json("[]"); }).what, "the document has the wrong type");
}

TEST_F(CaseTest, EffectiveValuesHoldEveryAxis) {
  const nlohmann::json values = effective_values(catalogue_.axes, named("tp=2,env.A=b"));
  EXPECT_EQ(values.size(), catalogue_.axes.axes().size() + 1);
  EXPECT_EQ(values.at("tp"), 2);
  EXPECT_EQ(values.at("impl"), "none");
  EXPECT_EQ(values.at("env.A"), "b");
}

TEST_F(CaseTest, CleanTwinDropsTheFaultOnly) {
  EXPECT_EQ(clean_twin(named("impl=manual,microbatches=2,fault=M23")),
            named("impl=manual,microbatches=2"));
  EXPECT_EQ(clean_twin(Case{}), Case{});
}

TEST_F(CaseTest, WorldIsTheProductOfItsDegrees) {
  EXPECT_EQ(world_size(catalogue_.axes, named("tp=2,pp=2,dp=3,cp=2,ep=3,vpp=2")), 24);
  EXPECT_EQ(world_size(catalogue_.axes, Case{}), 1);
}

TEST_F(CaseTest, ReferenceIsAnIdAPrefixOrAName) {
  const KnownCase cases[] = {
      {"abc1000000000000", "default"}, {"abc2000000000000", "tp=2"}, {"def0000000000000", "tp=4"}};
  EXPECT_EQ(resolve_case("abc2", cases), 1u);
  EXPECT_EQ(resolve_case("d", cases), 2u);
  EXPECT_EQ(resolve_case("tp=2", cases), 1u);
  EXPECT_EQ(resolve_case("abc1000000000000", cases), 0u);
  const Problem several = thrown([&] { resolve_case("abc", cases); });
  EXPECT_EQ(several.what, "`abc` means several cases");
  EXPECT_EQ(several.want, "one of abc1000000000000 default, abc2000000000000 tp=2");
  const Problem none = thrown([&] { resolve_case("tp=3", cases); });
  EXPECT_EQ(none.what, "no case `tp=3`");
  EXPECT_EQ(none.next, "did you mean `tp=2`?");
  EXPECT_EQ(thrown([&] { resolve_case("", cases); }).what, "no case ``");
}

}  // namespace
}  // namespace graphproof::matrix
