// SPDX-License-Identifier: Apache-2.0
#include "headrace/base/signals.h"

#include <pthread.h>

#include <csignal>
#include <optional>
#include <string_view>

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

namespace {

struct Name {
  int signal;
  std::string_view text;
};

constexpr Name kNames[] = {
    {SIGHUP, "SIGHUP"},   {SIGINT, "SIGINT"},       {SIGQUIT, "SIGQUIT"}, {SIGILL, "SIGILL"},
    {SIGTRAP, "SIGTRAP"}, {SIGABRT, "SIGABRT"},     {SIGBUS, "SIGBUS"},   {SIGFPE, "SIGFPE"},
    {SIGKILL, "SIGKILL"}, {SIGUSR1, "SIGUSR1"},     {SIGSEGV, "SIGSEGV"}, {SIGUSR2, "SIGUSR2"},
    {SIGPIPE, "SIGPIPE"}, {SIGALRM, "SIGALRM"},     {SIGTERM, "SIGTERM"}, {SIGSTKFLT, "SIGSTKFLT"},
    {SIGCHLD, "SIGCHLD"}, {SIGCONT, "SIGCONT"},     {SIGSTOP, "SIGSTOP"}, {SIGTSTP, "SIGTSTP"},
    {SIGTTIN, "SIGTTIN"}, {SIGTTOU, "SIGTTOU"},     {SIGURG, "SIGURG"},   {SIGXCPU, "SIGXCPU"},
    {SIGXFSZ, "SIGXFSZ"}, {SIGVTALRM, "SIGVTALRM"}, {SIGPROF, "SIGPROF"}, {SIGWINCH, "SIGWINCH"},
    {SIGPOLL, "SIGPOLL"}, {SIGPWR, "SIGPWR"},       {SIGSYS, "SIGSYS"},
};

}  // namespace

std::string signal_name(int signal) {
  for (const Name& name : kNames) {
    if (name.signal == signal) return std::string(name.text);
  }
  return "signal " + std::to_string(signal);
}

}  // namespace headrace
