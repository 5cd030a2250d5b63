// SPDX-License-Identifier: Apache-2.0
#include "headrace/codecs/media/media_process.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <new>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "headrace/base/clock.h"
#include "headrace/base/mutex.h"
#include "headrace/base/signals.h"
#include "headrace/codecs/media/media_errors.h"

namespace headrace {
namespace {

// A thread that lives as long as this process, to start child processes that must not end earlier:
// the kernel kills a media process when the *thread* that started it ends, and the threads that
// need one come and go with their loaders. It is started on first use.
struct PersistentThread {
  Mutex mutex;
  Condition changed;
  const std::function<void()>* work GUARDED_BY(mutex) = nullptr;

  PersistentThread() {
    const BlockedSignals blocked;
    std::thread([this] { run(); }).detach();
  }
  [[noreturn]] void run() {
    MutexLock lock(mutex);
    for (;;) {
      while (!work) changed.wait(mutex);
      (*work)();
      work = nullptr;
      changed.notify_all();
    }
  }
};

// Never destroyed: its thread runs until the process ends.
PersistentThread* persistent_thread = nullptr;

// Runs `work` on the persistent thread, and returns when it is done. Throws std::system_error if no
// thread can be created. REQUIRES: no concurrent calls; `work` does not throw.
void run_on_persistent_thread(const std::function<void()>& work) {
  if (!persistent_thread) persistent_thread = new PersistentThread;
  MutexLock lock(persistent_thread->mutex);
  persistent_thread->work = &work;
  persistent_thread->changed.notify_all();
  while (persistent_thread->work) persistent_thread->changed.wait(persistent_thread->mutex);
}

// Must be called in a process that has just been forked: the thread only exists in its parent.
void forget_persistent_thread() { persistent_thread = nullptr; }

}  // namespace

// The running processes, so that a process forked from this one can close their descriptors. The
// lock is held while one is started, because a concurrent fork would copy unregistered descriptors.
struct MediaProcesses {
  Mutex mutex;
  std::vector<MediaProcess*> running GUARDED_BY(mutex);

  static MediaProcesses& all() {
    static MediaProcesses& processes = *new MediaProcesses;  // threads may outlive main()
    return processes;
  }
  MediaProcesses() { pthread_atfork(before_fork, after_fork, in_fork); }

  // The lock is held over the fork, by functions that clang cannot see together.
  static void before_fork() HR_ANNOTATION(no_thread_safety_analysis) { all().mutex.lock(); }
  static void after_fork() HR_ANNOTATION(no_thread_safety_analysis) { all().mutex.unlock(); }
  static void in_fork() HR_ANNOTATION(no_thread_safety_analysis) {
    for (MediaProcess* const process : all().running) process->forget();
    all().running.clear();
    forget_persistent_thread();
    all().mutex.unlock();
  }
};

namespace {

constexpr double kLongestSlice = 0.1;

int pidfd_open_of(pid_t id) { return static_cast<int>(syscall(SYS_pidfd_open, id, 0)); }

// A descriptor number that does not collide with those passed to the program.
int high(int descriptor) {
  if (descriptor < 0) return -1;
  const int moved = fcntl(descriptor, F_DUPFD_CLOEXEC, 16);
  close(descriptor);
  return moved;
}

int new_memory() {
  const int file = high(memfd_create("headrace-av", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  // Without these seals, either side could truncate the file and thereby crash the other.
  if (file >= 0) fcntl(file, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_SEAL);
  return file;
}

// The environment of the program.
std::vector<std::string> environment() {
  std::vector<std::string> out;
  for (const char* const name :
       {"LD_LIBRARY_PATH", "ASAN_OPTIONS", "UBSAN_OPTIONS", "TSAN_OPTIONS", "LSAN_OPTIONS"}) {
    if (const char* const value = std::getenv(name)) out.push_back(std::string(name) + "=" + value);
  }
  return out;
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> out;
  for (std::string& text : texts) out.push_back(text.data());
  out.push_back(nullptr);
  return out;
}

// Signals to the engine's process group (Ctrl-C) must not reach the program, which ends when the
// engine decides.
void set_signals(posix_spawnattr_t& attributes) {
  sigset_t blocked, usual;
  sigfillset(&blocked);
  for (const int fault : {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGSYS, SIGTRAP}) {
    sigdelset(&blocked, fault);
  }
  sigfillset(&usual);
  posix_spawnattr_setsigmask(&attributes, &blocked);
  posix_spawnattr_setsigdefault(&attributes, &usual);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
}

int spawn(const std::string& program, bool confined, int socket, int packets, int frames,
          pid_t& id) {
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  if (const int error = posix_spawn_file_actions_init(&actions)) return error;
  if (const int error = posix_spawnattr_init(&attributes)) {
    posix_spawn_file_actions_destroy(&actions);
    return error;
  }
  for (const int standard : {0, 1, 2}) {
    posix_spawn_file_actions_addopen(&actions, standard, "/dev/null", O_RDWR, 0);
  }
  posix_spawn_file_actions_adddup2(&actions, socket, media::kSocket);
  posix_spawn_file_actions_adddup2(&actions, packets, media::kPacketMemory);
  posix_spawn_file_actions_adddup2(&actions, frames, media::kFrameMemory);
  set_signals(attributes);
  std::vector<std::string> words{program, std::to_string(getpid()),
                                 confined ? media::kSandboxed : media::kUnsandboxed};
  std::vector<std::string> variables = environment();
  const int error = posix_spawn(&id, program.c_str(), &actions, &attributes, pointers(words).data(),
                                pointers(variables).data());
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  return error;
}

}  // namespace

bool MediaProcess::Memory::grow(size_t to, int protection) {
  if (to <= bytes.size()) return true;
  if (ftruncate(file, static_cast<off_t>(to)) != 0) return false;
  if (!bytes.empty()) munmap(bytes.data(), bytes.size());
  bytes = {};
  void* const data = mmap(nullptr, to, protection, MAP_SHARED, file, 0);
  if (data == MAP_FAILED) return false;
  madvise(data, to, MADV_DONTFORK);
  bytes = {static_cast<uint8_t*>(data), to};
  return true;
}

void MediaProcess::Memory::close() {
  const Memory own = std::exchange(*this, {});
  if (!own.bytes.empty()) munmap(own.bytes.data(), own.bytes.size());
  if (own.file >= 0) ::close(own.file);
}

int MediaProcess::launch(const std::string& program, bool confined) {
  int ends[2] = {-1, -1};
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) return errno;
  socket_ = ends[0];
  const int other = high(ends[1]);
  packets_.file = new_memory();
  frames_.file = new_memory();
  int error = other < 0 || packets_.file < 0 || frames_.file < 0 ? EMFILE : 0;
  if (!error) {
    try {
      run_on_persistent_thread([&] {
        try {
          error = spawn(program, confined, other, packets_.file, frames_.file, id_);
        } catch (const std::bad_alloc&) {  // nothing would catch it on that thread
          error = ENOMEM;
        }
      });
    } catch (const std::system_error& refused) {  // thread creation may fail
      error = refused.code().value();
    }
  }
  if (other >= 0) close(other);
  if (error) {
    id_ = -1;
    return error;
  }
  handle_ = pidfd_open_of(id_);
  return 0;
}

Result<std::unique_ptr<MediaProcess>> MediaProcess::start(const std::string& program, bool confined,
                                                          Patience& patience) {
  std::unique_ptr<MediaProcess> process(new MediaProcess);
  process->confined_ = confined;
  int error = 0;
  {
    MediaProcesses& all = MediaProcesses::all();
    MutexLock lock(all.mutex);
    error = process->launch(program, confined);
    all.running.push_back(process.get());
  }
  if (error == ENOENT) {
    return no_media_process("there is no " + program + ": " + media_absence(),
                            media_absence_hint());
  }
  if (error) {
    return no_media_process(program + " cannot be started: " + std::strerror(error),
                            "allow more processes and open files (ulimit -u, ulimit -n)");
  }
  Result<media::Reply> ready = process->receive(patience);
  if (!ready) return std::move(ready.error());
  if (ready->kind == media::ReplyKind::kFailed) return failure_of(*ready);
  if (ready->kind != media::ReplyKind::kReady || ready->version != media::kVersion) {
    return no_media_process(program + " is not from the same build as this library",
                            "install Headrace again");
  }
  process->address_space_ = ready->address_space;
  return process;
}

MediaProcess::~MediaProcess() {
  end();
  MediaProcesses& all = MediaProcesses::all();
  MutexLock lock(all.mutex);
  std::erase(all.running, this);
}

// The descriptors are this process's own copies; the memory was not copied.
void MediaProcess::forget() {
  for (const int descriptor : {socket_, handle_, packets_.file, frames_.file}) {
    if (descriptor >= 0) close(descriptor);
  }
  socket_ = handle_ = -1;
  id_ = -1;
  packets_ = frames_ = {};
}

bool MediaProcess::is_running() {
  if (socket_ < 0) return false;
  pollfd unasked{socket_, POLLIN, 0};
  if (poll(&unasked, 1, 0) <= 0) return true;
  end();
  return false;
}

void MediaProcess::end() {
  if (id_ >= 0) ended();
  // Cleared before closing: a concurrently forked process would otherwise close someone else's
  // descriptors.
  for (int* const each : {&socket_, &handle_}) {
    if (const int descriptor = std::exchange(*each, -1); descriptor >= 0) close(descriptor);
  }
  packets_.close();
  frames_.close();
}

Result<void> MediaProcess::reserve(size_t packet_bytes, size_t frame_bytes, size_t working_bytes) {
  if (!packets_.grow(packet_bytes, PROT_READ | PROT_WRITE) ||
      !frames_.grow(frame_bytes, PROT_READ)) {
    return undecodable_video("not enough memory for its packets and frames",
                             "skip such records (on_error=)");
  }
  const uint64_t all =
      address_space_ + 2 * (packets_.bytes.size() + frames_.bytes.size()) + working_bytes;
  rlimit limit{};
  if (confined_ && prlimit(id_, RLIMIT_AS, nullptr, &limit) == 0) {
    limit.rlim_cur = std::min<rlim_t>(all, limit.rlim_max);  // the next track may need more
    prlimit(id_, RLIMIT_AS, &limit, nullptr);
  }
  return {};
}

void MediaProcess::Memory::drop(size_t from) const {
  if (bytes.size() <= from) return;
  fallocate(file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(from),
            static_cast<off_t>(bytes.size() - from));
}

void MediaProcess::drop_frames() { frames_.drop(0); }
void MediaProcess::drop_large_packets() { packets_.drop(size_t{1} << 20); }

Result<media::Reply> MediaProcess::ask(media::Request request, Patience& patience) {
  if (socket_ < 0) return ended_media_process("the process that decodes videos has ended");
  request.packet_bytes = packets_.bytes.size();
  request.frame_bytes = frames_.bytes.size();
  // Only one request is ever pending, so this never blocks unless the program stopped reading.
  if (send(socket_, &request, sizeof request, MSG_NOSIGNAL | MSG_DONTWAIT) != sizeof request) {
    if (errno != EAGAIN) return ended();
    end();
    return ended_media_process("the decoding process sent an unexpected reply");
  }
  return receive(patience);
}

Result<media::Reply> MediaProcess::receive(Patience& patience) {
  for (;;) {
    pollfd answer{socket_, POLLIN, 0};
    const double before = now();
    const int found = poll(&answer, 1, static_cast<int>(kWaitSlice.count()));
    // Time during which this process was stopped does not count, because the program was stopped
    // too.
    patience.seconds -= std::min(now() - before, kLongestSlice);
    if (found > 0) break;
    if (found < 0 && errno != EINTR) return ended();
    if (patience.stop && patience.stop->load(std::memory_order_relaxed)) {
      end();
      return ended_media_process("its decoding was canceled");
    }
    if (patience.seconds <= 0) {
      end();
      return ended_media_process("decoding exceeded its time limit and was stopped");
    }
  }
  media::Reply reply;
  const ssize_t bytes = recv(socket_, &reply, sizeof reply, MSG_TRUNC);
  if (bytes <= 0) return ended();
  if (bytes != sizeof reply) {
    end();
    return ended_media_process("the decoding process sent an invalid message (a message of " +
                               std::to_string(bytes) + " bytes), and was killed");
  }
  return reply;
}

// It has exited, or is exiting.
Error MediaProcess::ended() {
  siginfo_t how{};
  if (handle_ >= 0) {
    syscall(SYS_pidfd_send_signal, handle_, SIGKILL, nullptr, 0);
  } else {
    kill(id_, SIGKILL);
  }
  const auto by = static_cast<idtype_t>(handle_ >= 0 ? 3 : P_PID);  // 3: P_PIDFD
  const auto which = static_cast<id_t>(handle_ >= 0 ? handle_ : id_);
  while (waitid(by, which, &how, WEXITED) != 0 && errno == EINTR) {
  }
  id_ = -1;
  end();
  if (how.si_code == CLD_EXITED && how.si_status == 127) {
    return no_media_process("headrace-av cannot load its libraries", media_install());
  }
  if (how.si_code == CLD_EXITED || how.si_code == 0) {
    return ended_media_process("the decoding process exited unexpectedly");
  }
  return ended_media_process("the decoding process was killed by " + signal_name(how.si_status));
}

}  // namespace headrace
