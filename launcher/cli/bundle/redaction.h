// Takes out of a text what says whose machine it comes from, before the text goes to strangers.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace graphproof::cli {

/// Replaces:
/// - absolute paths outside the folders that every machine has (/usr, /opt, /lib, /dev, /proc,
///   /sys, /etc, /bin): only the last part stays, as in PATH/train.py
/// - IPv4 addresses, except those of the host itself: ADDRESS
/// - mail addresses: MAIL
/// - ids of GPUs: GPU-ID
/// - the value in NAME=VALUE where NAME looks like a secret: (redacted)
/// - the names that it was told to hide, where they are whole words
/// Not thread-safe: it counts.
class Redaction {
 public:
  /// Hides `word` behind `replacement`. A word of one letter is left out, since it is no name.
  void hide(const std::string& word, const std::string& replacement);

  std::string operator()(std::string_view text);

  /// How often each kind was replaced, by what stands there now.
  const std::map<std::string, int>& counts() const { return counts_; }

 private:
  std::vector<std::pair<std::string, std::string>> words_;
  std::map<std::string, int> counts_;
};

}  // namespace graphproof::cli
