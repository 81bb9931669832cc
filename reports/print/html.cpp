#include "reports/print/html.h"

#include <openssl/evp.h>
#include <zlib.h>

#include <array>
#include <stdexcept>
#include <string_view>

#include "reports/print/page_data.h"

namespace graphproof::reports {

namespace page {
// The parts of the page; made by CMake. The names are in the order of CMakeLists.txt.
std::string_view embedded(std::string_view name);
std::vector<std::string_view> embedded_names();
}  // namespace page

namespace {

std::string base64(std::string_view bytes) {
  std::string text(4 * ((bytes.size() + 2) / 3) + 1, '\0');
  const int length = EVP_EncodeBlock(reinterpret_cast<unsigned char*>(text.data()),
                                     reinterpret_cast<const unsigned char*>(bytes.data()),
                                     static_cast<int>(bytes.size()));
  text.resize(static_cast<std::size_t>(length));
  return text;
}

constexpr int kGzip = 15 + 16;  // window bits of zlib for the format gzip

std::string gzip(const std::string& text) {
  z_stream stream{};
  if (deflateInit2(&stream, 6, Z_DEFLATED, kGzip, 8, Z_DEFAULT_STRATEGY) != Z_OK)
    throw std::runtime_error("zlib cannot compress the data of report.html");
  std::string packed(deflateBound(&stream, text.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  const int result = deflate(&stream, Z_FINISH);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  if (result != Z_STREAM_END)
    throw std::runtime_error("zlib cannot compress the data of report.html");
  return packed;
}

std::string gunzip(std::string_view packed) {
  z_stream stream{};
  if (inflateInit2(&stream, kGzip) != Z_OK)
    throw std::runtime_error("zlib cannot unpack the plotting library of report.html");
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed.data()));
  stream.avail_in = static_cast<uInt>(packed.size());
  std::string text;
  std::array<char, 1 << 16> part{};
  int result = Z_OK;
  while (result == Z_OK) {
    stream.next_out = reinterpret_cast<Bytef*>(part.data());
    stream.avail_out = part.size();
    result = inflate(&stream, Z_NO_FLUSH);
    text.append(part.data(), part.size() - stream.avail_out);
  }
  inflateEnd(&stream);
  if (result != Z_STREAM_END)
    throw std::runtime_error("zlib cannot unpack the plotting library of report.html");
  return text;
}

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

std::string packed_json(const nlohmann::json& value) {
  return base64(gzip(value.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace)));
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
  for (const nlohmann::json& chunk : data.chunks)
    chunks += "<script type=\"text/plain\" class=\"chunk\">" + packed_json(chunk) + "</script>\n";
  put(text, "<!--chunks-->", chunks);
  put(text, "/*run.json*/", packed_json(data.run));
  return text;
}

}  // namespace graphproof::reports
