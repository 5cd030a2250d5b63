// SPDX-License-Identifier: Apache-2.0
#include "headrace/base/signals.h"

#include <gtest/gtest.h>

#include <csignal>
#include <cstring>

namespace headrace {
namespace {

TEST(SignalName, EqualsTheCLibrarysName) {
#if defined(__GLIBC__) && __GLIBC_PREREQ(2, 32)
  for (int signal = 1; signal < SIGRTMIN; ++signal) {
    if (const char* const known = sigabbrev_np(signal)) {
      EXPECT_EQ(signal_name(signal), std::string("SIG") + known);
    }
  }
#else
  GTEST_SKIP() << "this C library has no function for it";
#endif
}

TEST(SignalName, IsTheNumberIfTheSignalHasNoName) {
  EXPECT_EQ(signal_name(64), "signal 64");
  EXPECT_EQ(signal_name(-1), "signal -1");
}

}  // namespace
}  // namespace headrace
