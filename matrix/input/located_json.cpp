#include "matrix/input/located_json.h"

#include <algorithm>
#include <cstdint>
#include <utility>

namespace graphproof::matrix {
namespace {

const char* type_word(Json::value_t type) {
  switch (type) {
    case Json::value_t::object:
      return "an object";
    case Json::value_t::array:
      return "an array";
    case Json::value_t::string:
      return "a text";
    case Json::value_t::boolean:
      return "true or false";
    case Json::value_t::null:
      return "null";
    case Json::value_t::number_integer:
    case Json::value_t::number_unsigned:
      return "an integer";
    default:
      return "a number";
  }
}

}  // namespace

Place Located::place() const { return document_->at(document_->offsets.at(pointer_)); }

Place Located::key_place() const {
  const auto key = document_->keys.find(pointer_);
  return key == document_->keys.end() ? place() : document_->at(key->second);
}

Origin Located::origin() const {
  return {document_->source, document_->text, document_->offsets.at(pointer_), true};
}

void Located::fail(std::string what, std::string want, std::string why, std::string next) const {
  std::string got = json_->dump();
  constexpr std::size_t kShown = 80;
  if (got.size() > kShown)
    got =
        std::string(type_word(json_->type())) + " of " + std::to_string(got.size()) + " characters";
  throw InputError({.what = std::move(what),
                    .got = std::move(got),
                    .want = std::move(want),
                    .why = std::move(why),
                    .next = std::move(next),
                    .place = place()});
}

void Located::expect_type(Json::value_t type, const char* want) const {
  const bool integers = json_->is_number_integer() && type == Json::value_t::number_integer;
  if (json_->type() == type || integers) return;
  const std::string name =
      pointer_.empty() ? "the document" : "`" + pointer_.substr(pointer_.rfind('/') + 1) + "`";
  fail(name + " has the wrong type", want, "types are strict: \"4\" is not 4",
       "write " + std::string(want));
}

void Located::expect_keys(std::initializer_list<const char*> required,
                          std::initializer_list<const char*> optional) const {
  expect_type(Json::value_t::object, "an object");
  std::vector<std::string> known(required.begin(), required.end());
  known.insert(known.end(), optional.begin(), optional.end());
  for (const auto& [key, located] : members()) {
    if (std::find(known.begin(), known.end(), key) != known.end()) continue;
    throw InputError({.what = "unknown key `" + key + "`",
                      .got = key,
                      .want = "one of " + listed(known),
                      .why = "",
                      .next = suggestion(key, known, "remove it"),
                      .place = located.key_place()});
  }
  for (const char* key : required) {
    if (!has(key))
      fail("the key `" + std::string(key) + "` is missing", "an object with " + listed(known), "",
           "add `" + std::string(key) + "`");
  }
}

bool Located::has(std::string_view key) const {
  return json_->is_object() && json_->contains(std::string(key));
}

Located Located::at(std::string_view key) const {
  expect_type(Json::value_t::object, "an object");
  const auto member = json_->find(std::string(key));
  if (member == json_->end())
    fail("the key `" + std::string(key) + "` is missing", "it to be there", "", "add it");
  return {*document_, *member, pointer_ + "/" + pointer_token(key)};
}

std::vector<Located> Located::items() const {
  expect_type(Json::value_t::array, "an array");
  std::vector<Located> result;
  for (std::size_t i = 0; i < json_->size(); ++i)
    result.push_back(Located(*document_, (*json_)[i], pointer_ + "/" + std::to_string(i)));
  return result;
}

std::vector<std::pair<std::string, Located>> Located::members() const {
  expect_type(Json::value_t::object, "an object");
  std::vector<std::pair<std::string, Located>> result;
  for (auto member = json_->begin(); member != json_->end(); ++member)
    result.emplace_back(member.key(), Located(*document_, member.value(),
                                              pointer_ + "/" + pointer_token(member.key())));
  return result;
}

std::string Located::string() const {
  expect_type(Json::value_t::string, "a text");
  return json_->get<std::string>();
}

std::int64_t Located::integer(std::int64_t minimum, std::int64_t maximum) const {
  expect_type(Json::value_t::number_integer, "an integer");
  const auto result = json_->get<std::int64_t>();
  if (result < minimum || result > maximum)
    fail("the number " + std::to_string(result) + " is out of range",
         std::to_string(minimum) + " to " + std::to_string(maximum), "",
         "choose a number in the range");
  return result;
}

double Located::number(double minimum, double maximum) const {
  if (!json_->is_number()) expect_type(Json::value_t::number_float, "a number");
  const auto result = json_->get<double>();
  if (!(result >= minimum && result <= maximum))
    fail("the number is out of range", Json(minimum).dump() + " to " + Json(maximum).dump(), "",
         "choose a number in the range");
  return result;
}

bool Located::boolean() const {
  expect_type(Json::value_t::boolean, "true or false");
  return json_->get<bool>();
}

std::string Located::word(std::initializer_list<const char*> words) const {
  const std::string text = string();
  const std::vector<std::string> known(words.begin(), words.end());
  if (std::find(known.begin(), known.end(), text) == known.end())
    fail("unknown value `" + text + "`", "one of " + listed(known), "",
         suggestion(text, known, "choose one of them"));
  return text;
}

std::string Located::string_or(std::string_view key, std::string otherwise) const {
  return has(key) ? at(key).string() : otherwise;
}

}  // namespace graphproof::matrix
