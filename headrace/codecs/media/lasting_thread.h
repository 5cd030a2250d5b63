// SPDX-License-Identifier: Apache-2.0
// A thread that lives as long as this process, for children that end with the thread that started
// them: the system kills a media process when the *thread* that started it ends, and the threads
// that need one come and go with their loaders. It is begun at first need. Any thread may call.
#pragma once

#include <functional>

namespace headrace {

// Runs `work` there, and returns when it is done. Throws std::system_error where the system gives
// no thread. REQUIRES: nobody else calls it meanwhile; `work` throws nothing.
void run_on_lasting_thread(const std::function<void()>& work);

// In a process that has just been forked: its thread stayed behind in the other one.
void forget_lasting_thread();

}  // namespace headrace
