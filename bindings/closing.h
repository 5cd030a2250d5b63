// SPDX-License-Identifier: Apache-2.0
// Closing objects that wait for threads, without waiting forever.
//
// Note [Why loaders are closed by a thread of their own]: closing joins the engine's work, and a
// Python step or source may hang (a dead network file system, a deadlock in the user's code).
// Ctrl-C must end the process nevertheless, so the caller waits a while and then leaves the rest to
// the closer. After Ctrl-C, all of this takes well below a second.
#pragma once

#include <functional>

namespace headrace::python {

// Seconds, never 0, that closing waits for work that may never end; during interpreter exit after
// Ctrl-C, the time remaining. REQUIRES: the GIL.
double closing_patience();

// Runs `work` on a separate thread; true if it was done within `seconds` (0: no limit).
// `interrupted`, called every 50 ms while it waits, may throw. REQUIRES: the GIL is not held.
bool finish_within(double seconds, std::function<void()> work,
                   const std::function<void()>& interrupted = {});

}  // namespace headrace::python
