#include "reports/record/text/fields.h"

#include <gtest/gtest.h>

namespace graphproof::record {
namespace {

using nlohmann::json;

template <class Call>
std::string message_of(const Call& call) {
  try {
    call();
  } catch (const ReadError& error) {
    EXPECT_FALSE(error.message().next.empty());
    return error.what();
  }
  return "no error";
}

const json kValue = {{"name", "x"},      {"rank", 3},       {"ms", 1.5},
                     {"on", true},       {"none", nullptr}, {"inner", {{"list", {1, "two"}}}},
                     {"map", {{"a", 1}}}};

TEST(Fields, ReadsEachTypeAsItself) {
  const Fields in(kValue, "run.json");
  EXPECT_EQ(in.required<std::string>("name"), "x");
  EXPECT_EQ(in.required<int>("rank"), 3);
  EXPECT_EQ(in.required<double>("ms"), 1.5);
  EXPECT_EQ(in.required<double>("rank"), 3.0);
  EXPECT_TRUE(in.required<bool>("on"));
  EXPECT_FALSE(in.nullable<int>("none"));
  EXPECT_FALSE(in.optional<int>("absent"));
  EXPECT_EQ((in.required<std::map<std::string, int>>("map")),
            (std::map<std::string, int>{{"a", 1}}));
  EXPECT_FALSE(in.nullable_object("none"));
}

TEST(Fields, AMissingKeyNamesFileKeyAndWhatIsThere) {
  const json inner = {{"skip", {{"why", "x"}}}};
  EXPECT_EQ(message_of([&] {
              Fields(inner, "plan.jsonl line 3").object("skip").required<std::string>("verdict");
            }),
            "plan.jsonl line 3: `skip.verdict` is missing; got only the keys why; want the key "
            "`verdict`; results move only "
            "as files, so each reader holds its writer to the schema; next: look at the file; "
            "reports/record/schema has its "
            "schema and an example");
}

TEST(Fields, NoTypeIsTakenForAnother) {
  const Fields in(kValue, "run.json");
  EXPECT_THROW(in.required<int>("ms"), ReadError);  // 1.5 would lose its fraction
  EXPECT_THROW(in.required<int>("on"), ReadError);  // true is not the number 1
  EXPECT_THROW(in.required<bool>("rank"), ReadError);
  EXPECT_THROW(in.required<std::string>("rank"), ReadError);
  EXPECT_THROW(in.required<int>("none"), ReadError);
  EXPECT_THROW(in.required<std::vector<int>>("map"), ReadError);
  EXPECT_NE(message_of([&] {
              in.object("inner").required<std::vector<int>>("list");
            }).find("`inner.list[1]` has the wrong type; got string \"two\"; want an integer"),
            std::string::npos);
}

TEST(Fields, AWordOutsideItsListNamesTheList) {
  EXPECT_NE(message_of([&] {
              Fields(kValue, "run.json").word("name", {"sim", "cuda"});
            }).find("`name` has a value it cannot have; got `x`; want one of sim, cuda"),
            std::string::npos);
}

TEST(Fields, AnotherSchemaIsRefused) {
  const json value = {{"schema", "graphproof-run/2"}};
  EXPECT_NE(message_of([&] {
              Fields(value, "run.json").schema("graphproof-run/1");
            }).find("got `graphproof-run/2`"),
            std::string::npos);
}

TEST(Fields, WhatIsNoObjectIsRefused) {
  const json list = json::array({1});
  EXPECT_NE(
      message_of([&] { Fields(list, "run.json"); }).find("run.json is not a JSON object; got [1]"),
      std::string::npos);
}

}  // namespace
}  // namespace graphproof::record
