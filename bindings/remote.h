// SPDX-License-Identifier: Apache-2.0
// The provider of credentials for remote storages: see remote.cc.
#pragma once

namespace headrace::python {

// Asks Python no more, and waits for the calls that have begun. REQUIRES: not the GIL.
void close_key_provider();

}  // namespace headrace::python
