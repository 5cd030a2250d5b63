// SPDX-License-Identifier: Apache-2.0
// Calls of a plug-in that is checked: hr.load_plugin(path, check=True).
//
// Note [Checked calls]
// A plug-in runs in this process, so it can do anything. Violations that are
// visible from outside are checked on request, at several times the cost. Each call is made twice:
// on a copy of the input that ends at an inaccessible page, and into outputs surrounded by a byte
// pattern, which are filled with ones before one call and with zeros before the other. This detects
// whether the input was changed or read beyond its end, whether the output was overrun or not fully
// written, and whether the result depends on anything but the input and the draws. During a call
// its thread records what it does, so that a fatal signal names transform and record
// (name_crashes()) before the previous handler is called.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>

namespace headrace {

// Makes the call twice, as described above; `call(input, output)` returns the plug-in's status.
// Fills `output` with the first result if the status is 0. `broken` receives what it did wrong, or
// "". `name`: for a crash, "transform Vignette of the plug-in mine, record 5". `written`: number of
// output bytes that the last call reports as filled; null: all.
int32_t checked_call(std::span<const uint8_t> input, std::span<uint8_t> output, size_t item_bytes,
                     const std::string& name,
                     const std::function<int32_t(const void* input, void* output)>& call,
                     std::string& broken, const uint64_t* written = nullptr);

// Records what this thread calls, as long as it lives, for the message of a crash. `name` must
// outlive it.
class RunningCall {
 public:
  explicit RunningCall(const std::string& name);
  ~RunningCall();
  RunningCall(const RunningCall&) = delete;
  RunningCall& operator=(const RunningCall&) = delete;

 private:
  const char* const before_;
};

// Installs the handler of SIGSEGV and similar signals, once. Callable from any thread.
void name_crashes();

}  // namespace headrace
