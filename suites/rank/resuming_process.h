// The process of its own in which a job of a case resumes from a checkpoint (axis resume_in). The
// rank starts its program again, as `--resume FILE` with its batch file, and waits. What the new
// process writes and which phases it enters is written and entered by the rank, and messages of its
// world are sent by the rank: there is one evidence file, one heartbeat and one place in MPI.
#pragma once

#include <filesystem>
#include <string>

#include "fixtures/process/rank.h"
#include "suites/case/case_scope.h"
#include "suites/rank/batch_run.h"
#include "suites/rank/rank_process.h"

namespace graphproof::suites {

/// What the new process is told of its case.
struct ResumingCase {
  std::filesystem::path batch_file;
  std::string id;
  std::filesystem::path folder;  // of the checkpoint, which all ranks of the case share
};

/// In the rank: starts the process, does what it asks for in `scope` and in the world of `process`,
/// and returns after its end. capture::DeviceError with the process's own error; record::Error if
/// it ends otherwise, or is silent longer than any phase may be. It has ended in any case.
void run_in_new_process(const ResumingCase& resuming, RankProcess& process, CaseScope& scope);

/// In the process: sets the case up anew and resumes its job. Returns the exit code. After an
/// error, which the rank is told, ends the process with std::_Exit. Throws for errors ahead of the
/// case.
int resume_case(const RankProgram& program, const fixtures::Rank& place,
                const std::filesystem::path& batch_file);

}  // namespace graphproof::suites
