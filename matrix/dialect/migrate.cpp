#include "matrix/dialect/migrate.h"

#include <algorithm>
#include <optional>

#include "matrix/dialect/command_line.h"
#include "matrix/dialect/config_file.h"

namespace graphproof::dialect {
namespace {

using matrix::Json;
using matrix::Value;

constexpr const char* kImplementation = "cuda_graph_impl";
constexpr const char* kModules = "cuda_graph_modules";
constexpr const char* kInferenceScope = "inference_cuda_graph_scope";

// Whether an option belongs to the older spellings that today's three graph options replace, or is
// one of the three.
bool graph_spelling(const std::string& option) {
  for (const char* name :
       {kImplementation, kModules, kInferenceScope, "enable_cuda_graph", "external_cuda_graph",
        "cuda_graph_scope", "cuda_graph_scope_deprecated"})
    if (option == name) return true;
  return false;
}

struct Today {
  std::string implementation, scope;
  std::vector<std::string> modules;
};

// Today's spelling of a configuration. An inference scope that follows from the implementation is
// left out.
Today today(const Configuration& configuration) {
  const auto text = [&](const char* name) {
    const auto* word = std::get_if<std::string>(&configuration.values.at(name));
    return word == nullptr ? std::string() : *word;
  };
  Today result{
      .implementation = text(kImplementation), .scope = text(kInferenceScope), .modules = {}};
  if (const auto* modules =
          std::get_if<std::vector<std::string>>(&configuration.values.at(kModules)))
    result.modules = *modules;
  if (result.scope == (result.implementation == "local" ? "layer" : "none")) result.scope.clear();
  if (result.implementation == "none") result.implementation.clear();
  return result;
}

// The findings about spelling. Unknown flags and values of other options are for `graphproof
// check`.
std::vector<Finding> notes_of(const Dialect& dialect, const Verdict& verdict) {
  std::vector<Finding> notes;
  for (const Finding& finding : verdict.findings)
    if (const Rule* rule = dialect.rules.find(finding.rule);
        rule != nullptr &&
        (rule->migrates || graph_spelling(finding.option) || !finding.option.empty()))
      notes.push_back(finding);
  return notes;
}

bool contradicts(const Dialect& dialect, const Verdict& verdict) {
  return std::any_of(verdict.findings.begin(), verdict.findings.end(), [&](const Finding& finding) {
    const Rule* rule = dialect.rules.find(finding.rule);
    return finding.refuses() && rule != nullptr &&
           (rule->migrates || (rule->read && graph_spelling(finding.option)));
  });
}

std::string flag_of(const Option& option, bool off) {
  const std::vector<std::string>& flags = off ? option.off_flags : option.flags;
  return flags.empty() ? std::string() : flags.front();
}

class LineRewriter {
 public:
  LineRewriter(const Dialect& dialect, const std::vector<std::string>& words, std::size_t begin)
      : dialect_(dialect), words_(words), at_(begin) {
    result_.assign(words.begin(), words.begin() + static_cast<std::ptrdiff_t>(begin));
  }

  std::vector<std::string> run(const Today& today) {
    while (at_ < words_.size()) segment(today);
    return std::move(result_);
  }

 private:
  // Rewrites one flag with its values.
  void segment(const Today& today) {
    const std::string& word = words_[at_];
    const std::size_t begin = at_++;
    while (at_ < words_.size() && !(words_[at_].size() > 1 && words_[at_][0] == '-' &&
                                    !(words_[at_][1] >= '0' && words_[at_][1] <= '9')))
      ++at_;
    const std::size_t equals = word.find('=');
    const Flag* flag = dialect_.options.flag(word.substr(0, equals), false);
    const Option* option = flag == nullptr ? nullptr : &dialect_.options.options()[flag->option];
    if (option != nullptr && graph_spelling(option->name())) {
      if (!written_) write(today);
      return;
    }
    std::vector<std::string> segment(words_.begin() + static_cast<std::ptrdiff_t>(begin),
                                     words_.begin() + static_cast<std::ptrdiff_t>(at_));
    if (option != nullptr && !option->renamed_to.empty())
      segment[0] = flag_of(*dialect_.options.find(option->renamed_to), flag->off) +
                   (equals == std::string::npos ? "" : word.substr(equals));
    result_.insert(result_.end(), segment.begin(), segment.end());
  }

  void write(const Today& today) {
    written_ = true;
    const auto add = [&](const char* option, const std::vector<std::string>& values) {
      result_.push_back(flag_of(*dialect_.options.find(option), false));
      result_.insert(result_.end(), values.begin(), values.end());
    };
    if (!today.implementation.empty()) add(kImplementation, {today.implementation});
    if (!today.modules.empty()) add(kModules, today.modules);
    if (!today.scope.empty()) add(kInferenceScope, {today.scope});
  }

  const Dialect& dialect_;
  const std::vector<std::string>& words_;
  std::size_t at_;
  std::vector<std::string> result_;
  bool written_ = false;
};

// The graph options go to the place of the first one that was written.
void rewrite(Json& object, const std::string& prefix, const Dialect& dialect, const Today& today,
             bool& written) {
  Json result = Json::object();
  for (auto& [key, value] : object.items()) {
    const std::string path = prefix.empty() ? key : prefix + "." + key;
    const Option* option = dialect.options.key(path);
    if (option != nullptr && graph_spelling(option->name())) {
      if (written) continue;
      written = true;
      if (!today.implementation.empty()) result[kImplementation] = today.implementation;
      if (!today.implementation.empty() || !today.modules.empty()) result[kModules] = today.modules;
      if (!today.scope.empty()) result[kInferenceScope] = today.scope;
      continue;
    }
    if (value.is_object() && option == nullptr) rewrite(value, path, dialect, today, written);
    result[option != nullptr && !option->renamed_to.empty() ? option->renamed_to : key] = value;
  }
  object = std::move(result);
}

}  // namespace

Migration migrate_command_line(const Dialect& dialect, const std::vector<std::string>& words,
                               std::size_t begin) {
  const Verdict verdict = check_spelling(dialect, read_command_line(dialect, words, begin, false));
  Migration migration{.words = words,
                      .object = {},
                      .notes = notes_of(dialect, verdict),
                      .possible = !contradicts(dialect, verdict)};
  if (migration.possible)
    migration.words = LineRewriter(dialect, words, begin).run(today(verdict.effective));
  return migration;
}

Migration migrate_configuration(const Dialect& dialect, const matrix::Document& document) {
  const Verdict verdict = check_spelling(dialect, read_config_file(dialect, document));
  Migration migration{.words = {},
                      .object = document.value,
                      .notes = notes_of(dialect, verdict),
                      .possible = !contradicts(dialect, verdict)};
  bool written = false;
  if (migration.possible) rewrite(migration.object, "", dialect, today(verdict.effective), written);
  return migration;
}

}  // namespace graphproof::dialect
