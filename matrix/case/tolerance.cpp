#include "matrix/case/tolerance.h"

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>
#include <vector>

#include "matrix/input/input_error.h"

namespace graphproof::matrix {
namespace {

constexpr double kMostRtol = 1, kMostAtol = 1e6;  // as of the keys of a matrix file

std::vector<std::string> class_names() {
  std::vector<std::string> names;
  for (const TensorClass& one : kTensorClasses) names.emplace_back(one.name);
  return names;
}

std::optional<double> number(const std::string& text, double most) {
  double value = 0;
  const char* const end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || at != end || !(value >= 0 && value <= most)) return std::nullopt;
  return value;
}

[[noreturn]] void refuse(const Origin& origin, std::size_t offset, std::string what,
                         std::string got) {
  throw InputError({.what = std::move(what),
                    .got = std::move(got),
                    .want = "parts like `losses: rtol 1e-05 atol 1e-08`, joined by `;`, each for "
                            "one of " +
                            listed(class_names()),
                    .why = "a tolerance that is misread would hide a difference",
                    .next = "write the tolerance as docs/reference/matrix.md shows it, or as an "
                            "oracle rule of a matrix file",
                    .place = origin.at(offset)});
}

}  // namespace

std::string_view class_of_tensor(std::string_view tensor) {
  for (const TensorClass& one : kTensorClasses)
    if (tensor.starts_with(one.prefix)) return one.name;
  return {};
}

Tolerances parse_tolerances(std::string_view text, const Origin& origin) {
  Tolerances tolerances;
  if (text == kBitwise) return tolerances;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(';', begin), text.size());
    const std::string part(text.substr(begin, end - begin));
    std::istringstream words(part);
    std::string name, rtol, rtol_text, atol, atol_text, more;
    words >> name >> rtol >> rtol_text >> atol >> atol_text;
    const auto relative = number(rtol_text, kMostRtol), absolute = number(atol_text, kMostAtol);
    if (!name.ends_with(':') || rtol != "rtol" || atol != "atol" || !relative || !absolute ||
        words >> more)
      refuse(origin, begin, "a tolerance that can't be read", part);
    name.pop_back();
    const std::vector<std::string> names = class_names();
    if (std::ranges::find(names, name) == names.end())
      refuse(origin, begin, "there is no class of tensors `" + name + "`", name);
    if (!tolerances.emplace(name, Tolerance{*relative, *absolute}).second)
      refuse(origin, begin, "two tolerances for `" + name + "`", std::string(text));
    begin = end + 1;
  }
  return tolerances;
}

std::string tolerances_text(const Tolerances& tolerances) {
  if (tolerances.empty()) return std::string(kBitwise);
  std::string text;
  for (const TensorClass& one : kTensorClasses) {
    const auto found = tolerances.find(one.name);
    if (found == tolerances.end()) continue;
    const auto shown = [](double value) { return nlohmann::json(value).dump(); };
    text += (text.empty() ? "" : "; ") + std::string(one.name) + ": rtol " +
            shown(found->second.rtol) + " atol " + shown(found->second.atol);
  }
  return text;
}

}  // namespace graphproof::matrix
