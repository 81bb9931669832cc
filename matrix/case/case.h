// A case: one value for each axis. A case stores only the values that differ from the defaults, and
// its canonical text, from which its id comes, has only those. So a new axis changes no id, and the
// same case has the same id on every machine.
#pragma once

#include <nlohmann/json.hpp>

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>

#include "matrix/case/axes.h"
#include "matrix/input/value.h"

namespace graphproof::matrix {

/// The values of a case.
struct Case {
  std::map<std::string, Value> values;  // axis -> value that is not the default

  bool operator==(const Case&) const = default;
};

/// Reads an object of axis values; values that are defaults are accepted and not stored. Throws
/// InputError for unknown axes and values.
Case case_from_json(const AxisTable& axes, const Located& object);
Case case_from_json(const AxisTable& axes, const nlohmann::json& object, std::string source);

/// Sets one axis; a default value removes it.
void set_value(const AxisTable& axes, Case& test_case, std::string_view axis, Value value);
Value value_of(const AxisTable& axes, const Case& test_case, std::string_view axis);
/// Whose code the case tests: the value of the axis `subject`.
std::string_view subject_of(const Case& test_case);
/// The subject that is graphproof's own code, and the default.
inline constexpr std::string_view kReference = "reference";
std::int64_t integer_of(const AxisTable& axes, const Case& test_case, std::string_view axis);
std::string text_of(const AxisTable& axes, const Case& test_case, std::string_view axis);
bool boolean_of(const AxisTable& axes, const Case& test_case, std::string_view axis);

/// The case as JSON with sorted keys, without spaces and without defaults: {"impl":"local","tp":2}.
std::string canonical_text(const Case& test_case);
/// The first 16 hexadecimal digits of the SHA-256 of the canonical text.
std::string case_id(const Case& test_case);
std::string sha256_hex(std::string_view text);

/// The values that are not defaults, in axis order: `impl=local,modules=[attn,mlp],tp=2`, or
/// `default` if there is none.
std::string case_name(const AxisTable& axes, const Case& test_case);
/// The inverse of case_name. `source` names where the text came from.
Case case_from_name(const AxisTable& axes, std::string_view name, std::string source);

/// An object with the value of every axis, and of each env.NAME that is set.
nlohmann::json effective_values(const AxisTable& axes, const Case& test_case);

/// The same case without its planted fault.
Case clean_twin(const Case& test_case);

/// The ranks of the case: tp * pp * dp * cp. Expert parallel groups are made of the same ranks.
std::int64_t world_size(const AxisTable& axes, const Case& test_case);

/// A case that a user may refer to.
struct KnownCase {
  std::string id, name;
};
/// The index in `cases` of the case that `reference` (the beginning of an id, or a name) means.
/// Throws InputError with the candidates if none or several match.
std::size_t resolve_case(std::string_view reference, std::span<const KnownCase> cases);

}  // namespace graphproof::matrix
