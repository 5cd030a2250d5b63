// SPDX-License-Identifier: Apache-2.0
#include "headrace/codecs/media/lasting_thread.h"

#include <pthread.h>

#include <csignal>
#include <thread>

#include "headrace/base/mutex.h"

namespace headrace {
namespace {

struct LastingThread {
  Mutex mutex;
  Condition changed;
  const std::function<void()>* work GUARDED_BY(mutex) = nullptr;

  LastingThread() {
    sigset_t all, before;
    sigfillset(&all);  // signals are for the program's own threads
    pthread_sigmask(SIG_SETMASK, &all, &before);
    try {
      std::thread([this] { run(); }).detach();
    } catch (...) {
      pthread_sigmask(SIG_SETMASK, &before, nullptr);
      throw;
    }
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
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

// Never destroyed: its thread is there until the process ends.
LastingThread* lasting_thread = nullptr;

}  // namespace

void run_on_lasting_thread(const std::function<void()>& work) {
  if (!lasting_thread) lasting_thread = new LastingThread;
  MutexLock lock(lasting_thread->mutex);
  lasting_thread->work = &work;
  lasting_thread->changed.notify_all();
  while (lasting_thread->work) lasting_thread->changed.wait(lasting_thread->mutex);
}

void forget_lasting_thread() { lasting_thread = nullptr; }

}  // namespace headrace
