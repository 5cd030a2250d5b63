// SPDX-License-Identifier: Apache-2.0
#include "headrace/base/cgroup.h"

#include <sys/stat.h>

#include <algorithm>
#include <fstream>

namespace headrace {
namespace {

// The group and those above it, as far as visible here, and the mount's root.
std::vector<std::string> folders_of(const std::string& mount, std::string path) {
  std::vector<std::string> folders;
  struct stat found{};
  while (path.size() > 1) {
    if (stat((mount + path).c_str(), &found) == 0) folders.push_back(mount + path);
    path.resize(path.rfind('/'));
  }
  folders.push_back(mount);
  return folders;
}

// Whether a list such as "cpu,cpuacct" contains the name.
bool names(std::string_view list, std::string_view controller) {
  while (!list.empty()) {
    const size_t end = std::min(list.find(','), list.size());
    if (list.substr(0, end) == controller) return true;
    list.remove_prefix(std::min(end + 1, list.size()));
  }
  return false;
}

}  // namespace

CgroupFolders cgroup_folders(std::string_view controller, const std::string& root) {
  const std::string mount = root + "/sys/fs/cgroup";
  std::string v2_path, v1_path;
  std::ifstream file(root + "/proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {  // "0::/a/b", "4:cpu,cpuacct:/a/b"
    const size_t first = line.find(':'), second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string_view list = std::string_view(line).substr(first + 1, second - first - 1);
    const std::string path = line.substr(second + 1);
    if (path.empty() || path.front() != '/' || path.find("..") != std::string::npos) continue;
    if (list.empty()) v2_path = path;
    if (names(list, controller)) v1_path = path;
  }
  return {folders_of(mount, v2_path), folders_of(mount + "/" + std::string(controller), v1_path)};
}

std::optional<double> leading_number(const std::string& path) {
  std::ifstream file(path);
  double value = 0;
  if (file >> value) return value;
  return std::nullopt;
}

}  // namespace headrace
