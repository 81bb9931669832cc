#include "reports/history/sqlite.h"

#include <sqlite3.h>

#include <chrono>
#include <thread>

#include "matrix/input/input_error.h"

namespace graphproof::reports {

Database::Database(const std::filesystem::path& file, Mode mode, int patience_ms)
    : file_(file), patience_ms_(patience_ms) {
  const int flags =
      mode == Mode::write ? SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE : SQLITE_OPEN_READWRITE;
  int code = sqlite3_open_v2(file.c_str(), &handle_, flags, nullptr);
  // A file that may only be read is opened so.
  if (mode == Mode::read && code == SQLITE_CANTOPEN) {
    sqlite3_close(handle_);
    code = sqlite3_open_v2(file.c_str(), &handle_, SQLITE_OPEN_READONLY, nullptr);
  }
  if (code != SQLITE_OK) {
    const std::string cause = handle_ != nullptr ? sqlite3_errmsg(handle_) : "no memory";
    sqlite3_close(handle_);
    throw matrix::InputError({"can't open the history", file.string() + ": " + cause,
                              "a file that `graphproof history add` made", "",
                              "check the path, or start one: graphproof history add"});
  }
  sqlite3_busy_timeout(handle_, patience_ms);
}

Database::~Database() { sqlite3_close(handle_); }

void Database::fail() const {
  const std::string cause = file_.string() + ": " + sqlite3_errmsg(handle_);
  switch (sqlite3_errcode(handle_) & 0xff) {
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      throw matrix::InputError({"the history is locked", cause, "a history that no one else writes",
                                "another process holds it for longer than this one waits",
                                "wait for that process, then run this again"});
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
      throw matrix::InputError(
          {"the history is damaged", cause, "a database of SQLite",
           "what it still holds can't be trusted, so nothing was changed",
           "move it away, then add the runs again: graphproof history add RUN..."});
    case SQLITE_FULL:
    case SQLITE_READONLY:
    case SQLITE_IOERR:
      throw matrix::InputError({"can't write the history", cause, "a file that can be written",
                                "nothing of the last change was kept",
                                "make room or choose another file with --history"});
    default:
      throw matrix::InputError({"the history can't be used", cause, "a database of this version",
                                "", "please report this message"});
  }
}

void Database::use_wal() {
  using namespace std::chrono;
  const auto deadline = steady_clock::now() + milliseconds(patience_ms_);
  for (;;) {
    const int code = sqlite3_exec(handle_, "PRAGMA journal_mode = WAL", nullptr, nullptr, nullptr);
    if (code == SQLITE_OK) return;
    if ((code & 0xff) != SQLITE_BUSY || steady_clock::now() >= deadline) fail();
    std::this_thread::sleep_for(milliseconds(5));
  }
}

void Database::execute(const std::string& sql) {
  if (sqlite3_exec(handle_, sql.c_str(), nullptr, nullptr, nullptr) != SQLITE_OK) fail();
}

std::int64_t Database::number(const std::string& sql) {
  Query query(*this, sql);
  return query.next() ? query.integer(0) : 0;
}

std::int64_t Database::last_row() const { return sqlite3_last_insert_rowid(handle_); }

Query::Query(Database& database, const std::string& sql) : database_(database) {
  if (sqlite3_prepare_v2(database.handle_, sql.c_str(), -1, &statement_, nullptr) != SQLITE_OK)
    database.fail();
}

Query::~Query() { sqlite3_finalize(statement_); }

Query& Query::bind(std::initializer_list<SqlValue> values) {
  sqlite3_reset(statement_);
  int index = 0;
  for (const SqlValue& value : values) {
    ++index;
    int code = SQLITE_OK;
    if (const auto* integer = std::get_if<std::int64_t>(&value))
      code = sqlite3_bind_int64(statement_, index, *integer);
    else if (const auto* real = std::get_if<double>(&value))
      code = sqlite3_bind_double(statement_, index, *real);
    else if (const auto* text = std::get_if<std::string>(&value))
      code = sqlite3_bind_text(statement_, index, text->c_str(), static_cast<int>(text->size()),
                               SQLITE_TRANSIENT);
    else
      code = sqlite3_bind_null(statement_, index);
    if (code != SQLITE_OK) database_.fail();
  }
  return *this;
}

bool Query::next() {
  const int code = sqlite3_step(statement_);
  if (code == SQLITE_ROW) return true;
  if (code == SQLITE_DONE) return false;
  database_.fail();
}

void Query::run(std::initializer_list<SqlValue> values) {
  bind(values);
  while (next()) {
  }
}

std::int64_t Query::integer(int column) const { return sqlite3_column_int64(statement_, column); }
double Query::real(int column) const { return sqlite3_column_double(statement_, column); }
bool Query::null(int column) const {
  return sqlite3_column_type(statement_, column) == SQLITE_NULL;
}
std::string Query::text(int column) const {
  const auto* text = sqlite3_column_text(statement_, column);
  return text == nullptr
             ? ""
             : std::string(reinterpret_cast<const char*>(text),
                           static_cast<std::size_t>(sqlite3_column_bytes(statement_, column)));
}

Transaction::Transaction(Database& database) : database_(database) {
  // At once for writing: a transaction that began to read could not become one that writes while
  // another does.
  database.execute("BEGIN IMMEDIATE");
}

Transaction::~Transaction() {
  if (!open_) return;
  try {
    database_.execute("ROLLBACK");
  } catch (const matrix::InputError&) {
    // The error that ends the transaction is reported already, and SQLite undoes it at the latest
    // when the file is opened again.
  }
}

void Transaction::commit() {
  database_.execute("COMMIT");
  open_ = false;
}

}  // namespace graphproof::reports
