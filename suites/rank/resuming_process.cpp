#include "suites/rank/resuming_process.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <utility>

#include "fixtures/comm/transport/world_through_rank.h"
#include "fixtures/device/error.h"
#include "fixtures/process/new_process.h"
#include "fixtures/tensors/torch.h"
#include "matrix/catalogue/catalogue.h"
#include "reports/record/text/file.h"
#include "reports/record/text/message.h"
#include "suites/arms/resume.h"
#include "suites/rank/case_settings.h"

namespace graphproof::suites {
namespace {

using fixtures::Connection, fixtures::ProcessMessage;
using nlohmann::json;

// Fields of the messages of a new process.
constexpr const char *kEnter = "enter", *kLine = "line", *kFailed = "failed", *kDone = "done";
// The new process waits longer for its rank than the rank waits for its peers, so that the error of
// such a wait is the rank's.
constexpr int kMorePatience = 2;
// A connection breaks a moment ahead of the end of its process.
constexpr std::chrono::milliseconds kBroken{1000};

/// The evidence of the new process, which its rank writes.
class LinesOfRank final : public record::EvidenceLines {
 public:
  explicit LinesOfRank(Connection& rank) : rank_(rank) {}

 private:
  void append(std::string_view kind, const record::Json& line) override {
    rank_.tell({.head = {{kLine, json::parse(line.dump())}, {"kind", kind}}});
  }
  Connection& rank_;
};

void write_line(CaseScope& scope, const json& head) {
  bool written = false;
  record::with_typed({.kind = head.at("kind").get<std::string>(), .fields = head.at(kLine)},
                     [&](const auto& line) {
                       scope.write(line);
                       written = true;
                     });
  if (!written) throw std::logic_error("a new process sent a line that is none: " + head.dump());
}

/// Does what the message asks for. Returns false for the last one.
bool follow(const ProcessMessage& message, RankProcess& process, CaseScope& scope,
            Connection& connection) {
  const json& head = message.head;
  if (comm::serve(*process.world(), message, connection)) return true;
  if (head.contains(kLine)) {
    write_line(scope, head);
  } else if (head.contains(kEnter)) {
    scope.enter(record::phase_from(head.at(kEnter).get<std::string>()).value(),
                head.at("arm").get<std::string>(), head.at("step").get<std::int64_t>());
  } else if (head.contains(kFailed)) {
    throw capture::DeviceError(head.at("type").get<std::string>(), head.at("code").get<int>(),
                               head.at("call").get<std::string>(),
                               head.at(kFailed).get<std::string>());
  }
  return !head.contains(kDone);
}

record::Error unfinished(pid_t id, const std::string& of_case) {
  return record::Error({.what = "process " + std::to_string(id) + ", in which the job of case " +
                                of_case + " resumes",
                        .got = "an end without its results",
                        .want = "every step after the checkpoint",
                        .why = "the case cannot go on without them",
                        .next = "read the log of the rank, which both of them write"});
}

/// What a new process has of its case. Leaked after a failure, because destructors would call a
/// device with a sticky error.
struct Job {
  matrix::Catalogue catalogue = matrix::load_catalogue();
  record::Batch batch;
  std::unique_ptr<RankProcess> process;
};

const record::BatchCase& case_of(const record::Batch& batch, const std::string& id) {
  const auto found = std::ranges::find(batch.cases, id, &record::BatchCase::id);
  if (found == batch.cases.end())
    throw record::Error({.what = "the case of a job that resumes",
                         .got = id,
                         .want = "a case of batch " + batch.batch,
                         .why = "the new process runs the case of the rank that started it",
                         .next = "start it by its rank alone"});
  return *found;
}

void run(Job& job, const RankProgram& program, const fixtures::Rank& place, const json& work,
         Connection& rank) {
  const std::filesystem::path folder = work.at("folder").get<std::string>();
  // Its communicators are not those of the ranks, and the launcher asks the ranks alone.
  job.batch.store = folder / "store";
  job.batch.heartbeat_fifo.clear();
  const record::BatchCase& listed = case_of(job.batch, work.at("case").get<std::string>());
  LinesOfRank lines(rank);
  CaseScope scope(lines, [&rank](Phase phase, const std::string& arm, std::int64_t step) {
    rank.tell({.head = {{kEnter, record::name(phase)}, {"arm", arm}, {"step", step}}});
  });
  const CaseSettings settings = case_settings(
      job.catalogue.axes, matrix::case_from_json(job.catalogue.axes, listed.axes, listed.id), place,
      job.batch.seed);
  job.process = std::make_unique<RankProcess>(
      program, place, job.batch, "",
      std::make_unique<comm::WorldThroughRank>(rank, place.world_size, place.rank,
                                               work.at("sends_tensors").get<bool>()));
  RankProcess& process = *job.process;
  process.start();
  process.groups().use(process_groups(settings.config.layout), process.limit(Phase::init));
  const c10::Stream stream = apply(settings, process.device());
  resume_from_files({.scope = scope,
                     .device = process.device(),
                     .config = settings.config,
                     .stream = stream,
                     .groups = &process.groups()},
                    folder, settings.plan.before_loading);
  process.finish();
}

}  // namespace

void run_in_new_process(const ResumingCase& resuming, RankProcess& process, CaseScope& scope) {
  fixtures::NewProcess started(fixtures::this_program(), {"--resume", resuming.batch_file.string()},
                               {{"case", resuming.id},
                                {"folder", resuming.folder.string()},
                                {"sends_tensors", comm::serves_tensors(*process.world())}},
                               process.patience());
  Connection& connection = started.connection();
  try {
    for (;;) {
      const auto message = connection.next();
      if (!message) throw unfinished(started.id(), resuming.id);
      if (!follow(*message, process, scope, connection)) break;
    }
  } catch (const record::Error&) {
    if (started.ended(kBroken)) started.finish();  // how it ended says more
    throw;
  }
  started.finish();
}

int resume_case(const RankProgram& program, const fixtures::Rank& place,
                const std::filesystem::path& batch_file) {
  auto job = std::make_unique<Job>();
  job->batch = record::batch_from(record::read_json(batch_file), batch_file.string());
  const auto [rank, work] = fixtures::starter(patience(job->batch.limits_ms) * kMorePatience);
  try {
    run(*job, program, place, work, *rank);
  } catch (const std::exception& error) {
    const capture::DeviceError shown = capture::as_device_error(error, "");
    std::cerr << "rank " << place.rank << ", process that resumes: " << shown.what() << std::endl;
    try {
      rank->tell({.head = {{kFailed, shown.what()},
                           {"type", shown.type},
                           {"code", shown.code},
                           {"call", shown.call}}});
    } catch (const std::exception& untold) {
      std::cerr << untold.what() << std::endl;
    }
    static_cast<void>(job.release());
    std::cout.flush();
    std::fflush(nullptr);
    std::_Exit(kExitDone);  // the rank has the reason
  }
  rank->tell({.head = {{kDone, true}}});
  return kExitDone;
}

}  // namespace graphproof::suites
