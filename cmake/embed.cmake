# Writes OUTPUT: a C++ table of the files NAMES (separated by |), read by NAMESPACE::embedded(name).
# A name is a path in FOLDER, or NAME=PATH for a file elsewhere. Long texts are cut, because a
# string literal has a length limit in the standard.
string(REPLACE "|" ";" names "${NAMES}")
string(CONCAT text
  "// Made by cmake/embed.cmake from files of ${FOLDER}.\n"
  "#include <string>\n#include <string_view>\n\n"
  "namespace ${NAMESPACE} {\nstd::string_view embedded(std::string_view name) {\n")
foreach(name IN LISTS names)
  set(path ${FOLDER}/${name})
  if(name MATCHES "^([^=]+)=(.+)$")
    set(name ${CMAKE_MATCH_1})
    set(path ${CMAKE_MATCH_2})
  endif()
  file(READ ${path} content HEX)
  string(LENGTH "${content}" hex_length)
  string(REGEX REPLACE "(..)" "\\\\x\\1" bytes "${content}")
  # 64 bytes a literal keeps every line short; adjacent literals join.
  string(REPEAT "(\\\\x..)" 8 eight)
  string(REGEX REPLACE "(${eight})" "\\1\"\n\"" bytes "${bytes}")
  math(EXPR size "${hex_length} / 2")
  string(APPEND text
    "  if (name == \"${name}\") {\n"
    "    static const std::string_view text(\n\"${bytes}\", ${size});\n"
    "    return text;\n  }\n")
endforeach()
string(APPEND text "  return {};\n}\n}  // namespace ${NAMESPACE}\n")
file(WRITE ${OUTPUT} "${text}")
