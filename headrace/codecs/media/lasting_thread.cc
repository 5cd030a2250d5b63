// SPDX-License-Identifier: Apache-2.0
#include "headrace/codecs/media/lasting_thread.h"

#include <thread>

#include "headrace/base/mutex.h"
#include "headrace/base/signals.h"

namespace headrace {
namespace {

struct LastingThread {
  Mutex mutex;
  Condition changed;
  const std::function<void()>* work GUARDED_BY(mutex) = nullptr;

  LastingThread() {
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
