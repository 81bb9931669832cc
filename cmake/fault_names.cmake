# Writes what follows from the fault table TABLE (matrix/tables/faults.json), so that a name that is
# not in the table does not compile, and a row that nobody implements does not link. Rows of other
# subjects than reference are left out: their code is in python/graphproof/planted, and
# python/tests/test_planted.py holds it against the table.
#   NAMES      the enum fixtures::Fault and its ids and names
#   FACTORIES  a declaration of each fault's function in graphproof::faults, and the table of them
file(READ ${TABLE} table)
string(REGEX REPLACE "(^|\n) *//[^\n]*" "" table "${table}")

string(JSON count LENGTH "${table}" faults)
math(EXPR last "${count} - 1")
set(all 1)
set(enumerators "  none,\n")
set(rows "    {{\"none\", \"none\"},\n")
set(declarations "")
set(functions "    {nullptr,\n")
foreach(index RANGE ${last})
  string(JSON subject ERROR_VARIABLE without_subject
    GET "${table}" faults ${index} axes subject)
  if(NOT without_subject)
    continue()
  endif()
  math(EXPR all "${all} + 1")
  string(JSON id GET "${table}" faults ${index} fault)
  string(JSON name GET "${table}" faults ${index} name)
  string(APPEND enumerators "  ${name},  // ${id}\n")
  string(APPEND rows "     {\"${id}\", \"${name}\"},\n")
  string(APPEND declarations "std::shared_ptr<FaultHooks> ${name}();\n")
  string(APPEND functions "     ${name},\n")
endforeach()

set(made "// Made by cmake/fault_names.cmake from matrix/tables/faults.json.\n#pragma once\n\n")
file(WRITE ${NAMES} "${made}#include <array>
#include <string_view>

namespace graphproof::fixtures {

enum class Fault {
${enumerators}};

struct FaultName {
  std::string_view id, name;
};
/// By the value of Fault.
inline constexpr std::array<FaultName, ${all}> kFaultNames{
${rows}    }};

}  // namespace graphproof::fixtures
")
file(WRITE ${FACTORIES} "${made}#include <array>
#include <memory>

namespace graphproof::faults {

class FaultHooks;

${declarations}
/// By the value of fixtures::Fault; null for none.
inline constexpr std::array<std::shared_ptr<FaultHooks> (*)(), ${all}> kFactories{
${functions}    }};

}  // namespace graphproof::faults
")
