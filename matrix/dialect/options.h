// The options of an upstream dialect as data (matrix/options/DIALECT/*.json): types, defaults, and
// how command lines and configuration files spell them. Expressions of rules read options as if
// they were axes.
#pragma once

#include <array>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "matrix/case/axes.h"
#include "matrix/dialect/versions.h"
#include "matrix/input/located_json.h"
#include "matrix/input/value.h"

namespace graphproof::dialect {

/// Where an option can be written. stack: it is a fact about the machine, which --stack gives.
/// retired: upstream had it once and refuses it today.
enum class Where { cli, config, both, harness, stack, retired };
std::string_view where_name(Where where);

/// How many values follow a flag: one, exactly `count`, any number, or at most one.
enum class Arity { count, one_or_more, any, optional };

/// The rules that an unreadable value breaks: on a command line, in a configuration, and in a
/// configuration with the wrong type.
struct Refusal {
  std::string cli, config, config_type;
};

/// An option of a dialect.
struct Option {
  matrix::Axis axis;  // name, type and values; its default is that of the command line
  matrix::Value config_default;
  Where where = Where::both;
  bool of_recipe = false;  // whether a harness's recipe sets it; without a flag it is unknown there
  bool frequency =
      false;  // an integer N, or a pattern of 0 and 1, stored as the list of one period
  std::vector<std::string> flags, off_flags, keys;
  Arity arity = Arity::count;
  std::size_t count = 1;
  std::optional<matrix::Value> constant;  // the value if the flag is written without one
  Refusal refused_by;
  std::string renamed_to;  // the option that has the value today
  Versions versions;       // whose parser has its flags

  const std::string& name() const { return axis.name; }
};

/// A flag of a command line. `off` flags set a boolean to false.
struct Flag {
  std::size_t option = 0;
  bool off = false;
};

/// The options of a dialect.
class OptionTable {
 public:
  /// Reads "graphproof-options/1" files. Names, flags and keys must differ. An option that
  /// `version` does not have keeps its default: no flag sets it. Throws InputError.
  static OptionTable parse(std::span<const matrix::Document> documents, const std::string& version);

  const std::vector<Option>& options() const { return options_; }
  const matrix::AxisTable& names() const { return names_; }
  const Option* find(std::string_view name) const;
  /// The flag with this spelling: of a harness, or of upstream's command line. Null if there is
  /// none.
  const Flag* flag(std::string_view spelling, bool harness) const;
  std::vector<std::string> flags(bool harness) const;
  /// The option of a dotted path in a configuration file: by the whole path, otherwise by its last
  /// part. Null if there is none.
  const Option* key(std::string_view path) const;
  /// The words of an enumeration, in the order of their numbers from 1. Null if it is unknown.
  const std::vector<std::string>* enumeration(std::string_view name) const;

 private:
  std::vector<Option> options_;
  matrix::AxisTable names_;
  std::map<std::string, std::size_t, std::less<>> index_, keys_;
  std::array<std::map<std::string, Flag, std::less<>>, 2> flags_;
  std::map<std::string, std::vector<std::string>, std::less<>> enumerations_;
};

/// Reads a pattern such as "which layers have experts" as the list of one period: 2 is [1, 0], and
/// "([1]*2+[0]*1)*2" is [1, 1, 0, 1, 1, 0]. Nothing if it can't be read.
std::optional<std::vector<std::string>> frequency_list(std::string_view text);

}  // namespace graphproof::dialect
