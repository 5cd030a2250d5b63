// SPDX-License-Identifier: Apache-2.0
#include "sandbox.h"

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace headrace::media {
namespace {

#if defined(__x86_64__)
constexpr uint32_t kArchitecture = AUDIT_ARCH_X86_64;
#elif defined(__aarch64__)
constexpr uint32_t kArchitecture = AUDIT_ARCH_AARCH64;
#else
#error "headrace-av: system call numbers of this architecture are unknown"
#endif

// Memory, the socket, and exit. mmap is checked more closely.
constexpr int kAllowed[] = {SYS_read,       SYS_write,         SYS_pread64,     SYS_futex,
                            SYS_munmap,     SYS_mremap,        SYS_madvise,     SYS_brk,
                            SYS_close,      SYS_clock_gettime, SYS_sched_yield, SYS_exit,
                            SYS_exit_group, SYS_rt_sigreturn};

constexpr uint32_t kNumber = offsetof(seccomp_data, nr);
constexpr uint32_t kArch = offsetof(seccomp_data, arch);
constexpr uint32_t kProtection = offsetof(seccomp_data, args) + 2 * sizeof(uint64_t);

sock_filter load(uint32_t offset) { return BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offset); }
sock_filter give(uint32_t verdict) { return BPF_STMT(BPF_RET | BPF_K, verdict); }
sock_filter unless_equal(uint32_t value, uint8_t skip) {
  return BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 0, skip);
}
sock_filter if_equal(uint32_t value, uint8_t skip) {
  return BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, skip, 0);
}
sock_filter if_bits(uint32_t bits, uint8_t skip) {
  return BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, bits, skip, 0);
}

}  // namespace

bool enter_sandbox() {
  constexpr rlimit kNone{0, 0};
  setrlimit(RLIMIT_CORE, &kNone);
  setrlimit(RLIMIT_NOFILE, &kNone);
  setrlimit(RLIMIT_FSIZE, &kNone);  // write() would let the shared memory grow without end
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return false;
  std::vector<sock_filter> filter{load(kArch), if_equal(kArchitecture, 1),
                                  give(SECCOMP_RET_KILL_PROCESS), load(kNumber)};
  for (const int number : kAllowed) {
    filter.push_back(unless_equal(static_cast<uint32_t>(number), 1));
    filter.push_back(give(SECCOMP_RET_ALLOW));
  }
  // Executable memory is not needed.
  filter.push_back(unless_equal(SYS_mmap, 3));
  filter.push_back(load(kProtection));
  filter.push_back(if_bits(PROT_EXEC, 1));
  filter.push_back(give(SECCOMP_RET_ALLOW));
  filter.push_back(give(SECCOMP_RET_ERRNO | EPERM));
  const sock_fprog program{static_cast<unsigned short>(filter.size()), filter.data()};
  return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0) == 0;
}

}  // namespace headrace::media
