// Reads arbitrary bytes as an expression. It must be read or refused with advice, and an expression
// that was read must print as a text that reads the same.
#include <cassert>
#include <cstdint>
#include <string>
#include <string_view>

#include "matrix/catalogue/catalogue.h"
#include "matrix/expression/syntax.h"

using namespace graphproof::matrix;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const Catalogue catalogue = load_catalogue();
  const Scope scope{.axes = &catalogue.axes, .defines = {}};
  const std::string text(reinterpret_cast<const char*>(data), size);
  try {
    const Expression expression =
        Expression::condition(text, scope, Origin::option("--where", text));
    const std::string printed = expression.text();
    const Expression again =
        Expression::condition(printed, scope, Origin::option("--where", printed));
    assert(same_syntax(*expression.syntax(), *again.syntax()) && printed == again.text());
    const Machine machine{.device = "sim", .slots = 4, .stack = {{"torch_version", "2.11.0"}}};
    assert(expression.holds(Case{}, machine) == again.holds(Case{}, machine));
  } catch (const InputError& error) {
    assert(!error.problem().next.empty());
  }
  return 0;
}
