// Typed and strict reading of a document's values: every mistake is an InputError at its place.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "matrix/input/document.h"

namespace graphproof::matrix {

/// A value of a document together with its place. Its readers are strict about types and throw
/// InputError at the place. REQUIRES: the document outlives it.
class Located {
 public:
  explicit Located(const Document& document) : Located(document, document.value, "") {}

  const Json& json() const { return *json_; }
  const std::string& pointer() const { return pointer_; }
  Place place() const;
  /// The place of the key that the value has in its object; the value's own place if it has no key.
  Place key_place() const;
  /// For a string that is an expression: offsets in the decoded string become places.
  Origin origin() const;

  /// Throws unless this is an object whose keys are all among `required` and `optional`, none of
  /// `required` missing.
  void expect_keys(std::initializer_list<const char*> required,
                   std::initializer_list<const char*> optional) const;
  bool has(std::string_view key) const;
  Located at(std::string_view key) const;
  /// The elements of an array.
  std::vector<Located> items() const;
  /// The members of an object, in the order in which they were written.
  std::vector<std::pair<std::string, Located>> members() const;
  std::string string() const;
  std::int64_t integer(std::int64_t minimum, std::int64_t maximum) const;
  double number(double minimum, double maximum) const;
  bool boolean() const;
  /// The string, which must be one of `words`.
  std::string word(std::initializer_list<const char*> words) const;
  std::string string_or(std::string_view key, std::string otherwise) const;

  /// Throws InputError at the value, with the value as `got`.
  [[noreturn]] void fail(std::string what, std::string want, std::string why,
                         std::string next) const;

 private:
  Located(const Document& document, const Json& json, std::string pointer)
      : document_(&document), json_(&json), pointer_(std::move(pointer)) {}
  void expect_type(Json::value_t type, const char* want) const;

  const Document* document_;
  const Json* json_;
  std::string pointer_;
};

}  // namespace graphproof::matrix
