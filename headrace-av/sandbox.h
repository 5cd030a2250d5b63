// SPDX-License-Identifier: Apache-2.0
// What the process may no longer do once it has met a file: open anything, start anything, speak
// to anybody but the engine. No privilege is needed for it.
#pragma once

namespace headrace::media {

// False where the system does not allow it. From then on a call of the system that is not in the
// list fails with EPERM.
bool confine();

}  // namespace headrace::media
