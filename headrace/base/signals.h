// SPDX-License-Identifier: Apache-2.0
// Signal masks of the engine's threads, and the names of signals.
//
// The engine's threads block signals, so that the program's threads receive them. Python's main
// thread does not notice a Ctrl-C that another thread has received until it next waits for the
// interpreter's lock (GIL), and a thread that is just starting may receive it.
#pragma once

#include <signal.h>

#include <string>

namespace headrace {

// Blocks signals in the calling thread until destroyed, and permanently in threads that it starts
// meanwhile. Signals that report a fault of the thread itself (SIGSEGV, SIGFPE, ...) and SIGPROF
// stay unblocked.
class BlockedSignals {
 public:
  BlockedSignals();
  ~BlockedSignals();
  BlockedSignals(const BlockedSignals&) = delete;
  BlockedSignals& operator=(const BlockedSignals&) = delete;
  const sigset_t& before() const { return before_; }

 private:
  sigset_t before_;
};

// For a thread that may run code of the program: stores the signal mask of the thread that started
// it, for StarterSignalMask.
void set_starter_signal_mask(const sigset_t& blocked);

// Restores that mask while a thread runs code of the program, which may start processes: they
// inherit it. No effect in threads that have not called set_starter_signal_mask().
class StarterSignalMask {
 public:
  StarterSignalMask();
  ~StarterSignalMask();
  StarterSignalMask(const StarterSignalMask&) = delete;
  StarterSignalMask& operator=(const StarterSignalMask&) = delete;

 private:
  sigset_t before_;
};

// "SIGSEGV"; "signal 64" for signals without a name, such as real-time signals. glibc's function
// for it (sigabbrev_np) is newer than the oldest systems that our wheels support. Any thread may
// call it.
std::string signal_name(int signal);

}  // namespace headrace
