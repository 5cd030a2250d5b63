// SPDX-License-Identifier: Apache-2.0
// For tests: writes tar archives according to POSIX.1-2001 (ustar Interchange Format).
#pragma once

#include <cstdio>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

namespace headrace {

inline void set_tar_checksum(std::string& header) {
  std::memset(header.data() + 148, ' ', 8);
  unsigned sum = 0;
  for (const char c : header) sum += static_cast<unsigned char>(c);
  std::snprintf(header.data() + 148, 8, "%06o", sum);
}

inline std::string tar_header(const std::string& name, size_t bytes, char type = '0') {
  std::string header(512, '\0');
  name.copy(header.data(), 100);
  std::snprintf(header.data() + 100, 8, "%07o", 0644);
  std::snprintf(header.data() + 124, 12, "%011zo", bytes);
  header[156] = type;
  std::memcpy(header.data() + 257,
              "ustar\0"
              "00",
              8);
  set_tar_checksum(header);
  return header;
}

inline std::string tar_member(const std::string& name, std::string data, char type = '0') {
  std::string out = tar_header(name, data.size(), type);
  data.resize((data.size() + 511) / 512 * 512);
  return out + data;
}

inline std::string tar_end() { return std::string(1024, '\0'); }

inline std::string tar_of(const std::vector<std::pair<std::string, std::string>>& members) {
  std::string out;
  for (const auto& [name, data] : members) out += tar_member(name, data);
  return out + tar_end();
}

inline std::string pax_record(const std::string& key, const std::string& value) {
  size_t length = key.size() + value.size() + 3;
  std::string digits = std::to_string(length + 1);
  while (digits.size() + key.size() + value.size() + 3 != std::stoul(digits)) {
    digits = std::to_string(digits.size() + key.size() + value.size() + 3);
  }
  return digits + " " + key + "=" + value + "\n";
}

}  // namespace headrace
