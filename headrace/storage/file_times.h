// SPDX-License-Identifier: Apache-2.0
// File times, for validating facts about files that are cached between runs.
#pragma once

#include <cstdint>

struct stat;

namespace headrace {

// Nanoseconds since 1970.
int64_t now_ns();
// When the content last changed (mtime); wraps around if 64 bits cannot hold it.
int64_t changed_ns(const struct stat& status);
// When anything about the file last changed (ctime).
int64_t status_changed_ns(const struct stat& status);

// Whether facts about a file or folder must not be cached, because they were read at
// `looked_at_ns`, too soon after the change at `changed_ns`; see Note [What changed just now].
bool changed_just_now(int64_t changed_ns, int64_t looked_at_ns);

}  // namespace headrace
