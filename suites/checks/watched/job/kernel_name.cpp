#include "suites/checks/watched/job/kernel_name.h"

#include <cxxabi.h>

#include <charconv>
#include <cstdlib>
#include <memory>

namespace graphproof::checks::watched {
namespace {

/// Empty if `name` is no mangled name.
std::string demangled(std::string_view name) {
  if (!name.starts_with("_Z")) return "";
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> text(
      abi::__cxa_demangle(std::string(name).c_str(), nullptr, nullptr, &status), &std::free);
  return status == 0 && text ? text.get() : "";
}

/// The qualified name that a mangled name begins with, where the probe cut the rest:
/// "at::copy<...>" for "_ZN2at4copyIN...". Empty if there is none.
std::string beginning_of(std::string_view name) {
  constexpr std::string_view kUnnamed = "_GLOBAL__N_";
  if (!name.starts_with("_Z")) return "";
  name.remove_prefix(2);
  const bool nested = name.starts_with('N');
  if (nested) name.remove_prefix(1);
  std::string text;
  while (!name.empty() && name.front() >= '0' && name.front() <= '9') {
    std::size_t bytes = 0;
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), bytes);
    name.remove_prefix(static_cast<std::size_t>(end - name.data()));
    if (error != std::errc() || bytes > name.size()) break;
    const std::string_view part = name.substr(0, bytes);
    text += (text.empty() ? "" : "::") +
            std::string(part.starts_with(kUnnamed) ? "(anonymous namespace)" : part);
    name.remove_prefix(bytes);
    if (!nested) break;
  }
  return text.empty() || !name.starts_with('I') ? text : text + "<...>";
}

/// Without the list of parameters at the end, and without the result type that the names of
/// templates begin with. Brackets of template arguments and of other parameter lists nest.
std::string without_signature(const std::string& text) {
  constexpr std::string_view kAnonymous = "(anonymous namespace)";
  int depth = 0;
  std::size_t begin = 0, end = text.size();
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (depth == 0 && text.compare(at, kAnonymous.size(), kAnonymous) == 0) {
      at += kAnonymous.size() - 1;
      continue;
    }
    if (depth == 0 && text[at] == '(') {
      end = at;
      break;
    }
    if (depth == 0 && text[at] == ' ') begin = at + 1;
    depth += text[at] == '<' || text[at] == '(' ? 1 : 0;
    depth -= text[at] == '>' || text[at] == ')' ? 1 : 0;
  }
  return begin < end ? text.substr(begin, end - begin) : text;
}

}  // namespace

std::string readable_name(std::string_view name) {
  const std::string full = demangled(name);
  std::string text = full.empty() ? beginning_of(name) : without_signature(full);
  if (text.empty()) text = name;
  if (text.size() <= kLongestKernelName) return text;
  constexpr std::size_t kKept = kLongestKernelName - 3, kTail = kKept / 3;
  return text.substr(0, kKept - kTail) + "..." + text.substr(text.size() - kTail);
}

}  // namespace graphproof::checks::watched
