#include "reports/outcome/signature.h"

#include <cctype>

namespace graphproof::reports {
namespace {

/// `text` without the names of tensors and the numbers of steps, ranks and bytes, which belong to
/// the case and not to the defect.
std::string without_particulars(const std::string& text) {
  std::string kept;
  bool quoted = false, number = false;
  for (const char c : text) {
    if (c == '`') {
      quoted = !quoted;
      kept += quoted ? "`" : "_`";
      continue;
    }
    if (quoted) continue;
    const bool digit = std::isdigit(static_cast<unsigned char>(c)) != 0;
    if (!digit || !number) kept += digit ? '#' : c;
    number = digit;
  }
  return kept;
}

}  // namespace

Signature signature(const record::Record& record) {
  Signature made{.verdict = std::string(record.observed.text()), .check = {}, .what = {}};
  if (record.failing.empty()) return made;
  const record::Failing& first = record.failing.front();
  made.check = first.check;
  made.what = without_particulars(first.message.what);
  // In "cuda 900 from CALL: ..." the number identifies the error, so it is kept.
  const std::size_t call = first.message.got.find(" from ");
  if (first.check.empty() && call != std::string::npos)
    made.what += "; " + first.message.got.substr(0, first.message.got.find(": ", call));
  return made;
}

std::string to_text(const Signature& signature) {
  std::string text = signature.verdict;
  for (const std::string* part : {&signature.check, &signature.what})
    if (!part->empty()) text += "  " + *part;
  return text;
}

}  // namespace graphproof::reports
