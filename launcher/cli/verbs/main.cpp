// The program graphproof. What it does is in the verbs.
#include <signal.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <exception>
#include <iostream>

#include "launcher/backend/programs.h"
#include "launcher/cli/verb.h"

int main(int count, char** arguments) {
  using namespace graphproof;
  // If the reader of the output ends, the run continues and is recorded.
  signal(SIGPIPE, SIG_IGN);
  try {
    const matrix::Catalogue catalogue = matrix::load_catalogue();
    cli::Surroundings surroundings{.catalogue = catalogue,
                                   .command_line = {"graphproof"},
                                   .out = std::cout,
                                   .err = std::cerr,
                                   .terminal = isatty(STDOUT_FILENO) != 0,
                                   .programs = launcher::own_folder()};
    if (winsize size{}; ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
      surroundings.columns = size.ws_col;
    const std::vector<std::string> words(arguments + 1, arguments + count);
    surroundings.command_line.insert(surroundings.command_line.end(), words.begin(), words.end());
    return cli::run_command_line(words, surroundings);
  } catch (const std::exception& error) {
    std::cerr << "graphproof: a fault of graphproof itself: " << error.what() << "\n";
    return record::value(record::ExitCode::own_fault);
  }
}
