// SPDX-License-Identifier: Apache-2.0
// Times of files, for data kept about them between runs.
#pragma once

#include <cstdint>

struct stat;

namespace headrace {

// Nanoseconds since 1970.
int64_t now_ns();
// When the content last changed; wraps for times that 64 bits cannot hold.
int64_t changed_ns(const struct stat& status);
// When anything about the file last changed.
int64_t status_changed_ns(const struct stat& status);

// Whether facts about a file or folder that changed then must not be cached, since they were read
// too soon after; see Note [What changed just now].
bool changed_just_now(int64_t changed_ns, int64_t looked_at_ns);

}  // namespace headrace
