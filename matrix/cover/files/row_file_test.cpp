#include "matrix/cover/files/row_file.h"

#include <gtest/gtest.h>

#include <sstream>

#include "matrix/cover/files/model_file.h"
#include "matrix/input/input_error.h"

namespace graphproof::cover {
namespace {

Model odd_names() {
  Model model = read_model("plain: 1, 2 | two | zwei\nother: x, y\n", "m.pict", Format::pict).model;
  model.parameters[1].name = "comma, \"quote\"";
  model.parameters[1].values[0].names[0] = " spaces ";
  return model;
}

TEST(RowFileTest, WhatIsWrittenIsReadBack) {
  const Model model = odd_names();
  const std::vector<Row> rows{{0, 0}, {1, 1}, {1, 0}};
  for (const RowFormat format : {RowFormat::csv, RowFormat::json_lines}) {
    std::ostringstream out;
    write_rows(out, model, rows, format);
    EXPECT_EQ(row_format_of(out.str()), format);
    EXPECT_EQ(read_rows(out.str(), "rows", model, Unknown::refuse), rows) << out.str();
  }
}

TEST(RowFileTest, AliasesTakeTurns) {
  std::ostringstream out;
  write_rows(out, odd_names(), {{1, 1}, {1, 1}, {1, 1}, {1, 1}}, RowFormat::csv);
  EXPECT_EQ(out.str(), "plain,\"comma, \"\"quote\"\"\"\n2,y\ntwo,y\nzwei,y\n2,y\n");
}

TEST(RowFileTest, AnEarlierPlanMayLackColumnsAndHaveValuesThatWentAway) {
  const Model model = read_model("a: 1, 2\nb: x, y\n", "m.pict", Format::pict).model;
  EXPECT_EQ(read_rows("gone,b\n5,x\n,z\n", "rows", model, Unknown::leave_open),
            (std::vector<Row>{{kAny, 0}, {kAny, kAny}}));
}

struct RefusedRow {
  const char* text;
  const char* what;
  int line, column;
};

TEST(RowFileTest, BadRowsAreRefusedWithTheirPlace) {
  const Model model = read_model("a: 1, 2\nb: x, y\n", "m.pict", Format::pict).model;
  const RefusedRow refused[] = {
      {"a\n1\n", "the header lacks a parameter", 1, 1},
      {"a,c\n1,x\n", "no parameter `c`", 1, 3},
      {"a,a\n", "a column appears twice", 1, 3},
      {"a,b\n1,x\n1,z\n", "`b` has no value `z`", 3, 3},
      {"a,b\n1\n", "a row has the wrong number of cells", 2, 1},
      {"a,b\n\"1,x\n", "a quoted cell is not closed", 2, 1},
      {"a,b\n\"1\"2,x\n", "text follows a quoted cell", 2, 4},
      {"{\"a\": \"1\", \"b\": \"x\"}\n{\"a\": }\n", "a line is not JSON", 2, 7},
      {"{\"a\": \"1\"}\n", "a row lacks a parameter", 1, 1},
  };
  for (const RefusedRow& row : refused) {
    try {
      read_rows(row.text, "rows.csv", model, Unknown::refuse);
      ADD_FAILURE() << row.text;
    } catch (const matrix::InputError& error) {
      EXPECT_EQ(error.problem().what, row.what) << row.text;
      EXPECT_EQ(error.problem().place.line, row.line) << row.text;
      EXPECT_EQ(error.problem().place.column, row.column) << row.text;
    }
  }
}

}  // namespace
}  // namespace graphproof::cover
