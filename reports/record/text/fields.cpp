#include "reports/record/text/fields.h"

namespace graphproof::record {
namespace {

constexpr const char* kWhy =
    "results move only as files, so each reader holds its writer to the schema";

/// A value for a message. Long values are cut; the message names the place where the rest is.
std::string shown(const nlohmann::json& value) {
  constexpr std::size_t kShownBytes = 80;
  std::string text = value.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
  if (text.size() > kShownBytes) text = text.substr(0, kShownBytes) + " ...";
  return text;
}

}  // namespace

Fields::Fields(const nlohmann::json& object, std::string where)
    : object_(&object), where_(std::move(where)) {
  if (!object.is_object())
    throw ReadError(
        {.what = where_ + " is not a JSON object",
         .got = shown(object),
         .want = "an object",
         .why = kWhy,
         .next = "look at the file; reports/record/schema has its schema and an example"});
}

bool Fields::has(std::string_view key) const { return object_->contains(std::string(key)); }

const nlohmann::json& Fields::at(std::string_view key) const {
  const auto found = object_->find(std::string(key));
  if (found == object_->end()) {
    std::string keys;
    for (const auto& item : object_->items()) keys += (keys.empty() ? "" : ", ") + item.key();
    throw ReadError(
        {.what = where_ + ": `" + place(key) + "` is missing",
         .got = keys.empty() ? "no keys" : "only the keys " + keys,
         .want = "the key `" + std::string(key) + "`",
         .why = kWhy,
         .next = "look at the file; reports/record/schema has its schema and an example"});
  }
  return *found;
}

std::string Fields::word(std::string_view key,
                         std::initializer_list<std::string_view> words) const {
  const std::string text = required<std::string>(key);
  std::string list;
  for (const std::string_view word : words) {
    if (word == text) return text;
    list += (list.empty() ? "" : ", ") + std::string(word);
  }
  reject(key, "`" + text + "`", "one of " + list);
}

Fields Fields::object(std::string_view key) const {
  const nlohmann::json& value = at(key);
  if (!value.is_object()) wrong_type(value, place(key), "an object");
  Fields inner(value, where_);
  inner.path_ = place(key) + ".";
  return inner;
}

std::optional<Fields> Fields::nullable_object(std::string_view key) const {
  if (at(key).is_null()) return std::nullopt;
  return object(key);
}

std::vector<Fields> Fields::objects(std::string_view key) const {
  const nlohmann::json& value = at(key);
  if (!value.is_array()) wrong_type(value, place(key), "a list");
  std::vector<Fields> result;
  for (const nlohmann::json& item : value) {
    const std::string own = place(key) + "[" + std::to_string(result.size()) + "]";
    if (!item.is_object()) wrong_type(item, own, "an object");
    Fields inner(item, where_);
    inner.path_ = own + ".";
    result.push_back(std::move(inner));
  }
  return result;
}

void Fields::schema(std::string_view want) const {
  const std::string got = required<std::string>("schema");
  if (got != want) reject("schema", "`" + got + "`", "`" + std::string(want) + "`");
}

void Fields::reject(std::string_view key, std::string got, std::string want) const {
  throw ReadError(
      {.what = where_ + ": `" + place(key) + "` has a value it cannot have",
       .got = std::move(got),
       .want = std::move(want),
       .why = kWhy,
       .next = "look at the file; reports/record/schema has its schema and an example"});
}

void Fields::wrong_type(const nlohmann::json& value, const std::string& place,
                        std::string_view want) const {
  throw ReadError(
      {.what = where_ + ": `" + place + "` has the wrong type",
       .got = std::string(value.type_name()) + " " + shown(value),
       .want = std::string(want),
       .why = kWhy,
       .next = "look at the file; reports/record/schema has its schema and an example"});
}

}  // namespace graphproof::record
