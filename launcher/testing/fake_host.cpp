// Preloaded into the processes of the chaos test. The calls that make and write files, and those
// that ask for the time of day, answer as a host in the state of fake_host.h would. Everything else
// goes to the C library.
#include "launcher/testing/fake_host.h"

#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/statvfs.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <time.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <string_view>

namespace {

using graphproof::launcher::FakeHostState;

/// The state. The file is opened again until the test has made it.
FakeHostState* state() {
  static FakeHostState* mapped = nullptr;
  if (mapped == nullptr)
    if (const char* file = getenv(graphproof::launcher::kFakeHostVariable))
      mapped = graphproof::launcher::map_fake_host(file, false);
  return mapped;
}

template <class Function>
Function next(const char* name) {
  return reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));
}

bool below(std::string_view path) {
  const FakeHostState* host = state();
  return host != nullptr && host->folder[0] != '\0' && path.starts_with(host->folder);
}

bool below(int descriptor) {
  if (state() == nullptr) return false;
  char link[64], path[1024];
  snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
  const ssize_t length = readlink(link, path, sizeof path);
  return length > 0 && below(std::string_view(path, static_cast<std::size_t>(length)));
}

/// Sets errno and returns true when nothing can be made or changed there.
bool refused(bool makes) {
  FakeHostState& host = *state();
  const int error = host.read_only ? EROFS : makes && host.free_bytes <= 0 ? ENOSPC : 0;
  if (error == 0) return false;
  ++host.refused;
  errno = error;
  return true;
}

/// How many of `wanted` bytes fit on the disk; takes them from the free space. -1 with errno when
/// none does.
ssize_t room(std::size_t wanted) {
  FakeHostState& host = *state();
  if (refused(true)) return -1;
  std::int64_t free = host.free_bytes, taken;
  do {
    taken = std::min(free, static_cast<std::int64_t>(wanted));
    if (taken <= 0) {
      ++host.refused;
      errno = ENOSPC;
      return -1;
    }
  } while (!host.free_bytes.compare_exchange_weak(free, free - taken));
  return taken;
}

bool writes(int flags) {
  return (flags & O_ACCMODE) != O_RDONLY || (flags & (O_CREAT | O_TRUNC)) != 0;
}
bool absent(const char* path) { return access(path, F_OK) != 0; }

}  // namespace

extern "C" {

/// Tells the test that its calls come here.
int graphproof_fake_host() { return 1; }

int open(const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(arguments, mode_t) : 0;
  va_end(arguments);
  static const auto real = next<int (*)(const char*, int, ...)>("open");
  // The first call may come from state() itself, which looks at a file elsewhere.
  if (writes(flags) && std::string_view(path).find("fake-host") == std::string_view::npos &&
      below(path) && refused(absent(path)))
    return -1;
  return real(path, flags, mode);
}

int open64(const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(arguments, mode_t) : 0;
  va_end(arguments);
  return open(path, flags, mode);
}

FILE* fopen(const char* path, const char* mode) {
  static const auto real = next<FILE* (*)(const char*, const char*)>("fopen");
  if (std::string_view(mode).find_first_of("wa+") != std::string_view::npos && below(path) &&
      refused(absent(path)))
    return nullptr;
  return real(path, mode);
}

FILE* fopen64(const char* path, const char* mode) { return fopen(path, mode); }

ssize_t write(int descriptor, const void* bytes, size_t count) {
  static const auto real = next<ssize_t (*)(int, const void*, size_t)>("write");
  if (count == 0 || !below(descriptor)) return real(descriptor, bytes, count);
  const ssize_t fits = room(count);
  return fits < 0 ? -1 : real(descriptor, bytes, static_cast<size_t>(fits));
}

ssize_t writev(int descriptor, const iovec* parts, int count) {
  static const auto real = next<ssize_t (*)(int, const iovec*, int)>("writev");
  if (!below(descriptor)) return real(descriptor, parts, count);
  // A caller goes on with what a short write has left.
  for (int i = 0; i < count; ++i)
    if (parts[i].iov_len > 0) return write(descriptor, parts[i].iov_base, parts[i].iov_len);
  return 0;
}

int mkdir(const char* path, mode_t mode) {
  static const auto real = next<int (*)(const char*, mode_t)>("mkdir");
  if (below(path) && refused(absent(path))) return -1;
  return real(path, mode);
}

int rename(const char* from, const char* to) {
  static const auto real = next<int (*)(const char*, const char*)>("rename");
  if (below(to) && refused(false)) return -1;
  return real(from, to);
}

int unlink(const char* path) {
  static const auto real = next<int (*)(const char*)>("unlink");
  if (below(path) && refused(false)) return -1;
  return real(path);
}

int ftruncate(int descriptor, off_t length) {
  static const auto real = next<int (*)(int, off_t)>("ftruncate");
  if (below(descriptor) && refused(false)) return -1;
  return real(descriptor, length);
}

int statvfs(const char* path, struct statvfs* facts) {
  static const auto real = next<int (*)(const char*, struct statvfs*)>("statvfs");
  const int result = real(path, facts);
  if (result == 0 && below(path) && state()->free_bytes <= 0) facts->f_bavail = facts->f_bfree = 0;
  return result;
}

int clock_gettime(clockid_t clock, timespec* time) {
  static const auto real = next<int (*)(clockid_t, timespec*)>("clock_gettime");
  const int result = real(clock, time);
  if (clock == CLOCK_REALTIME && state() != nullptr) time->tv_sec += state()->clock_step_s;
  return result;
}

int gettimeofday(timeval* time, void* zone) {
  static const auto real = next<int (*)(timeval*, void*)>("gettimeofday");
  const int result = real(time, zone);
  if (state() != nullptr) time->tv_sec += state()->clock_step_s;
  return result;
}

time_t time(time_t* result) {
  timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  if (result != nullptr) *result = now.tv_sec;
  return now.tv_sec;
}
}
