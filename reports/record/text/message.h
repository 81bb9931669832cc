// The form of every error, refusal and failing check: what / got / want / why / next. `next` is
// never empty.
#pragma once

#include <stdexcept>
#include <string>

namespace graphproof::record {

/// A message to the user.
struct Message {
  std::string what;  // what went wrong; names case, phase and rank if there are any
  std::string got;   // with units
  std::string want;
  std::string why;   // why it matters, or where the requirement comes from; may be empty
  std::string next;  // what the reader can do now

  bool operator==(const Message&) const = default;
};

/// One line: "WHAT; got GOT; want WANT; WHY; next: NEXT". Empty parts are left out.
std::string to_text(const Message& message);

/// The base of the errors of this folder. what() is to_text(message()).
class Error : public std::runtime_error {
 public:
  explicit Error(Message message)
      : std::runtime_error(to_text(message)), message_(std::move(message)) {}
  const Message& message() const { return message_; }

 private:
  Message message_;
};

/// Thrown if a file or a line does not fit its schema, or can't be read.
class ReadError : public Error {
 public:
  using Error::Error;
};

/// Thrown if a file can't be written: no space, no permission, or another writer has locked it.
class WriteError : public Error {
 public:
  using Error::Error;
};

}  // namespace graphproof::record
