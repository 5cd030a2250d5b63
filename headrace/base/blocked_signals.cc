// SPDX-License-Identifier: Apache-2.0
#include "headrace/base/blocked_signals.h"

#include <pthread.h>

#include <optional>

namespace headrace {
namespace {

thread_local std::optional<sigset_t> starter_signal_mask;

}  // namespace

BlockedSignals::BlockedSignals() {
  sigset_t blocked;
  sigfillset(&blocked);
  for (const int kept : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGABRT, SIGPROF}) {
    sigdelset(&blocked, kept);
  }
  pthread_sigmask(SIG_BLOCK, &blocked, &before_);
}

BlockedSignals::~BlockedSignals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

void set_starter_signal_mask(const sigset_t& blocked) { starter_signal_mask = blocked; }

StarterSignalMask::StarterSignalMask() {
  if (starter_signal_mask) pthread_sigmask(SIG_SETMASK, &*starter_signal_mask, &before_);
}

StarterSignalMask::~StarterSignalMask() {
  if (starter_signal_mask) pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

}  // namespace headrace
