// SQLite for the history: one connection, prepared statements, and transactions that end with their
// scope. Every failure is a matrix::InputError that names the file and what to do.
#pragma once

#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <string>
#include <variant>

struct sqlite3;
struct sqlite3_stmt;

namespace graphproof::reports {

/// A value of a column. An absent one is std::monostate.
using SqlValue = std::variant<std::monostate, std::int64_t, double, std::string>;

/// A connection. One thread may use it at a time.
class Database {
 public:
  enum class Mode { read, write };

  /// Opens `file`; in mode write it is created if it is absent. Nothing is written yet. While
  /// another process writes, calls wait for `patience_ms` at most.
  Database(const std::filesystem::path& file, Mode mode, int patience_ms);
  ~Database();
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;

  /// Puts the file into WAL mode, in which several processes may read while one writes. SQLite does
  /// not wait for others by itself when it changes the mode; this waits as other calls do.
  void use_wal();
  /// Runs statements that return nothing.
  void execute(const std::string& sql);
  /// The first column of the first row.
  std::int64_t number(const std::string& sql);
  std::int64_t last_row() const;
  const std::filesystem::path& file() const { return file_; }

 private:
  friend class Query;
  [[noreturn]] void fail() const;

  const std::filesystem::path file_;
  const int patience_ms_;
  sqlite3* handle_ = nullptr;
};

/// A prepared statement and its rows. Its database must outlive it.
class Query {
 public:
  Query(Database& database, const std::string& sql);
  ~Query();
  Query(const Query&) = delete;
  Query& operator=(const Query&) = delete;

  /// Starts again with these values for the question marks.
  Query& bind(std::initializer_list<SqlValue> values);
  /// Moves to the next row; false if there is none.
  bool next();
  /// bind() and next() to the end, for a statement without rows.
  void run(std::initializer_list<SqlValue> values);

  std::int64_t integer(int column) const;
  double real(int column) const;
  std::string text(int column) const;
  bool null(int column) const;

 private:
  Database& database_;
  sqlite3_stmt* statement_ = nullptr;
};

/// A transaction that writes. It is undone unless commit() is called.
class Transaction {
 public:
  explicit Transaction(Database& database);
  ~Transaction();
  Transaction(const Transaction&) = delete;
  Transaction& operator=(const Transaction&) = delete;
  void commit();

 private:
  Database& database_;
  bool open_ = true;
};

}  // namespace graphproof::reports
