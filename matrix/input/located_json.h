// JSON with comments that remembers where everything stands, so that any later complaint about a
// key or a value can name line and column. Stricter than the usual reader: duplicate keys, invalid
// UTF-8, numbers out of range and nesting without end are errors with a place.
#pragma once

#include <nlohmann/json.hpp>

#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "matrix/input/input_error.h"

namespace graphproof::matrix {

/// Keeps the order of keys as written.
using Json = nlohmann::ordered_json;

/// Where an expression's text came from, to turn an offset in it into a place: the text itself, or
/// a JSON string (with escapes) inside a document.
struct Origin {
  std::string source;
  std::shared_ptr<const std::string> document;
  std::size_t begin = 0;
  bool in_json_string = false;

  /// Text from a command line; `source` is the option's name.
  static Origin option(std::string source, std::string text);
  Place at(std::size_t offset) const;
};

struct Document {
  std::string source;
  std::shared_ptr<const std::string> text;
  Json value;
  std::vector<std::size_t> line_begins;       // byte where each line starts
  std::vector<std::size_t> character_counts;  // characters before each block of kBlockBytes bytes
  static constexpr std::size_t kBlockBytes =
      1024;  // so that a place in a line of megabytes costs little
  std::unordered_map<std::string, std::size_t>
      offsets;  // JSON pointer -> byte where the value starts
  std::unordered_map<std::string, std::size_t>
      keys;  // JSON pointer of a member -> byte where its key starts

  Place at(std::size_t offset) const;
};

/// Reads one document. Throws InputError.
Document parse_document(std::string_view text, std::string source);

/// A value of a document with its place; reads typed fields strictly.
class Located {
 public:
  explicit Located(const Document& document) : Located(document, document.value, "") {}

  const Json& json() const { return *json_; }
  const std::string& pointer() const { return pointer_; }
  Place place() const;      // of the value
  Place key_place() const;  // of the key that it stands under, else of the value
  Origin origin() const;    // of a string: offsets count in its text

  /// Throws unless this is an object whose keys are all among `required` and `optional`, none of
  /// `required` missing.
  void expect_keys(std::initializer_list<const char*> required,
                   std::initializer_list<const char*> optional) const;
  bool has(std::string_view key) const;
  Located at(std::string_view key) const;
  std::vector<Located> items() const;                            // of an array
  std::vector<std::pair<std::string, Located>> members() const;  // of an object, in order
  std::string string() const;
  std::int64_t integer(std::int64_t minimum, std::int64_t maximum) const;
  double number(double minimum, double maximum) const;
  bool boolean() const;
  /// The string, which must be one of `words`.
  std::string word(std::initializer_list<const char*> words) const;
  std::string string_or(std::string_view key, std::string otherwise) const;

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
