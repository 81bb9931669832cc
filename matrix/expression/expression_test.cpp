#include "matrix/expression/expression.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <limits>
#include <memory>

#include "matrix/catalogue/catalogue.h"
#include "matrix/expression/syntax.h"
#include "matrix/testing/thrown.h"

namespace graphproof::matrix {
namespace {

class ExpressionTest : public testing::Test {
 protected:
  Expression parse(const std::string& text) const {
    return Expression::condition(text, scope_, Origin::option("--where", text));
  }
  Truth holds(const std::string& text, const char* name = "default") const {
    return parse(text).holds(case_from_name(catalogue_.axes, name, ""), machine_);
  }
  Value value(const std::string& text) const {
    return Expression::any(text, scope_, Origin::option("", text)).evaluate(Case{}, machine_);
  }
  Problem refused(const std::string& text) const {
    return thrown([&] { parse(text); });
  }

  inline static const Catalogue catalogue_ = load_catalogue();  // read once, never changed
  Scope scope_{.axes = &catalogue_.axes, .defines = {}};
  Machine machine_{
      .device = "sim",
      .slots = 4,
      .stack = {{"torch_version", "2.11.0+cu130"}, {"cuda_version", "none"}, {"sm", "90"}}};
};

TEST_F(ExpressionTest, OperatorsBindInTheDocumentedOrder) {
  const std::pair<const char*, const char*> rows[] = {
      // an expression, and the same with all parentheses written
      {"1 + 2 * 3 == 7 and true", "((1 + (2 * 3)) == 7) and true"},
      {"not tp == 1 and dropout", "(not (tp == 1)) and dropout"},
      {"dropout or packed and cpu_offload", "dropout or (packed and cpu_offload)"},
      {"dropout implies packed implies cpu_offload",
       "dropout implies (packed implies cpu_offload)"},
      {"dropout or packed implies cpu_offload and packed",
       "(dropout or packed) implies (cpu_offload and packed)"},
      {"tp - 1 - 1 == 0", "((tp - 1) - 1) == 0"},
      {"8 / 2 * 2 == 8", "((8 / 2) * 2) == 8"},
      {"-tp + 2 == 1", "((-tp) + 2) == 1"},
      {"not not dropout", "not (not dropout)"},
      {"tp * 2 in {2, 4}", "(tp * 2) in {2, 4}"}};
  for (const auto& [plain, full] : rows)
    EXPECT_TRUE(same_syntax(*parse_syntax(plain, Origin::option("", plain)),
                            *parse_syntax(full, Origin::option("", full))))
        << plain;
}

TEST_F(ExpressionTest, ValuesOfEveryTypeCompare) {
  const char* name =
      "impl=local,modules=[attn,moe],tp=4,recompute=full(block,2),dropout=true,nccl_graph_register="
      "0,env.A=b,model=collective,schedule=train-eval-train";
  const std::pair<const char*, Truth> rows[] = {{"impl == local", Truth::yes},
                                                {"impl == \"local\"", Truth::yes},
                                                {"impl == 'local'", Truth::yes},
                                                {"local == impl", Truth::yes},
                                                {"impl != local", Truth::no},
                                                {"impl in {none, local}", Truth::yes},
                                                {"impl in [none, manual]", Truth::no},
                                                {"impl in {}", Truth::no},
                                                {"moe in modules", Truth::yes},
                                                {"mlp in modules", Truth::no},
                                                {"modules == {moe, attn}", Truth::yes},
                                                {"modules == []", Truth::no},
                                                {"len(modules) == 2", Truth::yes},
                                                {"tp in {2, 4}", Truth::yes},
                                                {"tp * 2 == 8", Truth::yes},
                                                {"tp % 3 == 1", Truth::yes},
                                                {"-tp / 3 == -1", Truth::yes},
                                                {"tp in {dp, 4 * dp}", Truth::yes},
                                                {"min(tp, 3, 9) == 3", Truth::yes},
                                                {"max(tp) == 4", Truth::yes},
                                                {"divides(tp, heads)", Truth::yes},
                                                {"divides(kv_groups, heads)", Truth::no},
                                                {"recompute == full(block, 2)", Truth::yes},
                                                {"recompute == \"full(block,2)\"", Truth::yes},
                                                {"recompute == none", Truth::no},
                                                {"word(recompute) == full", Truth::yes},
                                                {"block in recompute", Truth::yes},
                                                {"core_attn in recompute", Truth::no},
                                                {"recompute in {none, full(block, 2)}", Truth::yes},
                                                {"dropout", Truth::yes},
                                                {"dropout == true", Truth::yes},
                                                {"dropout == packed", Truth::no},
                                                {"nccl_graph_register == \"0\"", Truth::yes},
                                                {"env.A == b", Truth::yes},
                                                {"env.A == \"b\"", Truth::yes},
                                                {"env.Z == unset", Truth::yes},
                                                {"model == \"collective\"", Truth::yes},
                                                {"schedule == \"train-eval-train\"", Truth::yes},
                                                {"device == sim", Truth::yes},
                                                {"slots == 4", Truth::yes},
                                                {"sm >= 90", Truth::yes},
                                                {"torch_version >= 2.11", Truth::yes},
                                                {"torch_version == 2.11.0", Truth::yes},
                                                {"torch_version < 2.9", Truth::no},
                                                {"torch_version >= 3", Truth::no},
                                                {"torch_version in {2.11, 2.12}", Truth::yes},
                                                {"2.12.0a0 < 2.12", Truth::yes}};
  for (const auto& [text, want] : rows) EXPECT_EQ(holds(text, name), want) << text;
}

TEST_F(ExpressionTest, UnknownFollowsKleene) {
  const std::pair<const char*, Truth> rows[] = {{"te_version > 2.0", Truth::unknown},
                                                {"te_version == 2.0", Truth::unknown},
                                                {"not (te_version > 2.0)", Truth::unknown},
                                                {"te_version > 2.0 and false", Truth::no},
                                                {"false and te_version > 2.0", Truth::no},
                                                {"te_version > 2.0 and true", Truth::unknown},
                                                {"te_version > 2.0 or true", Truth::yes},
                                                {"te_version > 2.0 or false", Truth::unknown},
                                                {"te_version > 2.0 implies true", Truth::yes},
                                                {"false implies te_version > 2.0", Truth::yes},
                                                {"true implies te_version > 2.0", Truth::unknown},
                                                {"te_version > 2.0 implies false", Truth::unknown},
                                                {"te_version in {2.0}", Truth::unknown},
                                                {"te_version in {}", Truth::no},
                                                {"max(minutes, 3) > 2", Truth::unknown},
                                                {"minutes * 0 == 0", Truth::unknown}};
  for (const auto& [text, want] : rows) EXPECT_EQ(holds(text), want) << text;
}

TEST_F(ExpressionTest, AbsentEqualsOnlyAbsent) {
  const std::pair<const char*, Truth> rows[] = {
      {"cuda_version == absent", Truth::yes},  {"torch_version == absent", Truth::no},
      {"torch_version != absent", Truth::yes}, {"cuda_version == 13.0", Truth::no},
      {"cuda_version != 13.0", Truth::yes},    {"cuda_version < 13.0", Truth::no},
      {"cuda_version >= 13.0", Truth::no},     {"cuda_version in {13.0}", Truth::no}};
  for (const auto& [text, want] : rows) EXPECT_EQ(holds(text), want) << text;

  const Expression expression = parse("moe in modules or len(modules) > 0 or modules == absent");
  EXPECT_EQ(expression.holds(std::vector<Value>{Absent{}}), Truth::yes);
  EXPECT_EQ(parse("moe in modules").holds(std::vector<Value>{Absent{}}), Truth::no);
  EXPECT_EQ(parse("dropout").holds(std::vector<Value>{Absent{}}), Truth::no);
  EXPECT_EQ(parse("tp + 1 == absent").holds(std::vector<Value>{Absent{}}), Truth::yes);
}

TEST_F(ExpressionTest, EveryMistakeNamesItsPlaceAndAWayOut) {
  const struct {
    const char *text, *what, *place, *next;
  } rows[] = {
      {"", "an empty expression", "1:1", "write one, or `true`"},
      {"   ", "an empty expression", "1:1", "write one, or `true`"},
      {"imp == none", "unknown name `imp`", "1:1", "did you mean `impl`?"},
      {"impl == ful_iteration", "`ful_iteration` is no value of axis `impl`", "1:9",
       "did you mean `full_iteration`?"},
      {"impl in {none,\n locl}", "`locl` is no value of axis `impl`", "2:2",
       "did you mean `local`?"},
      {"moo in modules", "`moo` is no value of axis `modules`", "1:1", "did you mean `moe`?"},
      {"tp = 2", "`=` has no meaning in an expression", "1:4", "write == for equality"},
      {"tp == 1 && dropout", "`&` has no meaning in an expression", "1:9", "write and"},
      {"!dropout", "`!` has no meaning in an expression", "1:1", "write not"},
      {"tp == 1 AND dropout", "the expression breaks off at `AND`", "1:9",
       "write operators in small letters"},
      {"tp == \"2\"", "\"2\" can't be compared with axis `tp`", "1:7", "write an integer"},
      {"nccl_graph_register == 0", "axis `nccl_graph_register` can't be compared with 0", "1:21",
       "write \"0\" for the value"},
      {"env.A == 4", "axis `env.A` can't be compared with 4", "1:7", "write \"4\" for the text"},
      {"model == collective", "axis `model` can't be compared with axis `collective`", "1:7",
       "`collective` names an axis; write \"collective\" for the value"},
      {"impl == precision", "axis `impl` can't be compared with axis `precision`", "1:6",
       "compare values of one type"},
      {"tp", "axis `tp` is no condition", "1:1", "compare it with a value"},
      {"tp + dropout == 2", "axis `dropout` is no number", "1:6",
       "use a number or an integer axis"},
      {"not impl", "axis `impl` is no condition", "1:5", "compare it with a value"},
      {"impl < local", "`<` has no meaning for axis `impl`", "1:6", "use ==, != or in"},
      {"tp < 2 < 3", "comparisons can't be chained", "1:8", "join two with `and`"},
      {"tp in 4", "nothing is `in` 4", "1:4", "use =="},
      {"local in {local}", "unknown name `local`", "1:1",
       "`graphproof list axes` shows every axis and its values"},
      {"teardown == {graph_first}", "{graph_first} can't be compared with axis `teardown`", "1:13",
       "write one of graph_first, comm_first (or use `in`)"},
      {"(tp == 1", "the expression breaks off at the end of the expression", "1:9",
       "correct the expression"},
      {"tp ==", "the expression breaks off at the end of the expression", "1:6",
       "correct the expression"},
      {"tp == 1)", "the expression breaks off at `)`", "1:8", "correct the expression"},
      {"divide(tp, 2)", "unknown function `divide`", "1:1", "did you mean `divides`?"},
      {"divides(tp)", "`divides` with 1 arguments", "1:1", "correct the arguments"},
      {"len(tp) == 1", "axis `tp` is no argument of `len`", "1:5", "use an axis of that type"},
      {"env.NCCL_ALGO == Ring",
       "the environment variable of `env.NCCL_ALGO` belongs to axis `nccl_algo`", "1:1",
       "use `nccl_algo`"},
      {"tp == 99999999999999999999", "the number 99999999999999999999 is out of range", "1:7",
       "use a smaller number"},
      {"impl == 'local", "an unterminated text", "1:9", "close the text"},
      {"tp == 2x", "`2x` is neither a number nor a name", "1:7", "put it into quotes: \"2x\""},
      {"tp == \u00e9", "`\u00e9` has no meaning in an expression", "1:7", "remove it"},
      {"recompute == full(block)", "`full(block)` is no value of axis `recompute`", "1:14",
       "write it as full(uniform|block,n)"},
  };
  for (const auto& row : rows) {
    const Problem problem = refused(row.text);
    EXPECT_EQ(problem.what, row.what) << row.text;
    EXPECT_EQ(at(problem), row.place) << row.text;
    EXPECT_EQ(problem.next, row.next) << row.text;
    EXPECT_EQ(problem.place.source, "--where");
  }
}

TEST_F(ExpressionTest, DepthAndLengthAreBounded) {
  EXPECT_EQ(refused(std::string(300, '(') + "true" + std::string(300, ')')).what,
            "an expression nested too deeply");
  std::string nots, sums = "0";
  for (int i = 0; i < 300; ++i) nots += "not ", sums += " + 1";
  EXPECT_EQ(refused(nots + "true").what, "an expression nested too deeply");
  EXPECT_EQ(refused(sums + " == 300").what, "an expression nested too deeply");
  EXPECT_EQ(refused(std::string(1 << 20, '-') + "1").what, "an expression that is too long");
}

TEST_F(ExpressionTest, ArithmeticThatHasNoResultIsAnError) {
  for (const auto& [text, what] :
       {std::pair<const char*, const char*>{"tp / kv_groups == 1", "division by zero"},
        {"tp % kv_groups == 1", "division by zero"},
        {"9223372036854775807 + tp == 1", "a number out of range"},
        {"9223372036854775807 * 2 == 1", "a number out of range"}}) {
    const Problem problem = thrown([&] { holds(text); });
    EXPECT_EQ(problem.what, what) << text;
    EXPECT_EQ(problem.place.source, "--where");
  }
}

TEST_F(ExpressionTest, DefinesReadAsInParentheses) {
  add_define(scope_, "world", "tp * pp", Origin::option("define", "tp * pp"));
  add_define(scope_, "either", "dropout or packed", Origin::option("define", "dropout or packed"));
  add_define(scope_, "half", "world / 2", Origin::option("define", "world / 2"));
  EXPECT_EQ(holds("8 / world == 2", "tp=4"), Truth::yes);
  EXPECT_EQ(holds("half == 2", "tp=4"), Truth::yes);
  EXPECT_EQ(holds("not either and dropout", "dropout=true"), Truth::no);
  EXPECT_EQ(parse("world == 4").text(), "world == 4");
  EXPECT_EQ(refused("wrld == 4").next, "did you mean `world`?");
  const Problem division = thrown([&] { holds("1 / (half - half) == 1"); });
  EXPECT_EQ(at(division), "1:3");
  for (const char* name : {"tp", "slots", "max", "and", "absent", "", "a b", "1a"})
    EXPECT_EQ(thrown([&] { add_define(scope_, name, "1", Origin::option("define", "1")); }).what,
              "`" + std::string(name) + "` can't be a define's name");
}

TEST_F(ExpressionTest, DefinesThatGrowWithoutEndAreRefused) {
  Scope scope{.axes = &catalogue_.axes, .defines = {}};
  std::string before = "tp";
  const Problem problem = thrown([&] {
    for (int i = 0; i < 40; ++i) {
      const std::string name = "d" + std::to_string(i), text = before + " + " + before;
      add_define(scope, name, text, Origin::option("define", text));
      before = name;
    }
  });
  EXPECT_EQ(problem.what, "an expression that grows too large");
}

TEST_F(ExpressionTest, InputsNameWhatIsRead) {
  const Expression expression = parse("tp > 1 and torch_version > 2.0 and tp < 4");
  ASSERT_EQ(expression.inputs().size(), 2u);
  EXPECT_EQ(expression.inputs()[0].name, "tp");
  EXPECT_FALSE(expression.inputs()[0].machine);
  EXPECT_EQ(expression.inputs()[1].name, "torch_version");
  EXPECT_TRUE(expression.inputs()[1].machine);
}

rc::Gen<std::string> number_text(int depth);
rc::Gen<std::string> condition_text(int depth) {
  using rc::gen::exec;
  return exec([depth]() -> std::string {
    if (depth == 0)
      return *rc::gen::element<std::string>(
          "dropout", "true", "impl == local", "te_version > 2.0", "moe in modules",
          "impl in {none, local}", "recompute == full(block, 2)", "modules == {attn}", "false");
    switch (*rc::gen::inRange(0, 5)) {
      case 0:
        return "not (" + *condition_text(depth - 1) + ")";
      case 1:
        return "(" + *condition_text(depth - 1) + ") and (" + *condition_text(depth - 1) + ")";
      case 2:
        return "(" + *condition_text(depth - 1) + ") or (" + *condition_text(depth - 1) + ")";
      case 3:
        return "(" + *condition_text(depth - 1) + ") implies (" + *condition_text(depth - 1) + ")";
      default:
        return "(" + *number_text(depth - 1) + ") " +
               *rc::gen::element<std::string>("<", "<=", "==", "!=", ">", ">=") + " (" +
               *number_text(depth - 1) + ")";
    }
  });
}
rc::Gen<std::string> number_text(int depth) {
  return rc::gen::exec([depth]() -> std::string {
    if (depth == 0)
      return *rc::gen::element<std::string>("tp", "7", "slots", "max(tp, 3)", "len(modules)",
                                            "heads");
    return "(" + *number_text(depth - 1) + ") " + *rc::gen::element<std::string>("+", "-", "*") +
           " (-(" + *number_text(depth - 1) + "))";
  });
}

TEST_F(ExpressionTest, PrintedExpressionParsesToTheSame) {
  EXPECT_TRUE(rc::check("print and parse are inverse", [&] {
    const std::string text = *condition_text(*rc::gen::inRange(0, 5));
    const Expression first = parse(text);
    const Expression second = parse(first.text());
    RC_ASSERT(same_syntax(*first.syntax(), *second.syntax()));
    RC_ASSERT(first.text() == second.text());
    RC_ASSERT(first.text().size() <= text.size());
    RC_ASSERT(first.holds(Case{}, machine_) == second.holds(Case{}, machine_));
  }));
}

// A random tree, which need not type-check.
std::shared_ptr<const Syntax> random_tree(int depth) {
  constexpr SyntaxKind kLeaves[] = {SyntaxKind::integer, SyntaxKind::version, SyntaxKind::text,
                                    SyntaxKind::boolean, SyntaxKind::absent,  SyntaxKind::word};
  constexpr SyntaxKind kInner[] = {
      SyntaxKind::set,        SyntaxKind::call,    SyntaxKind::negate,        SyntaxKind::not_,
      SyntaxKind::multiply,   SyntaxKind::divide,  SyntaxKind::remainder,     SyntaxKind::add,
      SyntaxKind::subtract,   SyntaxKind::equal,   SyntaxKind::unequal,       SyntaxKind::less,
      SyntaxKind::less_equal, SyntaxKind::greater, SyntaxKind::greater_equal, SyntaxKind::in,
      SyntaxKind::and_,       SyntaxKind::or_,     SyntaxKind::implies};
  Syntax tree;
  tree.kind =
      depth == 0
          ? *rc::gen::elementOf(std::vector<SyntaxKind>(std::begin(kLeaves), std::end(kLeaves)))
          : *rc::gen::elementOf(std::vector<SyntaxKind>(std::begin(kInner), std::end(kInner)));
  switch (tree.kind) {
    case SyntaxKind::integer:
      tree.number = *rc::gen::inRange<std::int64_t>(0, std::numeric_limits<std::int64_t>::max());
      break;
    case SyntaxKind::boolean:
      tree.number = *rc::gen::inRange(0, 2);
      break;
    case SyntaxKind::version:
      tree.text = *rc::gen::element<std::string>("2.11", "2.12.0a0", "0.5");
      break;
    case SyntaxKind::text:
      tree.text =
          *rc::gen::container<std::string>(rc::gen::elementOf(std::string("a\"'\\ ,(){}\n")));
      break;
    case SyntaxKind::word:
    case SyntaxKind::call:
      tree.text = *rc::gen::element<std::string>("tp", "env.A", "full", "notes", "min");
      break;
    default:
      break;
  }
  const bool list = tree.kind == SyntaxKind::set || tree.kind == SyntaxKind::call,
             one = tree.kind == SyntaxKind::negate || tree.kind == SyntaxKind::not_;
  const int children = depth == 0 ? 0 : list ? *rc::gen::inRange(0, 3) : one ? 1 : 2;
  for (int i = 0; i < children; ++i)
    tree.children.push_back(random_tree(*rc::gen::inRange(0, depth)));
  return std::make_shared<const Syntax>(std::move(tree));
}

TEST_F(ExpressionTest, EveryTreePrintsToATextThatParsesToIt) {
  EXPECT_TRUE(rc::check("parse undoes print", [] {
    const auto tree = random_tree(*rc::gen::inRange(0, 6));
    const std::string text = print_syntax(*tree);
    const auto again = parse_syntax(text, Origin::option("", text));
    RC_ASSERT(same_syntax(*tree, *again));
    RC_ASSERT(print_syntax(*again) == text);
  }));
}

TEST_F(ExpressionTest, UnknownNeverContradictsAnyValueItMayHave) {
  EXPECT_TRUE(rc::check("a decided result stays for every version", [&] {
    const Expression expression = parse(*condition_text(4));
    const Truth undecided = expression.holds(Case{}, machine_);
    if (undecided == Truth::unknown) return;
    for (const char* version : {"1.0", "2.5"}) {
      Machine known = machine_;
      known.stack["te_version"] = version;
      RC_ASSERT(expression.holds(Case{}, known) == undecided);
    }
  }));
}

TEST_F(ExpressionTest, NoTextCrashesTheParser) {
  EXPECT_TRUE(
      rc::check("arbitrary words are read or refused", [&](const std::vector<std::uint8_t>& picks) {
        static const char* const words[] = {
            "tp", "impl",    "==",        "in",   "{",      "}",   "(",   ")",
            ",",  "local",   "not",       "and",  "7",      "2.1", "'x'", "-",
            "*",  "modules", "recompute", "full", "absent", "word"};
        std::string text;
        for (const std::uint8_t pick : picks)
          text += std::string(words[pick % std::size(words)]) + " ";
        try {
          parse(text);
        } catch (const InputError& error) {
          RC_ASSERT(!error.problem().next.empty());
        }
      }));
}

TEST_F(ExpressionTest, PlaceholdersHaveValuesOfAnyType) {
  EXPECT_EQ(value("hidden / heads"), Value(std::int64_t{16}));
  EXPECT_EQ(value("impl"), Value(std::string("none")));
  EXPECT_EQ(thrown([&] { value("local"); }).what, "unknown name `local`");
}

}  // namespace
}  // namespace graphproof::matrix
