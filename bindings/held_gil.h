// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace headrace::python {

// Whether this thread holds the GIL, be it that the interpreter ends. Any thread may ask.
bool holds_gil();

}  // namespace headrace::python
