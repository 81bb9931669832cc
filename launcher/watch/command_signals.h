// The signals that a launcher passes on to the command that it watches.
#pragma once

#include <signal.h>

#include <unistd.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/signal_set.hpp>
#include <chrono>
#include <memory>
#include <utility>
#include <vector>

namespace graphproof::launcher {

/// Takes the signals over from the moment it is made; the end of a child only wakes the loop. One
/// per process.
class CommandSignals {
 public:
  CommandSignals() : set_(context_, SIGINT, SIGTERM, SIGCHLD) {
    // Schedulers announce the end of a job with the last two.
    for (const int signal : {SIGQUIT, SIGUSR1, SIGUSR2}) set_.add(signal);
    // A user who started the launcher with nohup wants it to outlive the terminal.
    struct sigaction hangup;
    if (sigaction(SIGHUP, nullptr, &hangup) == 0 && hangup.sa_handler != SIG_IGN) set_.add(SIGHUP);
    wait();
  }
  /// Returns after `time`, or earlier when a signal arrived.
  void wait_for(std::chrono::milliseconds time) { context_.run_one_for(time); }
  /// Lets wait_for() return, once, when `descriptor` becomes readable.
  void wake_by(int descriptor) {
    const int own = dup(descriptor);
    if (own < 0) return;
    auto waits = std::make_shared<boost::asio::posix::stream_descriptor>(context_, own);
    waits->async_wait(boost::asio::posix::descriptor_base::wait_read,
                      [waits](const boost::system::error_code&) { waits->close(); });
  }
  /// The signals since the last call, in order, without SIGCHLD.
  std::vector<int> take() { return std::exchange(arrived_, {}); }
  /// Whether the signal means that the user wants the command to end.
  static bool ends(int signal) { return signal != SIGUSR1 && signal != SIGUSR2; }

 private:
  void wait() {
    set_.async_wait([this](const boost::system::error_code& error, int signal) {
      if (error) return;
      if (signal != SIGCHLD) arrived_.push_back(signal);
      wait();
    });
  }
  boost::asio::io_context context_;
  boost::asio::signal_set set_;
  std::vector<int> arrived_;
};

}  // namespace graphproof::launcher
