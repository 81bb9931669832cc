#include "launcher/cli/duration_option.h"

#include <nlohmann/json.hpp>

#include "matrix/catalogue/limits.h"
#include "matrix/input/located_json.h"

namespace graphproof::cli {

std::int64_t duration_option_ms(const std::string& text, const std::string& option) {
  if (text.empty()) return 0;
  const matrix::Document document = matrix::parse_document(nlohmann::json(text).dump(), option);
  return matrix::duration_ms(matrix::Located(document));
}

}  // namespace graphproof::cli
