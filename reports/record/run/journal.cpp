#include "reports/record/run/journal.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "reports/record/text/file.h"

namespace graphproof::record {
namespace {

/// About a last line without a newline, after `lines` complete ones; "" if there is none.
std::string torn_line(const std::filesystem::path& file, std::size_t lines,
                      std::size_t torn_bytes) {
  if (torn_bytes == 0) return "";
  return file.string() + " line " + std::to_string(lines + 1) + " is torn after " +
         std::to_string(torn_bytes) +
         " bytes and was dropped: its writer was stopped while writing it";
}

}  // namespace

JournalContent read_journal(const std::filesystem::path& file) {
  if (!std::filesystem::exists(file)) return {};
  JournalContent content;
  const std::size_t torn_bytes = for_each_line(read_text(file), [&](std::string_view line) {
    const std::string place = file.string() + " line " + std::to_string(content.records.size() + 1);
    content.records.push_back(record_from(parse_json(line, place), place));
  });
  content.dropped = torn_line(file, content.records.size(), torn_bytes);
  return content;
}

std::map<std::string, Record> last_records(std::vector<Record> records) {
  std::map<std::string, Record> last;
  for (Record& record : records) {
    Record& of_case = last[record.case_id];
    of_case = std::move(record);
  }
  return last;
}

JournalWriter::JournalWriter(std::filesystem::path file) : file_(std::move(file)) {
  const auto give_up = [this](std::string got, std::string want, std::string why,
                              std::string next) {
    if (descriptor_ >= 0) ::close(descriptor_);
    throw WriteError({.what = "cannot open the journal " + file_.string(),
                      .got = std::move(got),
                      .want = std::move(want),
                      .why = std::move(why),
                      .next = std::move(next)});
  };
  descriptor_ = ::open(file_.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (descriptor_ < 0)
    give_up(std::strerror(errno), "a file that can be written",
            "without a journal a run cannot be resumed", "make the run folder writable");
  if (::flock(descriptor_, LOCK_EX | LOCK_NB) != 0)
    give_up(errno == EWOULDBLOCK ? "another launcher holds it" : std::strerror(errno),
            "to be its only writer",
            "two launchers in one run folder would run the same cases twice",
            "wait for the other launcher or stop it, or use another --run-dir");
  const Lines content = read_lines(file_);
  dropped_ = torn_line(file_, content.lines.size(), content.torn_bytes);
  if (content.torn_bytes > 0 &&
      ::ftruncate(descriptor_, static_cast<off_t>(content.whole_bytes)) != 0)
    give_up(std::strerror(errno), "its torn last line cut off",
            "the next record would be joined to it", "make the run folder writable");
}

JournalWriter::~JournalWriter() { ::close(descriptor_); }

void JournalWriter::append(const Record& record) {
  const std::string line = to_line(record);
  struct stat before{};
  int error = ::fstat(descriptor_, &before) == 0 ? 0 : errno;
  std::string_view rest = line;
  while (error == 0 && !rest.empty()) {
    const ssize_t written = ::write(descriptor_, rest.data(), rest.size());
    if (written >= 0) {
      rest.remove_prefix(static_cast<std::size_t>(written));
    } else if (errno != EINTR) {
      error = errno;
    }
  }
  if (error == 0 && ::fsync(descriptor_) != 0) error = errno;
  if (error == 0) return;
  // Half a line would become a part of the next record. If this fails too, the next reader drops it
  // as torn.
  const int cut = ::ftruncate(descriptor_, before.st_size);
  throw WriteError(
      {.what = "cannot write the record of case " + record.case_id + " to " + file_.string(),
       .got = std::strerror(error),
       .want = "the record on the disk",
       .why = cut == 0 ? "the journal holds every earlier record"
                       : "its torn last line is dropped when it is read",
       .next = "free space on its file system, then run again"});
}

}  // namespace graphproof::record
