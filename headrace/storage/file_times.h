// SPDX-License-Identifier: Apache-2.0
// Times of files, for what is kept about them between runs.
#pragma once

#include <cstdint>
#include <string>

struct stat;

namespace headrace {

// Nanoseconds since 1970.
int64_t now_ns();
// When the content changed last; wraps for times that 64 bits cannot hold.
int64_t changed_ns(const struct stat& status);
// When anything about the file changed last, which nobody can set: a file that was written in
// place, and given its old time again, shows by it. 0 where the path cannot be looked at.
int64_t status_changed_ns(const std::string& path);

// Whether what was seen of a file or folder that changed then may not be kept, as it was looked at
// too soon after; see Note [What changed just now].
bool changed_just_now(int64_t changed_ns, int64_t looked_at_ns);

}  // namespace headrace
