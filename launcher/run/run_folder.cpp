#include "launcher/run/run_folder.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>

#include "matrix/input/input_error.h"

namespace graphproof::launcher {
namespace {

namespace fs = std::filesystem;

std::tm utc(std::time_t now) {
  std::tm parts{};
  gmtime_r(&now, &parts);
  return parts;
}

std::string formatted(const std::tm& parts, const char* format) {
  char text[64];
  return std::string(text, std::strftime(text, sizeof text, format, &parts));
}

/// Makes `link` point to `target`, replacing an older link but nothing else. A link is a
/// convenience, so no error is reported if that fails.
void point(const fs::path& link, const fs::path& target) {
  std::error_code ignored;
  const fs::path fresh = link.string() + ".new";
  fs::remove(fresh, ignored);
  if (fs::exists(fs::symlink_status(link, ignored)) &&
      !fs::is_symlink(fs::symlink_status(link, ignored)))
    return;
  fs::create_symlink(target, fresh, ignored);
  fs::rename(fresh, link, ignored);
}

bool is_run(const fs::path& folder) {
  std::error_code ignored;
  return fs::is_regular_file(folder / "run.json", ignored);
}

}  // namespace

std::string make_run_id(std::time_t now, std::uint64_t salt) {
  static constexpr char digits[] = "0123456789abcdef";
  // The salt is multiplied by a large odd number, so that neighbouring salts differ in the digits
  // that are kept.
  const std::uint64_t mixed = (salt * 0x9E3779B97F4A7C15ull) >> 48;
  std::string id = formatted(utc(now), "%Y%m%d-%H%M%S-");
  for (int shift = 12; shift >= 0; shift -= 4) id += digits[(mixed >> shift) & 15];
  return id;
}

std::string utc_text(std::time_t now) { return formatted(utc(now), "%Y-%m-%dT%H:%M:%SZ"); }

fs::path create_run_folder(const fs::path& runs, const std::optional<std::string>& run_dir,
                           const std::string& run_id) {
  const fs::path folder = run_dir ? fs::absolute(*run_dir) : fs::absolute(runs) / run_id;
  std::error_code error;
  if (run_dir && fs::exists(folder, error) &&
      !(fs::is_directory(folder, error) && fs::is_empty(folder, error)))
    throw matrix::InputError(
        {"--run-dir is taken", folder.string(), "a folder that is absent or empty",
         "a run's journal must hold one run alone", "choose another folder, or remove this one"});
  fs::create_directories(folder, error);
  if (error || chmod(folder.c_str(), 0700) != 0)
    throw matrix::InputError(
        {"can't make the run folder",
         folder.string() + ": " + (error ? error.message() : std::strerror(errno)),
         "a folder that can be written", "everything that a run finds is kept there",
         "choose a place with --run-dir"});
  if (run_dir) {
    fs::create_directories(runs, error);
    point(runs / run_id, folder);
  }
  point(runs / "latest", run_id);
  return fs::canonical(folder);
}

std::vector<std::string> run_ids(const fs::path& runs) {
  std::vector<std::string> ids;
  std::error_code absent;
  for (const auto& entry : fs::directory_iterator(runs, absent))
    if (entry.path().filename() != "latest" && is_run(entry.path()))
      ids.push_back(entry.path().filename());
  std::sort(ids.rbegin(), ids.rend());
  return ids;
}

fs::path find_run(const fs::path& runs, const std::string& text) {
  for (const fs::path& candidate : {fs::path(text), runs / text})
    if (is_run(candidate)) return fs::canonical(candidate);
  for (const fs::path& candidate : {fs::path(text), runs / text})
    if (std::error_code ignored;
        text != "latest" && fs::is_regular_file(candidate / "watched.json", ignored))
      throw matrix::InputError({"a watched run has no cases", candidate.string(), "a run of cases",
                                "watch judged a command as a whole",
                                "graphproof report " + candidate.string() +
                                    " prints what it found; watch again runs it once more"});
  const std::vector<std::string> known = run_ids(runs);
  // The link may point to a folder that was removed meanwhile.
  if (text == "latest" && !known.empty()) return fs::canonical(runs / known.front());
  throw matrix::InputError({"no such run", "`" + text + "`",
                            "a run folder, an id under " + runs.string() + "/, or `latest`",
                            known.empty() ? "there is no run under " + fs::absolute(runs).string()
                                          : "known: " + matrix::listed(known, 5),
                            known.empty()
                                ? "start one: graphproof run --profile smoke"
                                : matrix::suggestion(text, known, "graphproof list runs")});
}

CaseReference split_reference(const std::string& text) {
  // A slash after an equals sign belongs to an axis value in the name of a case.
  const std::size_t slash = text.rfind('/', text.find('='));
  if (slash == std::string::npos) return {std::nullopt, text};
  return {text.substr(0, slash), text.substr(slash + 1)};
}

}  // namespace graphproof::launcher
