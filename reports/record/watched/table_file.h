// A whole file that is one struct with a table of fields (field_table.h): the schema's name and the
// fields next to it.
#pragma once

#include <string>
#include <string_view>

#include "reports/record/evidence/table/field_table.h"
#include "reports/record/text/message.h"

namespace graphproof::record {

/// {"schema": ..., and the fields in the order of their table}
template <HasFields T>
Json table_file_json(std::string_view schema, const T& value) {
  Json object = {{"schema", schema}};
  FieldWriter<T> writer(value, object);
  T::fields(writer);
  return object;
}

/// Throws ReadError about the first field of the struct that does not fit. A key that the table
/// does not have is left alone.
template <HasFields T>
T table_file_from(const nlohmann::json& value, std::string_view schema, const std::string& where) {
  Fields(value, where).schema(schema);
  T read;
  FieldReader<T> reader(value, read);
  T::fields(reader);
  if (const auto misfit = std::move(reader).misfit())
    throw ReadError({.what = "`" + misfit->place + "` in " + where + " cannot be used",
                     .got = misfit->got,
                     .want = misfit->want,
                     .why = "the file is " + std::string(schema),
                     .next = "use programs of one graphproof for writing and reading"});
  return read;
}

}  // namespace graphproof::record
