// SPDX-License-Identifier: Apache-2.0
// The control groups of this process: its own and all ancestors, each of which may limit it.
//
// In a container, the mounted root is usually the process's own group, although /proc/self/cgroup
// names the path outside of the container; then only the mount's root exists.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace headrace {

// Folders of the groups, this process's own first. `controller` ("memory" or "cpu") is for version
// 1. `root` is prepended to /sys/fs/cgroup and /proc/self/cgroup, for tests.
struct CgroupFolders {
  std::vector<std::string> v2, v1;
};
CgroupFolders cgroup_folders(std::string_view controller, const std::string& root = "");

// The number that a file begins with; empty if there is none ("max") or the file is missing.
std::optional<double> leading_number(const std::string& path);

}  // namespace headrace
