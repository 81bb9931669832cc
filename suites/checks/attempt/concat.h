// Puts sentences together from their parts: concat("rank ", 3, " at step ", 7).
#pragma once

#include <optional>
#include <sstream>
#include <string>

#include "reports/record/evidence/table/field_table.h"

namespace graphproof::checks {

template <class... Parts>
std::string concat(const Parts&... parts) {
  std::ostringstream out;
  out.precision(9);  // enough digits to distinguish any two fp32 values
  (out << ... << parts);
  return out.str();
}

/// A field's value as evidence spells it: 10.0, [1,2], "nan".
template <class T>
std::string shown(const T& value) {
  return record::FieldType<T>::write(value).dump();
}
/// "unknown" where evidence of an older revision lacks the field.
template <class T>
std::string shown(const std::optional<T>& value) {
  return value ? shown(*value) : "unknown";
}

}  // namespace graphproof::checks
