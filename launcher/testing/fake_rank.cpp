// A rank and a judge for the launcher's own tests.
//
// As a rank (arguments: --divergence where it searches for the first divergent tensor, and a batch
// file) it goes through each case with honest heartbeats and evidence, except for what the
// environment variable GRAPHPROOF_FAKE asks for: "BEHAVIOUR PHASE RANK", for example "hang replay
// 1"; a further word, "2", restricts it to the second case of the batch. "meet
// AXIS=VALUE,AXIS=VALUE" gives wrong numbers where the case has all of these values; of a hundred
// such cases below a folder named shrink, GRAPHPROOF_FAKE_LUCK pass all the same.
//
// As a judge (argument: an attempt folder) it finds the evidence of every rank complete or not, and
// fails D01.lockstep where a compare line says that something differs.
#include <fcntl.h>
#include <netinet/in.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>

#include "reports/record/evidence/evidence.h"
#include "reports/record/job/batch.h"
#include "reports/record/job/context.h"
#include "reports/record/job/heartbeat.h"
#include "reports/record/job/rank_exit.h"
#include "reports/record/job/rank_orders.h"
#include "reports/record/run/checks.h"
#include "reports/record/run/run.h"
#include "reports/record/text/file.h"

namespace graphproof {
namespace {

namespace fs = std::filesystem;
using record::Phase;

constexpr Phase kWay[] = {Phase::validate,       Phase::init,         Phase::build,  Phase::eager,
                          Phase::warmup,         Phase::capture,      Phase::replay, Phase::compare,
                          Phase::teardown_graph, Phase::teardown_comm};

std::int64_t now_ms() {
  using namespace std::chrono;
  return duration_cast<milliseconds>(steady_clock::now().time_since_epoch()).count();
}

struct Script {
  std::string behaviour = "good", phase = "replay";
  int rank = 0, only_case = 0;  // 0: every case
};

Script script() {
  Script script;
  const char* text = std::getenv("GRAPHPROOF_FAKE");
  std::istringstream words(text != nullptr ? text : "");
  words >> script.behaviour >> script.phase >> script.rank >> script.only_case;
  if (script.behaviour.empty()) script.behaviour = "good";
  return script;
}

[[noreturn]] void sleep_for_ever() {
  for (;;) pause();
}

class FakeRank {
 public:
  FakeRank(record::Batch batch, int rank, bool divergence)
      : batch_(std::move(batch)), rank_(rank), divergence_(divergence), script_(script()) {
    fifo_ = open(batch_.heartbeat_fifo.c_str(), O_WRONLY | O_CLOEXEC);
    signal(SIGPIPE, SIG_IGN);
  }

  int run() {
    beat({.event = "hello"});
    const char* go = std::getenv(record::kGoVariable);
    if (go != nullptr && mine("dies_before_begin")) return 7;
    if (go != nullptr)
      while (access((std::string(go) + record::kDeviceSuffix).c_str(), F_OK) != 0) usleep(1000);
    if (mine("on_gpu")) take_gpu_memory(go == nullptr);
    if (mine("slow_start")) std::this_thread::sleep_for(std::chrono::milliseconds(400));
    if (go != nullptr) {
      beat({.event = "ready"});
      while (access(go, F_OK) != 0) usleep(1000);
    }
    // Ranks refuse the cases that they refuse before they run any other.
    if (script_.behaviour == "second_first" && batch_.cases.size() > 1)
      std::rotate(batch_.cases.begin(), batch_.cases.begin() + 1, batch_.cases.begin() + 2);
    int cases = 0;
    for (const record::BatchCase& one : batch_.cases) {
      if (cases > 0 && stops_ahead_of(cases)) break;
      run_case(one, ++cases);
    }
    beat({.event = "bye"});
    if (mine("die_late")) raise(SIGSEGV);
    return 0;
  }

 private:
  bool mine(const char* behaviour) const {
    return script_.behaviour == behaviour && script_.rank == rank_;
  }

  /// Rank 0 looks whether the launcher wants no other case to begin, and tells the others.
  bool stops_ahead_of(int number) const {
    const fs::path told = fs::path(batch_.store) / ("ahead-of-" + std::to_string(number));
    if (rank_ == 0) {
      const char* stop = std::getenv(record::kStopVariable);
      fs::create_directories(batch_.store);
      const bool stops = stop != nullptr && fs::exists(stop) && !mine("heedless");
      record::write_atomically(told, stops ? "stop" : "go", record::Survives::kill);
    }
    while (!fs::exists(told)) usleep(1000);
    return record::read_text(told) == "stop";
  }

  void beat(record::Heartbeat line) const {
    line.rank = rank_;
    line.pid = getpid();
    line.t_ms = now_ms();
    const std::string text = record::to_line(line);
    [[maybe_unused]] const auto written = write(fifo_, text.data(), text.size());
  }

  void beat(const record::BatchCase& one, const char* event) const {
    beat({.event = event, .case_id = one.id, .attempt = one.attempt, .log_bytes = 0});
  }

  void run_case(const record::BatchCase& one, int count) {
    record::EvidenceWriter evidence(fs::path(one.evidence_folder) /
                                    record::evidence_file_name(rank_));
    evidence.write(record::StartLine{.revision = std::nullopt,
                                     .case_id = one.id,
                                     .attempt = one.attempt,
                                     .rank = rank_,
                                     .world_size = batch_.world_size,
                                     .device = batch_.device,
                                     .pid = getpid(),
                                     .fault = "none",
                                     .t_ms = now_ms()});
    beat(one, "case_begin");
    if (divergence_) return look_for_divergence(one, evidence);
    for (const Phase phase : kWay) {
      record::Heartbeat line{.event = "phase", .case_id = one.id, .attempt = one.attempt};
      line.phase = phase;
      line.arm = phase == Phase::replay ? "lockstep" : "";
      line.collective =
          record::Collective{static_cast<std::int64_t>(phase) + 1, "all_reduce", "tp"};
      if (mine("hang") && script_.phase == record::name(phase)) line.collective->sequence -= 1;
      beat(line);
      if (script_.phase == record::name(phase) &&
          (script_.only_case == 0 || script_.only_case == count))
        misbehave();
      if (script_.behaviour == "fails" && script_.phase == record::name(phase) &&
          script_.only_case == count)
        fail(one, phase, evidence);
      // A rank that stops holds up the others at their next collective.
      if (script_.behaviour == "hang" && script_.phase == record::name(phase)) sleep_for_ever();
      evidence.write(record::PhaseLine{.phase = phase, .arm = line.arm, .ms = 0.1});
    }
    const bool equal = !(wrong() || (mine("xid_then_wrong") && !leased("0")) ||
                         (mine("wrong_at_times") && wrong_this_time()) ||
                         (mine("leak") && count > 1) || (mine("meet") && meets(one)));
    evidence.write(record::CompareLine{.left = "lockstep_eager",
                                       .right = "lockstep_graph",
                                       .compared = "lockstep",
                                       .step = 1,
                                       .input = "fresh",
                                       .tensors = 1,
                                       .bytes = 4,
                                       .equal = equal});
    evidence.end(true, Phase::teardown_comm, now_ms());
    // This is long enough for the launcher to look between two cases, and to look again, also on a
    // busy machine.
    if (script_.only_case != 0) std::this_thread::sleep_for(std::chrono::milliseconds(1100));
    // This is longer than it takes to lose a node. A lost case is run again as another attempt,
    // which is quick.
    if (script_.behaviour == "once_slow" && one.attempt == 1 &&
        (script_.only_case == 0 || script_.only_case == count))
      std::this_thread::sleep_for(std::chrono::seconds(20));
    if (mine("slower")) std::this_thread::sleep_for(std::chrono::seconds(3));
    if (mine("slow") || mine("heedless") || mine("on_gpu"))
      std::this_thread::sleep_for(std::chrono::milliseconds(300));
    beat(one, "case_end");
  }

  /// As every rank of a case in which one met an error.
  [[noreturn]] void fail(const record::BatchCase& one, Phase phase,
                         record::EvidenceWriter& evidence) {
    evidence.end(false, phase, now_ms());
    beat(one, "case_end");
    wait_for_others();
    std::this_thread::sleep_for(std::chrono::milliseconds(20));  // their last heartbeats
    _exit(record::kExitCaseFailed);
  }

  void look_for_divergence(const record::BatchCase& one, record::EvidenceWriter& evidence) {
    record::Heartbeat line{.event = "phase", .case_id = one.id, .attempt = one.attempt};
    line.phase = Phase::replay;
    beat(line);
    if (script_.behaviour == "wrong_then_stuck") sleep_for_ever();
    if (script_.behaviour == "wrong_then_dead") _exit(7);
    const bool found = wrong();
    record::DivergenceLine divergence{.left = "divergence_eager",
                                      .right = "divergence_graph",
                                      .step = 3,
                                      .found = found,
                                      .microbatch = found ? 1 : -1,
                                      .layer = found ? 0 : -1,
                                      .module = found ? "attn" : "",
                                      .direction = found ? "forward" : "",
                                      .op = found ? "aten::mul" : "",
                                      .taps = 412,
                                      .why = found ? "" : "another rank differs"};
    if (found)
      divergence.mismatch = record::TensorMismatch{.tensor = "aten::mul",
                                                   .element = 17,
                                                   .left = 0.125,
                                                   .right = 0.25,
                                                   .max_abs = 0.125,
                                                   .max_rel = 0.5,
                                                   .max_ulp = 8388608,
                                                   .elements = 2048,
                                                   .differing = 190};
    evidence.write(divergence);
    evidence.end(true, Phase::replay, now_ms());
    beat(one, "case_end");
  }

  bool wrong() const {
    return script_.rank == rank_ && script_.behaviour.starts_with("wrong") &&
           script_.behaviour != "wrong_at_times";
  }

  bool meets(const record::BatchCase& one) const {
    std::istringstream values(script_.phase);
    for (std::string value; std::getline(values, value, ',');) {
      const std::size_t equals = value.find('=');
      const nlohmann::json& held = one.axes.at(value.substr(0, equals));
      if ((held.is_string() ? held.get<std::string>() : held.dump()) != value.substr(equals + 1))
        return false;
    }
    const char* luck = std::getenv("GRAPHPROOF_FAKE_LUCK");
    const std::size_t below = one.evidence_folder.find("/shrink/");
    if (luck == nullptr || below == std::string::npos) return true;
    // Drawn from what identifies the case in its job, so that the same question gets the same
    // answers.
    std::uint32_t hash = 2166136261u;
    for (const char c : one.evidence_folder.substr(one.evidence_folder.find('/', below + 8)))
      hash = (hash ^ static_cast<unsigned char>(c)) * 16777619u;
    return static_cast<int>((hash >> 8) % 100) >= std::atoi(luck);
  }

  /// In its first run and its third. The word after the behaviour names the file that counts them.
  bool wrong_this_time() const {
    std::ofstream(script_.phase, std::ios::app) << "x";
    const auto runs = fs::file_size(script_.phase);
    return runs == 1 || runs == 3;
  }

  void misbehave() const {
    if (mine("signal")) raise(SIGSEGV);
    if (mine("terminated")) raise(SIGTERM);
    if (mine("exit0")) _exit(0);
    if (mine("exit7")) _exit(7);
    if (mine("deaf")) {
      signal(SIGTERM, SIG_IGN);
      sleep_for_ever();
    }
    if (mine("garbage")) {
      // Some of the garbage has no end of line, which would swallow the last heartbeats of others.
      wait_for_others();
      sleep(1);
      for (int line = 0; line < 300; ++line) {
        const std::string text = line % 2 == 0 ? "{\"rank\": 99}\n" : std::string(5000, 'x');
        [[maybe_unused]] const auto written = write(fifo_, text.data(), text.size());
        usleep(20000);
      }
      sleep_for_ever();
    }
    if (mine("daemon")) become_daemon();
    if (mine("file")) std::ofstream(fs::temp_directory_path() / "left-by-a-case") << "x";
    if (mine("shm")) leave_shm("graphproof-fake-" + std::to_string(getpid()), false);
    if (mine("semaphore"))
      sem_open(("/fake-" + std::to_string(getpid())).c_str(), O_CREAT, 0600, 1);
    if (mine("system_v")) make_system_v();
    if (mine("mapped_shm")) leave_shm("fake-without-a-process", true);
    if (mine("port")) listen_on_a_port();
    if (mine("hidden_port")) {
      listen_on_a_port();
      hide();
    }
    if (mine("gpu_memory")) add_gpu_memory();
    if (mine("mps_server")) start_mps_server();
    if (leased("0")) {
      if (mine("xid") || mine("xid_then_wrong")) report_trouble("xid 79 0");
      if (mine("ecc")) report_trouble("ecc 1 0");
      if (mine("heat")) report_trouble("heat 1 0");
    }
    if (mine("page_fault")) {
      report_trouble("xid 31 0");
      _exit(7);
    }
    if (mine("brief_daemon") && fork() == 0) {
      setsid();
      usleep(300000);  // ended before the launcher counts it as left behind
      _exit(0);
    }
  }

  /// Until the evidence of all other ranks has its end. Their heartbeats follow it.
  void wait_for_others() const {
    for (int other = 0; other < batch_.world_size; ++other) {
      const fs::path file =
          fs::path(batch_.cases.front().evidence_folder) / record::evidence_file_name(other);
      while (other != rank_ && !(fs::exists(file) && record::read_text(file).find(
                                                         "\"kind\":\"end\"") != std::string::npos))
        usleep(1000);
    }
  }

  static void become_daemon() {
    if (fork() != 0) return;
    setsid();
    for (int descriptor = 0; descriptor < 64; ++descriptor) close(descriptor);
    signal(SIGTERM, SIG_IGN);
    sleep_for_ever();
  }

  /// A segment in /dev/shm that is not removed: with this process in its name, or mapped for as
  /// long as it runs.
  static void leave_shm(const std::string& name, bool mapped) {
    const std::string path = "/dev/shm/" + name;
    const int file = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (ftruncate(file, 4096) != 0) _exit(8);
    if (mapped) {
      [[maybe_unused]] const void* memory =
          mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
      usleep(400000);  // as long as a rank that uses it
    }
    close(file);
  }

  /// One object of each kind, which is not removed.
  static void make_system_v() {
    const int semaphores = semget(IPC_PRIVATE, 2, IPC_CREAT | 0600),
              memory = shmget(IPC_PRIVATE, 4096, IPC_CREAT | 0600),
              messages = msgget(IPC_PRIVATE, IPC_CREAT | 0600);
    struct {
      long type = 1;
      char text[4] = "";
    } message;
    if (semctl(semaphores, 0, SETVAL, 1) != 0 || memory < 0 ||
        msgsnd(messages, &message, sizeof message.text, 0) != 0)
      _exit(8);
  }

  /// A socket that stays open in this process and in those that it starts.
  static void listen_on_a_port() {
    const int server = socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (bind(server, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 ||
        listen(server, 1) != 0)
      _exit(8);
    usleep(1200000);  // as long as a rank that uses it
  }

  /// A process without mark and session that has this one's descriptors open for a few seconds.
  static void hide() {
    if (fork() != 0) return;
    setsid();
    for (int descriptor = 0; descriptor <= 2; ++descriptor)
      close(descriptor);  // mpirun waits for their end
    char program[] = "/bin/sleep", seconds[] = "4";
    char* arguments[] = {program, seconds, nullptr};
    char* environment[] = {nullptr};
    execve(program, arguments, environment);
    _exit(8);
  }

  /// Acts like a process that leaves a context on the GPU: the tests' libnvidia-ml reads this file.
  static void add_gpu_memory() {
    std::ofstream(std::getenv("GRAPHPROOF_FAKE_NVML"), std::ios::app) << 128 << "\n";
  }

  /// Acts like a process with a context, which the driver lists or not: the tests' libnvidia-ml
  /// reads this file.
  static void take_gpu_memory(bool listed) {
    std::ofstream(std::getenv("GRAPHPROOF_FAKE_NVML_PROCESSES"), std::ios::app)
        << getpid() << " 700 " << listed << "\n";
  }

  /// Acts like the first program that connects to the control daemon of the Multi-Process Service.
  /// The server outlives it: init stands for it.
  static void start_mps_server() {
    std::ofstream(std::getenv("GRAPHPROOF_FAKE_NVML_PROCESSES"), std::ios::app) << "1 96 2\n";
  }

  static bool leased(const std::string& gpu) {
    return ("," + std::string(std::getenv("CUDA_VISIBLE_DEVICES")) + ",").find("," + gpu + ",") !=
           std::string::npos;
  }

  /// Reports as the driver does: the tests' libnvidia-ml reads this file.
  static void report_trouble(const std::string& line) {
    std::ofstream(std::getenv("GRAPHPROOF_FAKE_NVML_TROUBLE"), std::ios::app) << line << "\n";
  }

  record::Batch batch_;
  int rank_;
  bool divergence_;
  Script script_;
  int fifo_ = -1;
};

void judge(const fs::path& folder) {
  // Of a busy machine: the ranks of a failed case are gone before its verdict is known.
  if (const char* after_ms = std::getenv("GRAPHPROOF_FAKE_VERDICT_AFTER_MS"))
    std::this_thread::sleep_for(std::chrono::milliseconds(std::atoi(after_ms)));
  const record::Context context =
      record::context_from(record::read_json(folder / "context.json"), folder);
  record::Checks checks{.case_id = context.case_id,
                        .attempt = context.attempt,
                        .ranks = {},
                        .figures = {},
                        .checks = {}};
  record::CheckResult lockstep{
      "D01.lockstep", record::Result::pass, {}, {"steps equal", "all", "all", "", ""}};
  for (int rank = 0; rank < context.world_size; ++rank) {
    record::RankEvidence seen{
        .rank = rank, .complete = false, .last_phase = {}, .refused = {}, .error = {}};
    const fs::path file = folder / record::evidence_file_name(rank);
    if (fs::exists(file)) {
      const record::Evidence evidence = record::read_evidence(file);
      seen.complete = evidence.complete();
      for (const record::PhaseLine& line : evidence.of<record::PhaseLine>())
        seen.last_phase = line.phase;
      for (const record::CompareLine& line : evidence.of<record::CompareLine>())
        if (!line.equal)
          lockstep = {"D01.lockstep",
                      record::Result::fail,
                      rank,
                      {"a step differs", "1 tensor", "none", "", "look"}};
    }
    checks.ranks.push_back(seen);
  }
  checks.checks.push_back(lockstep);
  record::write_json(folder / "checks.json", record::to_json(checks));
}

}  // namespace
}  // namespace graphproof

int main(int count, char** arguments) {
  using namespace graphproof;
  if (count < 2) return 2;
  try {
    if (fs::is_directory(arguments[1])) {
      for (int i = 1; i < count; ++i) judge(arguments[i]);
      return 0;
    }
    if (std::string(arguments[1]) == "--all-reduce") {
      const char* ranks = std::getenv("GRAPHPROOF_WORLD_SIZE");
      if (const char* rank = std::getenv("OMPI_COMM_WORLD_RANK");
          rank == nullptr || std::string(rank) == "0")
        std::printf(
            "NCCL version 2.28\n{\"bytes\":67108864,\"bus_gb_s\":240.2,\"ms\":0.42,\"ranks\":%s}\n",
            ranks != nullptr ? ranks : "4");
      return std::getenv("GRAPHPROOF_FAKE_NO_SUM") != nullptr ? 6 : 0;
    }
    if (std::string(arguments[1]) == "--fingerprint") {
      record::Stack stack{.torch_version = "2.11.0",
                          .cuda_version = "none",
                          .nccl_version = "none",
                          .driver = "none",
                          .cudnn_version = "none",
                          .mpi = "Open MPI",
                          .gpus = {},
                          .sm = 0,
                          .kernel = "6.1.0",
                          .host = "node1",
                          .cpus = 2,
                          .environment = {}};
      if (const char* driver = std::getenv("GRAPHPROOF_FAKE_DRIVER")) stack.driver = driver;
      std::printf("%s\n", record::to_json(stack).dump().c_str());
      return 0;
    }
    const char* rank = std::getenv("GRAPHPROOF_RANK");
    if (rank == nullptr) rank = std::getenv("OMPI_COMM_WORLD_RANK");
    const bool divergence = std::string(arguments[1]) == "--divergence";
    const char* file = arguments[divergence ? 2 : 1];
    return FakeRank(record::batch_from(record::read_json(file), file), rank ? std::atoi(rank) : 0,
                    divergence)
        .run();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "fake rank: %s\n", error.what());
    return 6;
  }
}
