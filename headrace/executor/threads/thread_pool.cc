// SPDX-License-Identifier: Apache-2.0
#include "headrace/executor/threads/thread_pool.h"

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <list>
#include <system_error>
#include <utility>
#include <vector>

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

#include "headrace/base/error.h"
#include "headrace/base/mutex.h"
#include "headrace/base/process_limits.h"
#include "headrace/base/signals.h"

namespace headrace {
namespace {

const ErrorCode kForked{
    "HR0701", ErrorKind::kConfig, "loader used in a forked process",
    "The engine's threads do not survive a fork, so a parent's loader does not work in the child. "
    "Create the loader in the child, and start children with spawn or forkserver, or before the "
    "parent's first loader."};

const ErrorCode kNoThread{
    "HR0790", ErrorKind::kResource, "thread could not be started",
    "A loader needs threads, and users, containers and jobs have a limit on them (ulimit -u, the "
    "cgroup's pids.max). Use fewer threads=, close loaders that are no longer used, or raise the "
    "limit."};

std::atomic<bool> engine_started{false};
std::atomic<bool> forked{false};

// Resets denormals, rounding and exception masks to the defaults of a new process, whatever Python
// set.
void set_float_environment() {
#if defined(__x86_64__)
  _mm_setcsr(0x1F80);
#elif defined(__aarch64__)
  __asm__ volatile("msr fpcr, %0" : : "r"(uint64_t{0}));
#endif
}

}  // namespace

bool forked_from_running_engine() { return forked.load(std::memory_order_relaxed); }

void throw_if_forked() {
  if (forked_from_running_engine()) {
    raise(kForked, "this process was forked after the engine had started its threads",
          "create the Loader in a child forked before the parent's first loader, or use spawn");
  }
}

void announce_engine_thread() {
  throw_if_forked();
  ThreadPool::workers();  // watches for forks
  engine_started = true;
}

struct ThreadPool::State {
  explicit State(int max_threads) : max_threads(max_threads) {}
  struct Member {
    PoolClient* client;
    int inside = 0;  // workers in client->work()
    bool leaving = false;
  };

  const int max_threads;
  Mutex mutex;
  Condition work_arrived, worker_left;
  std::vector<Member> members GUARDED_BY(mutex);
  std::list<std::thread> threads GUARDED_BY(mutex);  // running
  std::list<std::thread> ended GUARDED_BY(mutex);    // to be joined
  size_t wanted GUARDED_BY(mutex) = 0;               // threads
  size_t asleep GUARDED_BY(mutex) = 0, inside GUARDED_BY(mutex) = 0;
  uint64_t wakes GUARDED_BY(mutex) = 0;      // counts wake() calls, so that none is missed
  uint64_t shutdowns GUARDED_BY(mutex) = 0;  // each joins the threads before it
  size_t turn GUARDED_BY(mutex) = 0;

  // The client at this position, modulo their number, if it may have one more worker.
  PoolClient* enter(size_t place) REQUIRES_LOCK(mutex) {
    Member& member = members[place % members.size()];
    if (member.leaving || member.inside >= member.client->max_workers()) return nullptr;
    ++member.inside;
    ++inside;
    return member.client;
  }

  void leave(PoolClient* client) REQUIRES_LOCK(mutex) {
    for (Member& member : members) {
      if (member.client == client) --member.inside;
    }
    --inside;
    worker_left.notify_all();
  }

  void want() REQUIRES_LOCK(mutex) {
    wanted = 0;
    for (const Member& member : members) {
      const int most = std::min(member.client->max_workers(), max_threads);
      wanted = std::max(wanted, static_cast<size_t>(std::max(0, most)));
    }
  }

  // Throws if the thread cannot be created; then nothing has been started.
  void begin_thread() REQUIRES_LOCK(mutex) {
    // shared: std::function must be copyable. Made here, so that the caller gets the error.
    auto renderer = std::make_shared<Renderer>();
    const auto own = threads.emplace(threads.end());
    try {
      *own = start_thread([this, own, renderer, begun = shutdowns] { run(own, begun, *renderer); });
    } catch (...) {
      threads.erase(own);
      throw;
    }
  }

  void wake(size_t workers) REQUIRES_LOCK(mutex) {
    ++wakes;
    for (size_t i = 0; i < std::min(workers, asleep); ++i) work_arrived.notify_one();
  }

  void run(std::list<std::thread>::iterator own, uint64_t begun, Renderer& renderer) {
    set_float_environment();
    mutex.lock();
    while (shutdowns == begun && threads.size() <= wanted) {
      const uint64_t seen = wakes;
      bool worked = false;
      const size_t first = ++turn;  // others advance it while this one is inside a client
      for (size_t tried = 0; tried < members.size() && !worked && shutdowns == begun; ++tried) {
        PoolClient* client = enter(first + tried);
        if (!client) continue;
        mutex.unlock();
        // Stays with a client while it has work; other clients have their own workers, which keeps
        // this fair.
        int rounds = 0;
        while (rounds < 8 && client->work(renderer)) ++rounds;
        worked = rounds > 0;
        mutex.lock();
        leave(client);
      }
      if (worked || shutdowns != begun || wakes != seen || threads.size() > wanted) continue;
      ++asleep;
      work_arrived.wait(mutex);
      --asleep;
    }
    if (shutdowns == begun) {
      ended.splice(ended.end(), threads, own);
      work_arrived.notify_one();  // it may have been woken for this work
    }
    worker_left.notify_all();
    mutex.unlock();
  }
};

ThreadPool::ThreadPool(int max_threads) : state_(new State(max_threads)) {}

namespace {

// Once, with the first pool.
void watch_process() {
  pthread_atfork(nullptr, nullptr, [] {
    if (engine_started.load()) forked.store(true);
  });
  std::atexit([] {
    if (!forked_from_running_engine()) shutdown_threads();
  });
}

}  // namespace

ThreadPool& ThreadPool::workers() {
  static ThreadPool* const pool = (watch_process(), new ThreadPool(1 << 16));
  return *pool;
}

ThreadPool& ThreadPool::python() {
  static ThreadPool* const pool = (workers(), new ThreadPool(1));
  return *pool;
}

ThreadPool& ThreadPool::python_workers() {
  static ThreadPool* const pool = (workers(), new ThreadPool(1 << 16));
  return *pool;
}

std::thread start_thread(std::function<void()> body) {
  const BlockedSignals blocked;
  try {
    return std::thread(
        [body = std::move(body), cores = cores_beyond_inherited(), before = blocked.before()] {
          set_starter_signal_mask(before);
          // If that fails (a cpuset that has shrunk since), the inherited affinity remains.
          if (cores) sched_setaffinity(0, sizeof *cores, &*cores);
          body();
        });
  } catch (const std::system_error& refused) {
    raise(kNoThread, refused.what(),
          "use fewer threads=, or raise the limit (ulimit -u, pids.max)");
  }
}

void shutdown_threads() {
  ThreadPool::workers().shutdown();
  ThreadPool::python().shutdown();
  ThreadPool::python_workers().shutdown();
}

void ThreadPool::add(PoolClient& client) {
  throw_if_forked();
  engine_started = true;
  std::list<std::thread> ended;
  {
    MutexLock lock(state_->mutex);
    // Allocations come first: a client that could not be added must not remain registered.
    state_->members.reserve(state_->members.size() + 1);
    const auto most = static_cast<size_t>(std::min(client.max_workers(), state_->max_threads));
    try {
      state_->wanted = std::max(state_->wanted, most);
      while (state_->threads.size() < most) state_->begin_thread();
    } catch (...) {
      state_->want();  // threads started for it end again
      state_->work_arrived.notify_all();
      throw;
    }
    state_->members.push_back({&client});
    state_->wake(most);
    ended.swap(state_->ended);  // last: a list of unjoined threads ends the process
  }
  for (std::thread& thread : ended) thread.join();
}

void ThreadPool::remove(PoolClient& client) {
  if (forked_from_running_engine()) return;
  State& state = *state_;
  std::list<std::thread> ended;
  {
    MutexLock lock(state.mutex);
    auto find = [&]() REQUIRES_LOCK(state.mutex) {
      return std::find_if(state.members.begin(), state.members.end(),
                          [&](const State::Member& m) { return m.client == &client; });
    };
    if (find() == state.members.end()) return;
    find()->leaving = true;
    while (find()->inside > 0) state.worker_left.wait(state.mutex);
    state.members.erase(find());
    ++state.wakes;  // positions have changed, so a thread that iterates over them starts again
    state.want();
    const auto too_many = [&]() REQUIRES_LOCK(state.mutex) {
      return state.threads.size() > std::max(state.wanted, state.inside);
    };
    if (too_many()) state.work_arrived.notify_all();
    while (too_many()) state.worker_left.wait(state.mutex);
    ended.swap(state.ended);
  }
  for (std::thread& thread : ended) thread.join();
}

void Helpers::wake_for(size_t workers) {
  if (most_ <= 0 || workers < 2) return;
  if (is_member_) {
    return ThreadPool::workers().wake(int(std::min(workers - 1, size_t(most_))));
  }
  try {
    ThreadPool::workers().add(client_);
    is_member_ = true;
  } catch (const Exception&) {
    most_ = 0;  // the caller does it alone
  }
}

void ThreadPool::wake(int workers) {
  if (forked_from_running_engine()) return;
  MutexLock lock(state_->mutex);
  state_->wake(static_cast<size_t>(std::max(0, workers)));
}

size_t ThreadPool::threads() const {
  MutexLock lock(state_->mutex);
  return state_->threads.size();
}

size_t ThreadPool::asleep() const {
  MutexLock lock(state_->mutex);
  return state_->asleep;
}

void ThreadPool::shutdown() {
  std::list<std::thread> threads;
  {
    MutexLock lock(state_->mutex);
    ++state_->shutdowns;
    state_->work_arrived.notify_all();
    threads.swap(state_->threads);
    threads.splice(threads.end(), state_->ended);
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace headrace
