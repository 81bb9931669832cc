// Reads JSON with comments and keeps the place of every key and value, so that a later message
// about one of them can name line and column. It is stricter than nlohmann's reader: duplicate
// keys, invalid UTF-8, numbers out of range and very deep nesting are errors with a place.
#pragma once

#include <nlohmann/json.hpp>

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "matrix/input/input_error.h"

namespace graphproof::matrix {

/// JSON whose objects keep their keys in the order in which they were written.
using Json = nlohmann::ordered_json;

/// Where the text of an expression came from, so that an offset in the expression becomes a place:
/// the text is either the whole document, or a JSON string (with escapes) inside it.
struct Origin {
  std::string source;
  std::shared_ptr<const std::string> document;
  std::size_t begin = 0;  // byte of the document where the expression, or its opening quote, is
  bool in_json_string = false;

  /// The origin of a text from a command line; `source` is the option's name.
  static Origin option(std::string source, std::string text);
  /// The place of byte `offset` of the expression.
  Place at(std::size_t offset) const;
};

/// A document that was read: its text, its value, and where the parts of the value are in the text.
struct Document {
  std::string source;
  std::shared_ptr<const std::string> text;
  Json value;
  std::vector<std::size_t> line_begins;       // byte where each line starts
  std::vector<std::size_t> character_counts;  // characters before each block of kBlockBytes bytes
  // The counts make the column of a place in a line of megabytes cheap.
  static constexpr std::size_t kBlockBytes = 1024;
  // JSON pointer -> byte where the value starts
  std::unordered_map<std::string, std::size_t> offsets;
  // JSON pointer of a member -> byte where its key starts
  std::unordered_map<std::string, std::size_t> keys;

  /// The place of byte `offset` of the text.
  Place at(std::size_t offset) const;
};

/// Reads one JSON value with comments. Throws InputError.
Document parse_document(std::string_view text, std::string source);

/// A key as a part of a JSON pointer, in which ~ and / are escaped.
std::string pointer_token(std::string_view key);

}  // namespace graphproof::matrix
