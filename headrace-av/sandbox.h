// SPDX-License-Identifier: Apache-2.0
// Sandboxes the process before it receives a file's data: afterwards it can open nothing, start
// nothing, and communicate only with the engine. Needs no privilege.
#pragma once

namespace headrace::media {

// False if the system does not allow it. From then on, system calls that are not in the list fail
// with EPERM.
bool enter_sandbox();

}  // namespace headrace::media
