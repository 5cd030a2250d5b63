// SPDX-License-Identifier: Apache-2.0
#include "bindings/held_gil.h"

#include <Python.h>
#include <dlfcn.h>

namespace headrace::python {
namespace {

// A function of the interpreter that is not in its limited API; null if this one does not have it.
template <class Function>
Function* of_interpreter(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_DEFAULT, name));
}

}  // namespace

bool holds_gil() {
  static auto* const is_held = of_interpreter<int()>("PyGILState_Check");
  static auto* const state = [] {
    auto* const before_3_13 = of_interpreter<PyThreadState*()>("_PyThreadState_UncheckedGet");
    return before_3_13 ? before_3_13
                       : of_interpreter<PyThreadState*()>("PyThreadState_GetUnchecked");
  }();
  // The first alone says yes when the interpreter has ended.
  return state && state() != nullptr && is_held && is_held() != 0;
}

}  // namespace headrace::python
