// Strict reading of one JSON object: a missing key, a wrong type or a word outside its list is an
// error that names the file and the place in it. Keys that the reader does not ask for are ignored,
// so a newer writer may add some. The schemas hold that the writers of this repository add no
// undocumented key.
#pragma once

#include <initializer_list>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "reports/record/text/message.h"

namespace graphproof::record {

/// JSON for writing, whose keys stay in the order in which they are set.
using Json = nlohmann::ordered_json;

/// Reads the members of one JSON object. REQUIRES: the object outlives it.
class Fields {
 public:
  /// Messages name the file (and line) `where`. Throws ReadError if `object` is not a JSON object.
  Fields(const nlohmann::json& object, std::string where);

  /// The value of `key`. Throws ReadError if it is absent or has another type. T: bool, integers,
  /// double, std::string, nlohmann::json (anything), std::vector<T>, std::map<std::string, T>.
  template <class T>
  T required(std::string_view key) const {
    return convert<T>(at(key), [&] { return place(key); });
  }

  /// As required(), but a null value gives nothing.
  template <class T>
  std::optional<T> nullable(std::string_view key) const {
    const nlohmann::json& value = at(key);
    if (value.is_null()) return std::nullopt;
    return convert<T>(value, [&] { return place(key); });
  }

  /// As required(), but an absent key gives nothing.
  template <class T>
  std::optional<T> optional(std::string_view key) const {
    if (!has(key)) return std::nullopt;
    return convert<T>(at(key), [&] { return place(key); });
  }

  /// A string that must be one of `words`.
  std::string word(std::string_view key, std::initializer_list<std::string_view> words) const;

  /// The object under `key`.
  Fields object(std::string_view key) const;
  /// The object under `key`; nothing if it is null.
  std::optional<Fields> nullable_object(std::string_view key) const;
  /// The objects of the list under `key`.
  std::vector<Fields> objects(std::string_view key) const;

  bool has(std::string_view key) const;
  /// Throws ReadError unless "schema" is `want`.
  void schema(std::string_view want) const;
  /// Throws ReadError about `key`.
  [[noreturn]] void reject(std::string_view key, std::string got, std::string want) const;
  const std::string& where() const { return where_; }

 private:
  const nlohmann::json& at(std::string_view key) const;
  std::string place(std::string_view key) const { return path_ + std::string(key); }

  /// `place()` computes the path of the value. It is called only for an error, because heartbeats
  /// and evidence have many fields.
  template <class T, class PlaceOf>
  T convert(const nlohmann::json& value, const PlaceOf& place) const {
    if constexpr (std::is_same_v<T, nlohmann::json>) {
      return value;
    } else if constexpr (std::is_same_v<T, bool>) {
      if (!value.is_boolean()) wrong_type(value, place(), "true or false");
      return value.get<bool>();
    } else if constexpr (std::is_integral_v<T>) {
      if (!value.is_number_integer()) wrong_type(value, place(), "an integer");
      return value.get<T>();
    } else if constexpr (std::is_floating_point_v<T>) {
      if (!value.is_number()) wrong_type(value, place(), "a number");
      return value.get<T>();
    } else if constexpr (std::is_same_v<T, std::string>) {
      if (!value.is_string()) wrong_type(value, place(), "a string");
      return value.get<std::string>();
    } else {
      return convert_many(value, place, static_cast<T*>(nullptr));
    }
  }

  template <class T, class PlaceOf>
  std::vector<T> convert_many(const nlohmann::json& value, const PlaceOf& place,
                              std::vector<T>*) const {
    if (!value.is_array()) wrong_type(value, place(), "a list");
    std::vector<T> result;
    for (const nlohmann::json& item : value)
      result.push_back(
          convert<T>(item, [&] { return place() + "[" + std::to_string(result.size()) + "]"; }));
    return result;
  }

  template <class T, class PlaceOf>
  std::map<std::string, T> convert_many(const nlohmann::json& value, const PlaceOf& place,
                                        std::map<std::string, T>*) const {
    if (!value.is_object()) wrong_type(value, place(), "an object");
    std::map<std::string, T> result;
    for (const auto& [key, item] : value.items())
      result.emplace(key, convert<T>(item, [&, &key = key] { return place() + "." + key; }));
    return result;
  }

  [[noreturn]] void wrong_type(const nlohmann::json& value, const std::string& place,
                               std::string_view want) const;

  const nlohmann::json* object_;
  std::string where_;
  std::string path_;  // the path of the object: "", or "skip." for the object under skip
};

}  // namespace graphproof::record
