// SPDX-License-Identifier: Apache-2.0
// Blocks signals in the engine's threads: they are for the program's. Python's main thread does not
// notice a Ctrl-C that another thread has received until it next waits for the interpreter's lock,
// and a thread that is just starting may receive it.
#pragma once

#include <signal.h>

namespace headrace {

// Blocked in this thread while it exists, and for good in threads that it starts meanwhile. Not
// those that report a fault of the thread itself, nor a profiler's.
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

// For a thread that may run code of the program: what was blocked in the one that started it.
void keep_signals_of_starter(const sigset_t& blocked);

// While a thread runs code of the program, which may start processes: they inherit what is blocked.
// Without effect in threads that have kept nothing.
class SignalsOfStarter {
 public:
  SignalsOfStarter();
  ~SignalsOfStarter();
  SignalsOfStarter(const SignalsOfStarter&) = delete;
  SignalsOfStarter& operator=(const SignalsOfStarter&) = delete;

 private:
  sigset_t before_;
};

}  // namespace headrace
