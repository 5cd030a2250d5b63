// SPDX-License-Identifier: Apache-2.0
// The name of a signal. glibc's own function for it is newer than the systems that wheels run on.
// Any thread may call it.
#pragma once

#include <string>

namespace headrace {

// "SIGSEGV"; "signal 64" of those without a name, as the real-time ones are.
std::string signal_name(int signal);

}  // namespace headrace
