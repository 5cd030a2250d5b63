// SPDX-License-Identifier: Apache-2.0
#include "headrace/base/blocked_signals.h"

#include <pthread.h>

#include <optional>

namespace headrace {
namespace {

thread_local std::optional<sigset_t> signals_of_starter;

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

void keep_signals_of_starter(const sigset_t& blocked) { signals_of_starter = blocked; }

SignalsOfStarter::SignalsOfStarter() {
  if (signals_of_starter) pthread_sigmask(SIG_SETMASK, &*signals_of_starter, &before_);
}

SignalsOfStarter::~SignalsOfStarter() {
  if (signals_of_starter) pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

}  // namespace headrace
