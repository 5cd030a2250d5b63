// SPDX-License-Identifier: Apache-2.0
// Arguments and results of calls into a plug-in: a record with its draws, the values of parameters,
// an error message. Each object is for one call, on its thread.
#pragma once

#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include "headrace/ops/op.h"
#include "headrace/plugin.h"

// The random draws of a plug-in, which only knows the type's name.
struct headrace_draws {
  headrace::Draws draws;
  bool allowed, misused;  // allowed: HEADRACE_RANDOM is set; misused: drawn without
};

namespace headrace {

// A record as a plug-in sees it, with draws from the beginning of its sequence.
class PluginRecord {
 public:
  PluginRecord(const Record& record, const Draws& draws, bool random);
  PluginRecord(const PluginRecord&) = delete;
  PluginRecord& operator=(const PluginRecord&) = delete;
  const headrace_record* get() const { return &record_; }
  bool misused() const { return draws_.misused; }

 private:
  headrace_draws draws_;
  headrace_record record_{};
};

// Receives a plug-in's error message.
class PluginMessage {
 public:
  PluginMessage() { text_[0] = 0; }
  PluginMessage(const PluginMessage&) = delete;
  PluginMessage& operator=(const PluginMessage&) = delete;
  headrace_error* get() { return &error_; }
  // Calls the plug-in; an exception that it throws is a failure, and threw() is then true.
  template <class Call>
  int32_t status_of(const Call& call) {
    try {
      return call();
    } catch (const std::exception& thrown) {
      std::snprintf(text_, sizeof text_, "%s", thrown.what());
    } catch (...) {
      text_[0] = 0;
    }
    threw_ = true;
    return HEADRACE_FAILED;
  }
  bool threw() const { return threw_; }
  // The message as valid UTF-8, regardless of what the plug-in wrote.
  std::string text() const;

 private:
  bool threw_ = false;
  static constexpr size_t kMax = 1024;
  char text_[kMax];
  headrace_error error_{sizeof(headrace_error), kMax, text_};
};

// What a plug-in's call into the engine returns. No exception may cross the plug-in's frames:
// `thrown` holds it until the plug-in has returned.
template <class Returned, class Call>
Returned call_from_plugin(std::exception_ptr& thrown, Returned failed, const Call& call) noexcept {
  try {
    return call();
  } catch (...) {
    thrown = std::current_exception();
    return failed;
  }
}

// The values in the order of `params`. They point to texts and lists of `arguments`.
std::vector<headrace_value> values_of(const std::vector<Param>& params, const Arguments& arguments);

}  // namespace headrace
