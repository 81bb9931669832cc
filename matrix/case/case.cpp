#include "matrix/case/case.h"

#include <openssl/evp.h>

#include <algorithm>
#include <array>
#include <cassert>

namespace graphproof::matrix {
namespace {

constexpr std::size_t kIdDigits = 16;
constexpr std::string_view kAllDefaults = "default";

// Where the parts of `a=1,b=[x,y],c=full(block,2),d="x,y"` begin: commas inside brackets and quotes
// separate no parts.
std::vector<std::size_t> part_begins(std::string_view name) {
  std::vector<std::size_t> begins{0};
  int depth = 0;
  bool quoted = false;
  for (std::size_t i = 0; i < name.size(); ++i) {
    const char c = name[i];
    if (quoted) {
      if (c == '\\')
        ++i;
      else if (c == '"')
        quoted = false;
    } else if (c == '"') {
      quoted = true;
    } else if (c == '[' || c == '(') {
      ++depth;
    } else if (c == ']' || c == ')') {
      --depth;
    } else if (c == ',' && depth == 0) {
      begins.push_back(i + 1);
    }
  }
  return begins;
}

}  // namespace

Case case_from_json(const AxisTable& axes, const Located& object) {
  Case result;
  for (const auto& [name, value] : object.members()) {
    const Axis& axis = axes.at(name, value.key_place());
    set_value(axes, result, name, parse_value(axis, name, value.json(), value.place()));
  }
  return result;
}

Case case_from_json(const AxisTable& axes, const nlohmann::json& object, std::string source) {
  return case_from_json(axes, Located(parse_document(object.dump(), std::move(source))));
}

void set_value(const AxisTable& axes, Case& test_case, std::string_view axis, Value value) {
  const std::string name(axis);
  if (value == axes.at(axis, {}).default_value)
    test_case.values.erase(name);
  else
    test_case.values[name] = std::move(value);
}

Value value_of(const AxisTable& axes, const Case& test_case, std::string_view axis) {
  const auto found = test_case.values.find(std::string(axis));
  return found == test_case.values.end() ? axes.at(axis, {}).default_value : found->second;
}

std::string_view subject_of(const Case& test_case) {
  const auto found = test_case.values.find("subject");
  return found == test_case.values.end() ? kReference
                                         : std::string_view(std::get<std::string>(found->second));
}

std::int64_t integer_of(const AxisTable& axes, const Case& test_case, std::string_view axis) {
  return std::get<std::int64_t>(value_of(axes, test_case, axis));
}

std::string text_of(const AxisTable& axes, const Case& test_case, std::string_view axis) {
  return std::get<std::string>(value_of(axes, test_case, axis));
}

bool boolean_of(const AxisTable& axes, const Case& test_case, std::string_view axis) {
  return std::get<bool>(value_of(axes, test_case, axis));
}

std::string canonical_text(const Case& test_case) {
  nlohmann::json object = nlohmann::json::object();  // sorts its keys
  for (const auto& [name, value] : test_case.values) object[name] = value_json(value);
  return object.dump();
}

std::string sha256_hex(std::string_view text) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned length = 0;
  const int done =
      EVP_Digest(text.data(), text.size(), digest.data(), &length, EVP_sha256(), nullptr);
  if (done != 1) throw std::runtime_error("libcrypto refused SHA-256");
  std::string hex;
  for (unsigned i = 0; i < length; ++i) {
    hex += "0123456789abcdef"[digest[i] >> 4];
    hex += "0123456789abcdef"[digest[i] & 15];
  }
  return hex;
}

std::string case_id(const Case& test_case) {
  return sha256_hex(canonical_text(test_case)).substr(0, kIdDigits);
}

std::string case_name(const AxisTable& axes, const Case& test_case) {
  if (test_case.values.empty()) return std::string(kAllDefaults);
  std::vector<std::string> names;
  for (const auto& [name, value] : test_case.values) names.push_back(name);
  std::sort(names.begin(), names.end(),
            [&](const std::string& a, const std::string& b) { return axes.before(a, b); });
  std::string text;
  for (const std::string& name : names)
    text += (text.empty() ? "" : ",") + name + "=" + value_text(test_case.values.at(name));
  return text;
}

Case case_from_name(const AxisTable& axes, std::string_view name, std::string source) {
  Case result;
  if (name == kAllDefaults) return result;
  std::vector<std::string> seen;
  const std::vector<std::size_t> begins = part_begins(name);
  for (std::size_t i = 0; i < begins.size(); ++i) {
    const std::size_t end = i + 1 < begins.size() ? begins[i + 1] - 1 : name.size();
    const std::string_view part = name.substr(begins[i], end - begins[i]);
    const Place place = place_in(source, name, begins[i]);
    const std::size_t equals = part.find('=');
    if (equals == std::string_view::npos)
      throw InputError({.what = "`" + std::string(part) + "` is no axis=value",
                        .got = std::string(part),
                        .want = "axis=value,axis=value or `default`",
                        .why = "",
                        .next = "write the case as `impl=local,tp=2`",
                        .place = place});
    const std::string axis_name(part.substr(0, equals));
    const Axis& axis = axes.at(axis_name, place);
    if (std::find(seen.begin(), seen.end(), axis_name) != seen.end())
      throw InputError({.what = "axis `" + axis_name + "` appears twice",
                        .got = std::string(part),
                        .want = "each axis once",
                        .why = "",
                        .next = "remove one of them",
                        .place = place});
    seen.push_back(axis_name);
    const Place value_place = place_in(source, name, begins[i] + equals + 1);
    set_value(axes, result, axis_name,
              parse_value_text(axis, axis_name, part.substr(equals + 1), value_place));
  }
  return result;
}

nlohmann::json effective_values(const AxisTable& axes, const Case& test_case) {
  nlohmann::json object = nlohmann::json::object();
  for (const Axis& axis : axes.axes()) object[axis.name] = value_json(axis.default_value);
  for (const auto& [name, value] : test_case.values) object[name] = value_json(value);
  return object;
}

Case clean_twin(const Case& test_case) {
  Case twin = test_case;
  twin.values.erase("fault");
  return twin;
}

std::int64_t world_size(const AxisTable& axes, const Case& test_case) {
  std::int64_t ranks = 1;
  for (const char* axis : {"tp", "pp", "dp", "cp"}) ranks *= integer_of(axes, test_case, axis);
  return ranks;
}

std::size_t resolve_case(std::string_view reference, std::span<const KnownCase> cases) {
  std::vector<std::size_t> matches;
  for (std::size_t i = 0; i < cases.size(); ++i) {
    if (cases[i].name == reference || cases[i].id == reference) return i;
    if (!reference.empty() && cases[i].id.starts_with(reference)) matches.push_back(i);
  }
  if (matches.size() == 1) return matches.front();
  std::vector<std::string> candidates, names;
  for (const std::size_t i : matches) candidates.push_back(cases[i].id + " " + cases[i].name);
  for (const KnownCase& known : cases) names.push_back(known.name);
  if (matches.empty())
    throw InputError({.what = "no case `" + std::string(reference) + "`",
                      .got = std::string(reference),
                      .want = "an id, the beginning of one, or a name",
                      .why = std::to_string(cases.size()) + " cases were looked at",
                      .next = suggestion(reference, names, "`graphproof list cases` shows them"),
                      .place = {}});
  throw InputError({.what = "`" + std::string(reference) + "` means several cases",
                    .got = std::string(reference),
                    .want = "one of " + listed(candidates, 8),
                    .why = std::to_string(matches.size()) + " ids begin like this",
                    .next = "write more digits of the id, or the name",
                    .place = {}});
}

}  // namespace graphproof::matrix
