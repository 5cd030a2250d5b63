// SPDX-License-Identifier: Apache-2.0
// The name of a signal. glibc's function for it (sigabbrev_np) is newer than the oldest systems
// that our wheels support. Any thread may call it.
#pragma once

#include <string>

namespace headrace {

// "SIGSEGV"; "signal 64" for signals without a name, such as real-time signals.
std::string signal_name(int signal);

}  // namespace headrace
