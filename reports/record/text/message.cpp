#include "reports/record/text/message.h"

namespace graphproof::record {

std::string to_text(const Message& message) {
  std::string text = message.what;
  const auto add = [&text](const char* before, const std::string& part) {
    if (part.empty()) return;
    if (!text.empty()) text += "; ";
    text += before + part;
  };
  add("got ", message.got);
  add("want ", message.want);
  add("", message.why);
  add("next: ", message.next);
  return text;
}

}  // namespace graphproof::record
