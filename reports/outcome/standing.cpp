#include "reports/outcome/standing.h"

#include "reports/outcome/outcome.h"

namespace graphproof::reports {

Standing standing(const record::Record& record) {
  if (record.verdict.in("skipped") || record.verdict.text() == "not_run")
    return Standing::not_shown;
  switch (exit_code(record.verdict, record.rule)) {
    case record::ExitCode::ok:
      return Standing::acceptable;
    case record::ExitCode::product:
      return Standing::failed;
    default:
      return Standing::not_shown;
  }
}

}  // namespace graphproof::reports
