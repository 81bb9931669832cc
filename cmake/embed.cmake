# Writes OUTPUT, a C++ source with the bytes of the files NAMES (separated by |). In NAMESPACE,
# embedded(name) is the text of one file, and embedded_names() lists the names in the order of
# NAMES. A name is a path in FOLDER, or NAME=PATH for a file elsewhere.
string(REPLACE "|" ";" names "${NAMES}")
set(text "// Made by cmake/embed.cmake from files of ${FOLDER}.\n")
string(APPEND text "#include <string_view>\n#include <vector>\n\nnamespace ${NAMESPACE} {\n")
string(APPEND text "std::string_view embedded(std::string_view name) {\n")
set(listed "")
foreach(name IN LISTS names)
  set(path ${FOLDER}/${name})
  if(name MATCHES "^([^=]+)=(.+)$")
    set(name ${CMAKE_MATCH_1})
    set(path ${CMAKE_MATCH_2})
  endif()
  string(APPEND listed "\n    \"${name}\",")
  file(READ ${path} content HEX)
  string(LENGTH "${content}" hex_length)
  string(REGEX REPLACE "(..)" "\\\\x\\1" bytes "${content}")
  # The standard limits the length of a string literal, so each literal holds eight bytes; the
  # compiler joins them.
  set(byte "(\\\\x..)")
  string(REGEX REPLACE "(${byte}${byte}${byte}${byte}${byte}${byte}${byte}${byte})" "\\1\"\n\""
    bytes "${bytes}")
  math(EXPR size "${hex_length} / 2")
  string(APPEND text "  if (name == \"${name}\") {\n    static const std::string_view text(\n"
    "\"${bytes}\", ${size});\n    return text;\n  }\n")
endforeach()
string(APPEND text "  return {};\n}\n\n")
string(APPEND text "std::vector<std::string_view> embedded_names() {\n"
  "  return {${listed}\n  };\n}\n")
string(APPEND text "}  // namespace ${NAMESPACE}\n")
file(WRITE ${OUTPUT} "${text}")
