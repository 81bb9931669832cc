#include "launcher/cli/run_child.h"

#include <chrono>
#include <system_error>

#include "reports/record/text/file.h"
#include "reports/record/verdict/exit_code.h"

namespace graphproof::cli {
namespace {

constexpr std::chrono::milliseconds kLook{500};

}  // namespace

int run_child(const launcher::Command& command, const std::filesystem::path& log,
              launcher::Signals& signals) {
  std::filesystem::create_directories(log.parent_path());
  std::filesystem::remove(log);
  try {
    launcher::Child child(command, log);
    int passed_on = 0;
    for (;;) {
      if (const auto exit = child.poll())
        return !exit->signalled ? exit->value
                                : record::value(passed_on > 0 ? record::ExitCode::interrupted
                                                              : record::ExitCode::own_fault);
      if (signals.interrupts() > passed_on) {
        passed_on = signals.interrupts();
        child.kill(SIGINT);
      }
      signals.wait_for(kLook);
    }
  } catch (const std::system_error& error) {
    record::write_atomically(log, std::string("graphproof: ") + error.what() + "\n");
    return record::value(record::ExitCode::infrastructure);
  }
}

}  // namespace graphproof::cli
