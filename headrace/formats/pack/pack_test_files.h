// SPDX-License-Identifier: Apache-2.0
// For tests of packs: small datasets, and files as strings.
#pragma once

#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <span>
#include <string>

#include "headrace/base/random.h"
#include "headrace/storage/temporary_folder.h"

namespace headrace {

inline std::string text_of(std::span<const uint8_t> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

inline std::string content_of(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// Path below the root -> content; for a single file, the path is empty.
inline std::map<std::string, std::string> files_below(const std::filesystem::path& path) {
  if (std::filesystem::is_regular_file(path)) return {{"", content_of(path)}};
  std::map<std::string, std::string> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(path)) {
    if (entry.is_regular_file()) {
      files[entry.path().lexically_relative(path).string()] = content_of(entry.path());
    }
  }
  return files;
}

// Writes files that begin like JPEGs, followed by 0 to 3,000 arbitrary bytes, in the classes ant,
// bee and cow.
inline void write_pictures(const TemporaryFolder& place, const std::string& folder, int count) {
  constexpr const char* kClasses[] = {"ant", "bee", "cow"};
  for (int i = 0; i < count; ++i) {
    uint64_t state = mix64(static_cast<uint64_t>(i), 1);
    std::string bytes = "\xFF\xD8\xFF";
    bytes.resize(3 + state % 3000);
    for (size_t k = 3; k < bytes.size(); ++k) {
      state = mix64(state, k);
      bytes[k] = static_cast<char>(state);
    }
    place.write(folder + "/" + kClasses[i % 3] + "/" + std::to_string(i) + ".jpg", bytes);
  }
}

}  // namespace headrace
