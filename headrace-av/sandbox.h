// SPDX-License-Identifier: Apache-2.0
// Locks the process down once it has met a file: it can open nothing, start nothing, and speak
// only to the engine. Needs no privilege.
#pragma once

namespace headrace::media {

// False where the system does not allow it. From then on a call of the system that is not in the
// list fails with EPERM.
bool confine();

}  // namespace headrace::media
