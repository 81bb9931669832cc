#include "matrix/cover/files/row_file.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "matrix/input/input_error.h"

namespace graphproof::cover {
namespace {

std::string quoted(const std::string& cell) {
  if (cell.find_first_of(",\"\n\r") == std::string::npos && !cell.empty() && cell.front() != ' ' &&
      cell.back() != ' ')
    return cell;
  std::string made = "\"";
  for (const char byte : cell) made += byte == '"' ? "\"\"" : std::string(1, byte);
  return made + "\"";
}

struct Field {
  std::string text;
  std::size_t offset = 0;
};

class RowReader {
 public:
  RowReader(std::string_view text, std::string source, const Model& model, Unknown unknown)
      : text_(text), source_(std::move(source)), model_(model), unknown_(unknown) {
    for (std::size_t parameter = 0; parameter < model.parameters.size(); ++parameter) {
      if (model.parameters[parameter].hidden) break;
      parameters_[model.parameters[parameter].name] = static_cast<int>(parameter);
      values_.emplace_back();
      for (std::size_t value = 0; value < model.parameters[parameter].values.size(); ++value)
        for (const std::string& name : model.parameters[parameter].values[value].names)
          values_.back().try_emplace(name, static_cast<int>(value));
    }
  }

  std::vector<Row> csv() {
    std::vector<Row> rows;
    std::size_t at = 0;
    std::vector<int> columns;
    std::vector<char> seen(values_.size(), 0);
    for (const Field& field : record(at)) {
      const auto found = parameters_.find(field.text);
      if (found == parameters_.end() && unknown_ == Unknown::refuse) fail_name(field);
      if (found != parameters_.end() &&
          std::exchange(seen[static_cast<std::size_t>(found->second)], 1))
        fail(field.offset, "a column appears twice", field.text, "each parameter once",
             "remove one");
      columns.push_back(found == parameters_.end() ? -1 : found->second);
    }
    if (unknown_ == Unknown::refuse)
      for (std::size_t parameter = 0; parameter < seen.size(); ++parameter)
        if (!seen[parameter])
          fail(0, "the header lacks a parameter", "", model_.parameters[parameter].name,
               "name every parameter of the model in the first line");
    while (at < text_.size()) {
      const std::size_t begin = at;
      const std::vector<Field> fields = record(at);
      if (fields.size() == 1 && fields[0].text.empty()) continue;
      if (fields.size() != columns.size())
        fail(begin, "a row has the wrong number of cells", std::to_string(fields.size()),
             std::to_string(columns.size()), "write one cell for each name of the first line");
      Row row(values_.size(), kAny);
      for (std::size_t column = 0; column < columns.size(); ++column)
        if (columns[column] >= 0)
          row[static_cast<std::size_t>(columns[column])] = value(columns[column], fields[column]);
      rows.push_back(std::move(row));
    }
    return rows;
  }

  std::vector<Row> json_lines() {
    std::vector<Row> rows;
    for (std::size_t at = 0; at < text_.size();) {
      const std::size_t end = std::min(text_.find('\n', at), text_.size());
      const std::string_view line = text_.substr(at, end - at);
      if (line.find_first_not_of(" \t\r") != std::string_view::npos)
        rows.push_back(object(line, at));
      at = end + 1;
    }
    return rows;
  }

 private:
  [[noreturn]] void fail(std::size_t offset, std::string what, std::string got, std::string want,
                         std::string next) const {
    throw matrix::InputError({std::move(what), std::move(got), std::move(want), "", std::move(next),
                              matrix::place_in(source_, text_, offset)});
  }
  [[noreturn]] void fail_name(const Field& field) const {
    std::vector<std::string> names;
    for (const auto& [name, parameter] : parameters_) names.push_back(name);
    std::sort(names.begin(), names.end());
    fail(field.offset, "no parameter `" + field.text + "`", field.text,
         "one of " + matrix::listed(names),
         matrix::suggestion(field.text, names, "use the model that the rows were made from"));
  }

  int value(int parameter, const Field& field) const {
    const auto& known = values_[static_cast<std::size_t>(parameter)];
    if (const auto found = known.find(field.text); found != known.end()) return found->second;
    if (unknown_ == Unknown::leave_open) return kAny;
    std::vector<std::string> names;
    for (const Value& each : model_.parameters[static_cast<std::size_t>(parameter)].values)
      names.push_back(each.names[0]);
    fail(field.offset,
         "`" + model_.parameters[static_cast<std::size_t>(parameter)].name + "` has no value `" +
             field.text + "`",
         field.text, "one of " + matrix::listed(names),
         matrix::suggestion(field.text, names, "use the model that the rows were made from"));
  }

  std::vector<Field> record(std::size_t& at) const {
    std::vector<Field> fields;
    while (true) {
      Field field{"", at};
      if (at < text_.size() && text_[at] == '"') {
        const std::size_t begin = at++;
        while (true) {
          if (at >= text_.size())
            fail(begin, "a quoted cell is not closed", "the end", "a quote", "close it");
          if (text_[at] != '"')
            field.text += text_[at++];
          else if (at + 1 < text_.size() && text_[at + 1] == '"') {
            field.text += '"';
            at += 2;
          } else
            break;
        }
        ++at;
        if (at < text_.size() && text_[at] == '\r') ++at;
        if (at < text_.size() && text_[at] != ',' && text_[at] != '\n')
          fail(at, "text follows a quoted cell", std::string(1, text_[at]),
               "a comma or the end of the line", "quote the whole cell");
      } else {
        while (at < text_.size() && text_[at] != ',' && text_[at] != '\n')
          field.text += text_[at++];
        while (!field.text.empty() && (field.text.back() == '\r' || field.text.back() == ' '))
          field.text.pop_back();
        field.text.erase(0, std::min(field.text.find_first_not_of(' '), field.text.size()));
      }
      fields.push_back(std::move(field));
      if (at >= text_.size()) return fields;
      if (text_[at++] == '\n') return fields;
    }
  }

  Row object(std::string_view line, std::size_t at) const {
    nlohmann::json value;
    try {
      value = nlohmann::json::parse(line);
    } catch (const nlohmann::json::parse_error& error) {
      fail(at + (error.byte > 0 ? error.byte - 1 : 0), "a line is not JSON", error.what(),
           "one object a line", "write {\"parameter\": \"value\", ...}");
    }
    if (!value.is_object())
      fail(at, "a line is not an object", std::string(line.substr(0, 40)), "one object a line",
           "write {\"parameter\": \"value\", ...}");
    Row row(values_.size(), kAny);
    for (const auto& [name, cell] : value.items()) {
      const auto found = parameters_.find(name);
      const Field field{found == parameters_.end() ? name
                        : cell.is_string()         ? cell.get<std::string>()
                                                   : cell.dump(),
                        at};
      if (found != parameters_.end())
        row[static_cast<std::size_t>(found->second)] = this->value(found->second, field);
      else if (unknown_ == Unknown::refuse)
        fail_name(field);
    }
    if (unknown_ == Unknown::refuse)
      for (std::size_t parameter = 0; parameter < row.size(); ++parameter)
        if (row[parameter] == kAny)
          fail(at, "a row lacks a parameter", "", model_.parameters[parameter].name,
               "give every parameter a value");
    return row;
  }

  std::string_view text_;
  std::string source_;
  const Model& model_;
  Unknown unknown_;
  std::unordered_map<std::string, int> parameters_;
  std::vector<std::unordered_map<std::string, int>> values_;
};

}  // namespace

RowFormat row_format_of(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(" \t\r\n");
  return begin != std::string_view::npos && text[begin] == '{' ? RowFormat::json_lines
                                                               : RowFormat::csv;
}

void write_rows(std::ostream& out, const Model& model, const std::vector<Row>& rows,
                RowFormat format) {
  const auto shown = static_cast<std::size_t>(model.visible_count());
  std::string line;
  if (format == RowFormat::csv) {
    for (std::size_t parameter = 0; parameter < shown; ++parameter)
      line += (parameter == 0 ? "" : ",") + quoted(model.parameters[parameter].name);
    out << line << "\n";
  }
  std::vector<std::vector<std::size_t>> used(shown);
  for (std::size_t parameter = 0; parameter < shown; ++parameter)
    used[parameter].resize(model.parameters[parameter].values.size(), 0);
  for (const Row& row : rows) {
    line.clear();
    nlohmann::ordered_json object;
    for (std::size_t parameter = 0; parameter < shown; ++parameter) {
      const auto value = static_cast<std::size_t>(row[parameter]);
      const std::vector<std::string>& names = model.parameters[parameter].values[value].names;
      const std::string& name = names[used[parameter][value]++ % names.size()];
      if (format == RowFormat::csv)
        line += (parameter == 0 ? "" : ",") + quoted(name);
      else
        object[model.parameters[parameter].name] = name;
    }
    out << (format == RowFormat::csv ? line : object.dump()) << "\n";
  }
}

std::vector<Row> read_rows(std::string_view text, std::string source, const Model& model,
                           Unknown unknown) {
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  RowReader reader(text, std::move(source), model, unknown);
  return row_format_of(text) == RowFormat::csv ? reader.csv() : reader.json_lines();
}

}  // namespace graphproof::cover
