// test: a verb of the script ./graphproof alone, which builds the tests and runs ctest. It is in
// the table so that help and completion know it.
#include "launcher/cli/verb.h"
#include "matrix/input/input_error.h"

namespace graphproof::cli {

Action declare_test(CLI::App& app) {
  app.allow_extras();
  return [](Surroundings&) -> record::ExitCode {
    throw matrix::InputError({"this program does not run the tests", "test",
                              "the script ./graphproof of the source tree",
                              "the script builds the tests before it runs them",
                              "./graphproof test"});
  };
}

}  // namespace graphproof::cli
