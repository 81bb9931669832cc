// The options of an upstream dialect as data (matrix/options/DIALECT/*.json): what its command line
// and its configuration files may say, with types, defaults and spellings. Expressions of rules
// read options as if they were axes.
#pragma once

#include <array>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "matrix/case/axes.h"
#include "matrix/input/located_json.h"
#include "matrix/input/value.h"

namespace graphproof::dialect {

/// Where an option can be written. stack: a fact of the machine, given by --stack and unknown
/// otherwise. retired: upstream had it once and refuses it today.
enum class Where { cli, config, both, harness, stack, retired };
std::string_view where_name(Where where);

/// How many values follow a flag: one, exactly `count`, any number, or at most one.
enum class Arity { count, one_or_more, any, optional };

/// The rule that an unreadable value breaks.
struct Refusal {
  std::string cli, config, config_type;
};

struct Option {
  matrix::Axis axis;  // name, type, values; default_value is that of the command line
  matrix::Value config_default;
  Where where = Where::both;
  bool of_recipe = false;  // a harness's recipe sets it, so that no flag means unknown there
  bool frequency = false;  // an integer N or a pattern of 0 and 1, read as the list of one period
  std::vector<std::string> flags, off_flags, keys;
  Arity arity = Arity::count;
  std::size_t count = 1;
  std::optional<matrix::Value> constant;  // the value of a flag that stands without one
  Refusal refused_by;
  std::string renamed_to;  // the option that takes the value today

  const std::string& name() const { return axis.name; }
};

/// One flag of a command line. `off` sets a bool to false.
struct Flag {
  std::size_t option = 0;
  bool off = false;
};

class OptionTable {
 public:
  /// Reads "graphproof-options/1" files; names, flags and keys must differ. Throws InputError.
  static OptionTable parse(std::span<const matrix::Document> documents);

  const std::vector<Option>& options() const { return options_; }
  const matrix::AxisTable& names() const { return names_; }
  const Option* find(std::string_view name) const;
  /// Of `cli` options, or of `harness` ones.
  const Flag* flag(std::string_view spelling, bool harness) const;
  std::vector<std::string> flags(bool harness) const;
  /// By the dotted path of a configuration file: the whole path, or its last part where no other
  /// option has the path.
  const Option* key(std::string_view path) const;
  /// The words of an enumeration, in the order of their numbers from 1. Null when unknown.
  const std::vector<std::string>* enumeration(std::string_view name) const;

 private:
  std::vector<Option> options_;
  matrix::AxisTable names_;
  std::map<std::string, std::size_t, std::less<>> index_, keys_;
  std::array<std::map<std::string, Flag, std::less<>>, 2> flags_;
  std::map<std::string, std::vector<std::string>, std::less<>> enumerations_;
};

/// One period of "which layers are experts": 2 is [1, 0]; "([1]*2+[0]*1)*2" is [1, 1, 0, 1, 1, 0].
/// Nothing when it can't be read.
std::optional<std::vector<std::string>> frequency_list(std::string_view text);

}  // namespace graphproof::dialect
