// The axis table: names, types, values in order and defaults, read from matrix/tables/axes.json.
// One value is read here too, from JSON and from text, so that files, case names and command lines
// accept exactly the same values.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "matrix/input/input_error.h"
#include "matrix/input/located_json.h"
#include "matrix/input/value.h"

namespace graphproof::matrix {

/// The type of an axis. `text` is the type of the axes env.NAME and of limits. `text`, `number`
/// (floating-point) and `words` (a list in the order written) are also types of the options of
/// upstream dialects, which expressions read as if they were axes.
enum class AxisType { choice, set, integer, boolean, call, text, number, words };
std::string_view axis_type_name(AxisType type);

/// What an argument of a call may be: one of `words`, or an integer from 1 on.
struct CallArgument {
  std::vector<std::string> words;
  bool integer = false;
};

/// One form that a value of a call axis may have. `selective(a|b)` takes one or more of its words,
/// in their order and without repetition; `full(a|b,n)` takes exactly its arguments; a form without
/// arguments is the word alone.
struct CallForm {
  std::string word;
  std::vector<CallArgument> arguments;
};

/// An axis. Its type determines which members hold: `values` for choice and set (in order) and for
/// words (those that the list may hold; empty for any), minimum and maximum for integer, `calls`
/// for call.
struct Axis {
  std::string name;
  AxisType type = AxisType::choice;
  std::vector<std::string> values;
  std::int64_t minimum = 0, maximum = 0;
  std::vector<CallForm> calls;
  Value default_value;
  std::string meaning, unit;
};

/// All axes, in the order that names, plans and expansion follow.
class AxisTable {
 public:
  /// Reads a "graphproof-axes/1" document. `lists` supplies the values of axes with "values_from".
  static AxisTable parse(const Document& document,
                         const std::map<std::string, std::vector<std::string>>& lists);

  /// A table of other names that expressions may read; messages call one of them a `noun`. `open`
  /// is the type of env.NAME. REQUIRES: names differ.
  static AxisTable of(std::vector<Axis> axes, Axis open, std::string noun);

  const std::string& noun() const { return noun_; }
  int version() const { return version_; }
  const std::vector<Axis>& axes() const { return axes_; }
  const std::vector<std::string>& names() const { return names_; }
  /// The axis of that name; for env.NAME the open axis, whose own name is only the prefix. Null if
  /// the name is unknown, and for env.NAME also if another axis sets the variable NAME.
  const Axis* find(std::string_view name) const;
  /// As find(), but throws InputError at `place`, with the nearest name or the owning axis.
  const Axis& at(std::string_view name, const Place& place) const;
  /// Whether `left` comes before `right` in axis order; env.NAME come last, ordered by name.
  bool before(std::string_view left, std::string_view right) const;

 private:
  std::map<std::string, std::size_t, std::less<>> index_;
  std::vector<Axis> axes_;
  std::vector<std::string> names_;
  Axis open_;
  std::map<std::string, std::string, std::less<>>
      owned_;  // environment variable -> axis that owns it
  int version_ = 0;
  std::string noun_ = "axis";
};

/// Reads one value of `axis` from JSON. Types are strict: "4" is not 4. A set may be in any order.
/// Throws InputError at `place`.
Value parse_value(const Axis& axis, std::string_view name, const Json& json, const Place& place);

/// Reads one value in the form that a case's name has (value_text); JSON quotes around words are
/// allowed.
Value parse_value_text(const Axis& axis, std::string_view name, std::string_view text,
                       const Place& place);

/// The parts of a call value: full(block,2) is {"full", {"block", "2"}}.
struct Call {
  std::string word;
  std::vector<std::string> arguments;
};
Call split_call(std::string_view text);

}  // namespace graphproof::matrix
