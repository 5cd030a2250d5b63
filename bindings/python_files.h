// SPDX-License-Identifier: Apache-2.0
// Files of filesystem objects in Python, as a storage: see python_files.cc.
#pragma once

namespace headrace::python {

// Begins no call any more, and waits for those that have begun. REQUIRES: not the GIL.
void close_python_files();

}  // namespace headrace::python
