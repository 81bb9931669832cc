// What / got / want / why / next: the one shape of every error, refusal and failing check. `next`
// is never empty.
#pragma once

#include <stdexcept>
#include <string>

namespace graphproof::record {

struct Message {
  std::string what;  // what went wrong, naming case, phase and rank where there are any
  std::string got;   // with units
  std::string want;
  std::string why;   // why it matters, or where the demand comes from; may be empty
  std::string next;  // what the reader does now

  bool operator==(const Message&) const = default;
};

/// One line: "WHAT; got GOT; want WANT; WHY; next: NEXT". Empty parts are left out.
std::string to_text(const Message& message);

/// Thrown by everything of this folder. what() is to_text(message).
class Error : public std::runtime_error {
 public:
  explicit Error(Message message)
      : std::runtime_error(to_text(message)), message_(std::move(message)) {}
  const Message& message() const { return message_; }

 private:
  Message message_;
};

/// A file or line is not what its schema says, or cannot be read.
class ReadError : public Error {
 public:
  using Error::Error;
};

/// A file cannot be written: no space, no right, or another writer holds it.
class WriteError : public Error {
 public:
  using Error::Error;
};

}  // namespace graphproof::record
