#include "matrix/cover/files/model_file.h"

#include "matrix/input/input_error.h"

namespace graphproof::cover {
namespace {

/// Position of the first byte that is not UTF-8 text (or is a zero byte), or npos.
std::size_t first_bad_byte(std::string_view text) {
  for (std::size_t at = 0; at < text.size();) {
    const auto byte = static_cast<unsigned char>(text[at]);
    if (byte == 0) return at;
    const std::size_t length = byte < 0x80                   ? 1
                               : byte >= 0xC2 && byte < 0xE0 ? 2
                               : byte >= 0xE0 && byte < 0xF0 ? 3
                               : byte >= 0xF0 && byte < 0xF5 ? 4
                                                             : 0;
    if (length == 0 || at + length > text.size()) return at;
    for (std::size_t next = 1; next < length; ++next)
      if ((static_cast<unsigned char>(text[at + next]) & 0xC0) != 0x80) return at;
    at += length;
  }
  return std::string_view::npos;
}

Format format_of(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(" \t\r\n");
  if (begin != std::string_view::npos && text[begin] == '{' &&
      text.find("\"clauses\"") != std::string_view::npos)
    return Format::clauses;
  for (std::size_t at = 0; at != std::string_view::npos && at < text.size();
       at = text.find('\n', at), at += at == std::string_view::npos ? 0 : 1) {
    const std::string_view line = text.substr(at, 12);
    if (line.starts_with("[System]") || line.starts_with("[Parameter]")) return Format::acts;
  }
  return Format::pict;
}

}  // namespace

ModelFile read_model(std::string_view text, std::string source, Format format) {
  if (text.size() > kMostModelBytes)
    throw matrix::InputError({"the file is too large for a model",
                              std::to_string(text.size()) + " bytes",
                              std::to_string(kMostModelBytes) + " bytes or fewer",
                              "",
                              "check the path",
                              {.source = source}});
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  if (const std::size_t bad = first_bad_byte(text); bad != std::string_view::npos)
    throw matrix::InputError({"the model is not UTF-8 text",
                              "byte " + std::to_string(static_cast<unsigned char>(text[bad])),
                              "UTF-8", "", "convert the file",
                              matrix::place_in(source, text, bad)});
  if (format == Format::automatic) format = format_of(text);
  ModelFile file = format == Format::acts      ? read_acts(text, source)
                   : format == Format::clauses ? read_clauses(text, source)
                                               : read_pict(text, source);
  file.format = format;
  check_model(file.model);
  return file;
}

}  // namespace graphproof::cover
