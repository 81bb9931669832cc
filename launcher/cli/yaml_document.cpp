#include "launcher/cli/yaml_document.h"

#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>

namespace graphproof::cli {
namespace {

using matrix::Json;

constexpr int kDeepestNesting = 64;
constexpr int kMostNodes =
    100'000;  // aliases of aliases multiply the nodes; a real configuration has some thousands

class Builder {
 public:
  Builder(const std::string& text, const std::string& source) {
    document_.source = source;
    document_.text = std::make_shared<const std::string>(text);
    document_.line_begins.push_back(0);
    for (std::size_t i = 0; i < text.size(); ++i)
      if (text[i] == '\n') document_.line_begins.push_back(i + 1);
  }

  matrix::Document run(const YAML::Node& root) {
    document_.value = value(root, "", 0);
    return std::move(document_);
  }

  // yaml-cpp replaces bytes that it cannot read and continues.
  void expect_utf8() const {
    const std::string& text = *document_.text;
    for (std::size_t at = 0; at < text.size();) {
      const auto byte = [&](std::size_t i) {
        return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u;
      };
      const unsigned lead = byte(at);
      const std::size_t size = lead < 0x80                   ? 1
                               : lead >= 0xC2 && lead < 0xE0 ? 2
                               : lead >= 0xE0 && lead < 0xF0 ? 3
                               : lead >= 0xF0 && lead < 0xF5 ? 4
                                                             : 0;
      bool good = size > 0;
      for (std::size_t i = 1; i < size; ++i) good = good && (byte(at + i) & 0xC0) == 0x80;
      if (!good)
        throw matrix::InputError({.what = "invalid UTF-8",
                                  .got = "byte " + std::to_string(lead),
                                  .want = "text in UTF-8",
                                  .why = "",
                                  .next = "save the file as UTF-8",
                                  .place = document_.at(at)});
      at += size;
    }
  }

  [[noreturn]] void fail(const YAML::Mark& mark, std::string what, std::string next) const {
    throw matrix::InputError({.what = std::move(what),
                              .got = "",
                              .want = "YAML that Python's loader reads",
                              .why = "",
                              .next = std::move(next),
                              .place = document_.at(offset(mark))});
  }

 private:
  std::size_t offset(const YAML::Mark& mark) const {
    if (mark.is_null()) return 0;
    const std::size_t line =
        std::min(static_cast<std::size_t>(mark.line), document_.line_begins.size() - 1);
    std::size_t at = document_.line_begins[line];
    for (int column = 0; column < mark.column && at < document_.text->size(); ++at) {
      const bool continues = at + 1 < document_.text->size() &&
                             (static_cast<unsigned char>((*document_.text)[at + 1]) & 0xC0) == 0x80;
      if (!continues) ++column;
    }
    return std::min(at, document_.text->size());
  }

  Json value(const YAML::Node& node, const std::string& pointer, int depth) {
    if (depth > kDeepestNesting || ++nodes_ > kMostNodes)
      fail(node.Mark(), "a YAML document that is too large or too deep", "shorten it");
    document_.offsets[pointer] = offset(node.Mark());
    if (node.IsSequence()) {
      Json list = Json::array();
      for (std::size_t i = 0; i < node.size(); ++i)
        list.push_back(value(node[i], pointer + "/" + std::to_string(i), depth + 1));
      return list;
    }
    if (node.IsMap()) {
      Json object = Json::object();
      std::vector<YAML::Node> merged;
      for (const auto& member : node) {
        if (!member.first.IsScalar())
          fail(member.first.Mark(), "a key that is no word", "write a name before the colon");
        const std::string key = member.first.Scalar();
        if (key == "<<") {
          if (member.second.IsMap())
            merged.push_back(member.second);
          else
            for (const auto& item : member.second) merged.push_back(item);
          continue;
        }
        if (object.contains(key))
          fail(member.first.Mark(), "the key `" + key + "` is there twice", "remove one of them");
        add(object, key, member, pointer, depth);
      }
      for (const YAML::Node& other : merged)
        for (const auto& member : other)
          if (!object.contains(member.first.Scalar()))
            add(object, member.first.Scalar(), member, pointer, depth);
      return object;
    }
    return node.IsScalar() ? scalar(node) : Json(nullptr);
  }

  template <class Member>
  void add(Json& object, const std::string& key, const Member& member, const std::string& pointer,
           int depth) {
    const std::string own = pointer + "/" + matrix::pointer_token(key);
    document_.keys[own] = offset(member.first.Mark());
    object[key] = value(member.second, own, depth + 1);
  }

  static Json scalar(const YAML::Node& node) {
    const std::string& text = node.Scalar();
    if (node.Tag() == "!") return text;  // quoted
    for (const char* word : {"", "~", "null", "Null", "NULL"})
      if (text == word) return nullptr;
    std::string lower = text;
    std::transform(lower.begin(), lower.end(), lower.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    for (const char* word : {"true", "yes", "on"})
      if (lower == word) return true;
    for (const char* word : {"false", "no", "off"})
      if (lower == word) return false;
    const char* begin = text.data() + (text[0] == '+' ? 1 : 0);
    const char* end = text.data() + text.size();
    std::int64_t integer = 0;
    if (const auto read = std::from_chars(begin, end, integer);
        read.ec == std::errc() && read.ptr == end)
      return integer;
    double number = 0;
    if (const auto read = std::from_chars(begin, end, number);
        read.ec == std::errc() && read.ptr == end &&
        std::isdigit(
            static_cast<unsigned char>(text[text.find_first_not_of("+-.") == std::string::npos
                                                ? 0
                                                : text.find_first_not_of("+-.")])))
      return number;
    return text;
  }

  matrix::Document document_;
  int nodes_ = 0;
};

}  // namespace

matrix::Document yaml_document(const std::string& text, const std::string& source) {
  Builder builder(text, source);
  builder.expect_utf8();
  try {
    const std::vector<YAML::Node> documents = YAML::LoadAll(text);
    if (documents.size() > 1)
      builder.fail(documents[1].Mark(), "more than one YAML document",
                   "keep one of those that --- parts");
    return builder.run(documents.empty() ? YAML::Node() : documents.front());
  } catch (const YAML::Exception& error) {
    builder.fail(error.mark, "YAML that can't be read: " + error.msg,
                 "correct the text at this place");
  }
}

}  // namespace graphproof::cli
