// SPDX-License-Identifier: Apache-2.0
// A thread that lives as long as this process, to start child processes that must not end earlier:
// the kernel kills a media process when the *thread* that started it ends, and the threads that
// need one come and go with their loaders. It is started on first use. Any thread may call.
#pragma once

#include <functional>

namespace headrace {

// Runs `work` on the persistent thread, and returns when it is done. Throws std::system_error if no
// thread can be created. REQUIRES: no concurrent calls; `work` does not throw.
void run_on_lasting_thread(const std::function<void()>& work);

// Must be called in a process that has just been forked, because the thread only exists in its
// parent.
void forget_lasting_thread();

}  // namespace headrace
