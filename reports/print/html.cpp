#include "reports/print/html.h"

#include <openssl/evp.h>

#include <array>
#include <stdexcept>
#include <string_view>

#include "reports/print/packing.h"
#include "reports/print/page_data.h"

namespace graphproof::reports {

namespace page {
// The parts of the page; made by CMake. The names are in the order of CMakeLists.txt.
std::string_view embedded(std::string_view name);
std::vector<std::string_view> embedded_names();
}  // namespace page

namespace {

/// A source of the content security policy: the script or style sheet with exactly this text.
std::string source_of(std::string_view text) {
  std::array<unsigned char, 32> digest{};
  EVP_Digest(text.data(), text.size(), digest.data(), nullptr, EVP_sha256(), nullptr);
  return "'sha256-" + base64({reinterpret_cast<const char*>(digest.data()), digest.size()}) + "'";
}

/// The modules, which share one scope.
std::string script() {
  std::string text = "'use strict';\n";
  for (const std::string_view name : page::embedded_names())
    if (name.ends_with(".js")) text += page::embedded(name);
  return text;
}

void put(std::string& page, std::string_view place, std::string_view text) {
  const std::size_t at = page.find(place);
  if (at == std::string::npos)
    throw std::logic_error("the page has no place " + std::string(place));
  page.replace(at, place.size(), text);
}

}  // namespace

std::string html(const RunResult& run, const PageFacts& facts) {
  static const std::string modules = script();
  static const std::string_view echarts = page::embedded("page/vendor/echarts.min.js.gz");
  static const std::string script_sources = source_of(modules) + " " + source_of(gunzip(echarts));
  const std::string_view style = page::embedded("page/page.css");

  std::string text(page::embedded("page/page.html"));
  put(text, "/*script-sources*/", script_sources);
  put(text, "/*style-sources*/", source_of(style));
  put(text, "/*page.css*/", style);
  put(text, "/*page.js*/", modules);
  put(text, "/*echarts*/", base64(echarts));
  const PageData data = page_data(run, facts);
  std::string chunks;
  for (const std::string& chunk : data.chunks)
    chunks += "<script type=\"text/plain\" class=\"chunk\">" + chunk + "</script>\n";
  put(text, "<!--chunks-->", chunks);
  put(text, "/*run.json*/", packed(data.run));
  return text;
}

}  // namespace graphproof::reports
