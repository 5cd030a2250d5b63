// SPDX-License-Identifier: Apache-2.0
// Preloaded into a program (LD_PRELOAD): makes selected calls of the engine itself fail, as on a
// machine that is out of memory, or with a failing disk or network file system. Calls of other
// libraries, and of Python, are never changed.
#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>

namespace {

enum Kind : int { kNothing = 0, kAllocations = 1, kReads = 2 };
constexpr int kShort = -1;  // in place of an errno: a read returns fewer bytes

// The engine's code. Not the bindings': nanobind's own allocations end the process.
constexpr int kMax = 8;
std::atomic<int> segments{0};
uintptr_t begins[kMax], ends[kMax];

std::atomic<int> kind{kNothing};
std::atomic<int64_t> calls{0}, first{0}, last{0}, live{0};
std::atomic<int> failure{0};

int add_segments(dl_phdr_info* info, size_t, void*) {
  if (!std::strstr(info->dlpi_name, "libheadrace")) return 0;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const auto& part = info->dlpi_phdr[i];
    const int n = segments;
    if (part.p_type != PT_LOAD || !(part.p_flags & PF_X) || n == kMax) continue;
    begins[n] = info->dlpi_addr + part.p_vaddr;
    ends[n] = begins[n] + part.p_memsz;
    segments = n + 1;
  }
  return 0;
}

// 0, or the error with which the call from this address must fail.
int fails(Kind called, void* from) {
  if (kind != called) return 0;
  const auto at = reinterpret_cast<uintptr_t>(from);
  const int count = segments;
  bool is_engine = false;
  for (int i = 0; i < count; ++i) is_engine |= begins[i] <= at && at < ends[i];
  if (!is_engine) return 0;
  const int64_t number = ++calls;
  return number >= first && number <= last ? failure.load() : 0;
}

template <class Function>
Function* real(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

void* allocated(size_t size, size_t alignment, void* from) {
  if (fails(kAllocations, from) != 0) return nullptr;
  const size_t units = (std::max<size_t>(size, 1) + alignment - 1) / alignment;
  void* memory = alignment <= __STDCPP_DEFAULT_NEW_ALIGNMENT__
                     ? std::malloc(std::max<size_t>(size, 1))
                     : std::aligned_alloc(alignment, units * alignment);
  if (memory) ++live;
  return memory;
}

void freed(void* memory) {
  if (memory) --live;
  std::free(memory);
}

void* or_throw(void* memory) {
  if (!memory) throw std::bad_alloc();
  return memory;
}

constexpr size_t kPlain = __STDCPP_DEFAULT_NEW_ALIGNMENT__;

// -1 with errno set, or 0 if the call is to be made.
int refused(int error) {
  if (error <= 0) return 0;
  errno = error;
  return -1;
}

}  // namespace

extern "C" {

// Counts the calls of a kind from here on, starting with 1; those from `from` to `to` fail.
void faults_arm(int which, int64_t from, int64_t to, int error) {
  kind = kNothing;
  if (segments == 0) dl_iterate_phdr(add_segments, nullptr);
  calls = 0, first = from, last = to, failure = error;
  kind = which;
}
int64_t faults_disarm() {
  kind = kNothing;
  return calls;
}
// Number of C++ objects currently allocated in the whole process.
int64_t faults_live() { return live; }

void* mmap(void* wish, size_t size, int protection, int flags, int file, off_t offset) {
  static auto* const call = real<void*(void*, size_t, int, int, int, off_t)>("mmap");
  if (fails(kAllocations, __builtin_return_address(0)) != 0) {
    errno = ENOMEM;
    return MAP_FAILED;
  }
  return call(wish, size, protection, flags, file, offset);
}

int open(const char* path, int flags, ...) {
  static auto* const call = real<int(const char*, int, ...)>("open");
  va_list rest;
  va_start(rest, flags);
  const auto mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(rest, mode_t) : mode_t{0};
  va_end(rest);
  if (refused(fails(kReads, __builtin_return_address(0)))) return -1;
  return call(path, flags, mode);
}

int openat(int folder, const char* path, int flags, ...) {
  static auto* const call = real<int(int, const char*, int, ...)>("openat");
  va_list rest;
  va_start(rest, flags);
  const auto mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(rest, mode_t) : mode_t{0};
  va_end(rest);
  if (refused(fails(kReads, __builtin_return_address(0)))) return -1;
  return call(folder, path, flags, mode);
}

ssize_t read(int file, void* bytes, size_t size) {
  static auto* const call = real<ssize_t(int, void*, size_t)>("read");
  const int error = fails(kReads, __builtin_return_address(0));
  if (refused(error)) return -1;
  return call(file, bytes, error == kShort ? (size + 1) / 2 : size);
}

ssize_t pread(int file, void* bytes, size_t size, off_t offset) {
  static auto* const call = real<ssize_t(int, void*, size_t, off_t)>("pread");
  const int error = fails(kReads, __builtin_return_address(0));
  if (refused(error)) return -1;
  return call(file, bytes, error == kShort ? (size + 1) / 2 : size, offset);
}

ssize_t preadv(int file, const iovec* parts, int count, off_t offset) {
  static auto* const call = real<ssize_t(int, const iovec*, int, off_t)>("preadv");
  const int error = fails(kReads, __builtin_return_address(0));
  if (refused(error)) return -1;
  return call(file, parts, error == kShort ? (count + 1) / 2 : count, offset);
}

ssize_t preadv2(int file, const iovec* parts, int count, off_t offset, int flags) {
  static auto* const call = real<ssize_t(int, const iovec*, int, off_t, int)>("preadv2");
  const int error = fails(kReads, __builtin_return_address(0));
  if (refused(error)) return -1;
  return call(file, parts, error == kShort ? (count + 1) / 2 : count, offset, flags);
}
}

[[gnu::noinline]] void* operator new(size_t size) {
  return or_throw(allocated(size, kPlain, __builtin_return_address(0)));
}
[[gnu::noinline]] void* operator new[](size_t size) {
  return or_throw(allocated(size, kPlain, __builtin_return_address(0)));
}
[[gnu::noinline]] void* operator new(size_t size, std::align_val_t alignment) {
  return or_throw(allocated(size, static_cast<size_t>(alignment), __builtin_return_address(0)));
}
[[gnu::noinline]] void* operator new(size_t size, const std::nothrow_t&) noexcept {
  return allocated(size, kPlain, __builtin_return_address(0));
}
[[gnu::noinline]] void* operator new[](size_t size, const std::nothrow_t&) noexcept {
  return allocated(size, kPlain, __builtin_return_address(0));
}
void operator delete(void* memory) noexcept { freed(memory); }
void operator delete(void* memory, size_t) noexcept { freed(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { freed(memory); }
void operator delete(void* memory, size_t, std::align_val_t) noexcept { freed(memory); }
void operator delete(void* memory, const std::nothrow_t&) noexcept { freed(memory); }
void operator delete[](void* memory) noexcept { freed(memory); }
void operator delete[](void* memory, size_t) noexcept { freed(memory); }
void operator delete[](void* memory, const std::nothrow_t&) noexcept { freed(memory); }
