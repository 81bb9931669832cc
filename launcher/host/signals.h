// The signals that end a run, as a number that its loop reads; the end of a child only wakes the
// loop. For one loop at a time.
#pragma once

#include <signal.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <chrono>

namespace graphproof::launcher {

/// Takes the signals over from the moment it is made. One per process.
class Signals {
 public:
  Signals() : set_(context_, SIGINT, SIGTERM, SIGCHLD) {
    // A user who started the run with nohup wants it to outlive the terminal.
    struct sigaction hangup;
    if (sigaction(SIGHUP, nullptr, &hangup) == 0 && hangup.sa_handler != SIG_IGN) set_.add(SIGHUP);
    wait();
  }
  /// Returns after `time`, or earlier when a signal arrived.
  void wait_for(std::chrono::milliseconds time) { context_.run_one_for(time); }
  /// SIGINT, SIGTERM and SIGHUP so far.
  int interrupts() const { return interrupts_; }

 private:
  void wait() {
    set_.async_wait([this](const boost::system::error_code& error, int signal) {
      if (error) return;
      if (signal != SIGCHLD) ++interrupts_;
      wait();
    });
  }
  boost::asio::io_context context_;
  boost::asio::signal_set set_;
  int interrupts_ = 0;
};

}  // namespace graphproof::launcher
