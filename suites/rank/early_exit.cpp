#include "suites/rank/early_exit.h"

#include <charconv>
#include <string>

#include "reports/record/text/message.h"

namespace graphproof::suites {

std::optional<record::Phase> early_exit(std::string_view text, int rank) {
  if (text.empty() || text == "unset") return std::nullopt;
  const std::size_t comma = text.find(',');
  const auto phase = record::phase_from(text.substr(0, comma));
  int wanted = -1;
  const std::string_view number =
      comma == std::string_view::npos ? std::string_view() : text.substr(comma + 1);
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), wanted);
  if (!phase || error != std::errc() || end != number.data() + number.size() || wanted < 0)
    throw record::Error(
        {.what = std::string(kEarlyExitVariable) + " cannot be read",
         .got = std::string(text),
         .want = "PHASE,RANK, such as replay,1",
         .why =
             "a rank that does not end where it was asked to would be taken for one that survived",
         .next = "correct the axis value env." + std::string(kEarlyExitVariable)});
  return wanted == rank ? phase : std::nullopt;
}

}  // namespace graphproof::suites
