// A process as the probe would leave it, for tests of `watch` on machines without CUDA: writes a
// probe's file into GRAPHPROOF_PROBE_DIR and then does what its argument names.
//
//   graphproof_fake_watched exit N | signal N | wait | spin | steps N | fork
//
// `wait` sleeps inside a driver call, `spin` computes inside one, `steps` counts a training step
// every 100 ms, and `fork` leaves a child that sleeps. GRAPHPROOF_FAKE_HOST is the host that it
// says it runs on.
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <new>
#include <string>

#include "reports/record/probe_file/layout.h"

namespace {

namespace layout = graphproof::record::probe_file;

/// Field 22 of /proc/self/stat. The name of this program has no spaces.
std::int64_t start_ticks() {
  std::ifstream stat("/proc/self/stat");
  std::string field;
  for (int number = 1; number <= 22; ++number) stat >> field;
  return std::atoll(field.c_str());
}

std::int64_t now_ns() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<std::int64_t>(time.tv_sec) * 1'000'000'000 + time.tv_nsec;
}

/// A mapped file with a header and one thread.
struct Mapped {
  layout::Header header;
  layout::RecordHeader record;
  layout::ThreadCounters thread;
};

Mapped* map_file(const std::string& folder) {
  char host[64] = "";
  if (const char* other = std::getenv("GRAPHPROOF_FAKE_HOST"))
    std::strncpy(host, other, sizeof host - 1);
  else
    gethostname(host, sizeof host - 1);
  const std::string path = folder + "/" + host + "." + std::to_string(getpid()) + "." +
                           std::to_string(now_ns()) + std::string(layout::kExtension);
  const int file = open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
  if (file < 0 || ftruncate(file, sizeof(Mapped)) != 0) {
    std::fprintf(stderr, "graphproof: process %d is not watched: cannot create %s\n", getpid(),
                 path.c_str());
    return nullptr;
  }
  void* at = mmap(nullptr, sizeof(Mapped), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  auto* mapped = new (at) Mapped;
  layout::Header& header = mapped->header;
  header.header_bytes = sizeof header;
  header.pid = getpid();
  header.parent_pid = getppid();
  header.process_start_ticks = start_ticks();
  header.monotonic_ns = now_ns();
  std::memcpy(header.host, host, sizeof host);
  std::memcpy(header.magic, layout::kMagic.data(), sizeof header.magic);
  mapped->record = {.bytes = sizeof mapped->thread, .type = layout::RecordType::thread};
  mapped->thread.tid = gettid();
  std::strcpy(mapped->thread.name, "fake");
  header.committed = sizeof mapped->record + sizeof mapped->thread;
  return mapped;
}

}  // namespace

int main(int count, char** arguments) {
  const std::string what = count > 1 ? arguments[1] : "";
  const int number = count > 2 ? std::atoi(arguments[2]) : 0;
  const char* folder = std::getenv("GRAPHPROOF_PROBE_DIR");
  Mapped* mapped = folder ? map_file(folder) : nullptr;
  if (what == "signal") kill(getpid(), number);
  if (what == "fork" && fork() == 0)
    for (;;) pause();
  if (what == "steps")
    for (int step = 0; step < number; ++step) {
      if (mapped) ++mapped->header.process.steps;
      usleep(100'000);
    }
  if (what == "wait" || what == "spin") {
    if (mapped) {
      mapped->thread.last_call_ns = now_ns();
      std::strcpy(mapped->thread.inside, "cuStreamSynchronize");
    }
    for (volatile bool spins = what == "spin";;)
      if (!spins) pause();
  }
  if (mapped) mapped->header.state = layout::State::ended;
  return what == "exit" ? number : 0;
}
