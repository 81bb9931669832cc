// The axis table: names, types, values in order and defaults, read from axes/axes.json. Typed
// reading of one value is here too, so that files, names and command lines take exactly the same
// values.
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

/// text is the type of the open axes env.NAME; text, number (floating-point) and words (a list in
/// the order written) are types of the options of upstream dialects, which expressions read as if
/// they were axes.
enum class AxisType { choice, set, integer, boolean, call, text, number, words };
std::string_view axis_type_name(AxisType type);

/// What an argument list of a call may hold: one of `words`, or an integer of at least 1.
struct CallArgument {
  std::vector<std::string> words;
  bool integer = false;
};

/// One form of a call axis. `selective(a|b)` takes one or more of its words, in their order and
/// without repetition; `full(a|b,n)` takes exactly its arguments; a word without arguments stands
/// alone.
struct CallForm {
  std::string word;
  std::vector<CallArgument> arguments;
};

struct Axis {
  std::string name;
  AxisType type = AxisType::choice;
  std::vector<std::string>
      values;  // choice, set: in order; words: those it may hold, empty for any
  std::int64_t minimum = 0, maximum = 0;
  std::vector<CallForm> calls;
  Value default_value;
  std::string meaning, unit;
};

class AxisTable {
 public:
  /// Reads a "graphproof-axes/1" text. `lists` supplies the values of axes with "values_from".
  static AxisTable parse(const Document& document,
                         const std::map<std::string, std::vector<std::string>>& lists);

  /// A table of other names that expressions may read; `noun` is what messages call one of them.
  /// `open` is the type of env.NAME. REQUIRES: names differ.
  static AxisTable of(std::vector<Axis> axes, Axis open, std::string noun);

  const std::string& noun() const { return noun_; }
  int version() const { return version_; }
  const std::vector<Axis>& axes() const { return axes_; }
  const std::vector<std::string>& names() const { return names_; }
  /// The axis of that name; for env.NAME the open axis, whose own name is only the prefix. Null
  /// when unknown, and for env.NAME when an axis owns NAME.
  const Axis* find(std::string_view name) const;
  /// The same, throwing InputError at `place` with the nearest name or the owning axis.
  const Axis& at(std::string_view name, const Place& place) const;
  /// Sorts names in axis order; open axes follow by name.
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

/// Reads one value of `axis` from its JSON form; strict: "4" is not 4. Sets may come in any order.
/// InputError at `place`.
Value parse_value(const Axis& axis, std::string_view name, const Json& json, const Place& place);

/// Reads one value as it stands in a case's name (value_text); JSON quotes around words are
/// allowed.
Value parse_value_text(const Axis& axis, std::string_view name, std::string_view text,
                       const Place& place);

/// The word of a call value and its arguments: full(block,2) is {"full", {"block", "2"}}.
struct Call {
  std::string word;
  std::vector<std::string> arguments;
};
Call split_call(std::string_view text);

}  // namespace graphproof::matrix
