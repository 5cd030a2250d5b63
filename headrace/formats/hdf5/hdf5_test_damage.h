// SPDX-License-Identifier: Apache-2.0
// For tests: the two files of hdf5_test_files.h, and correction of their checksums after a change.
#pragma once

#include <cstring>
#include <span>
#include <stdexcept>
#include <string_view>
#include <vector>

#include "headrace/formats/hdf5/hdf5_checksum.h"
#include "headrace/formats/hdf5/hdf5_test_files.h"
#include "headrace/storage/inflate.h"

namespace headrace {

inline std::vector<uint8_t> hdf5_test_file(std::string_view packed) {
  Buffer out;
  const std::span<const uint8_t> in(reinterpret_cast<const uint8_t*>(packed.data()), packed.size());
  if (!inflate_bytes(in, DeflateWrap::kGzip, {}, out)) throw std::logic_error("damaged test file");
  return {out.data(), out.data() + out.size()};
}

// Finds structures with a checksum in an intact file: from each signature, the shortest range that
// is followed by its checksum.
struct Hdf5Checked {
  size_t begin, end;  // the checksum is at `end`
};
inline std::vector<Hdf5Checked> hdf5_checked_parts(std::span<const uint8_t> file) {
  constexpr size_t kLongest = 2048;
  std::vector<Hdf5Checked> parts;
  for (size_t at = 0; at + 8 < file.size(); ++at) {
    bool known = at == 0;
    for (const char* name : {"OHDR", "OCHK", "BTHD", "BTIN", "BTLF", "FRHP", "FHIB", "FAHD", "FADB",
                             "EAHD", "EAIB", "EASB", "EADB"}) {
      known = known || std::memcmp(file.data() + at, name, 4) == 0;
    }
    for (size_t end = at + 8; known && end + 4 <= file.size() && end < at + kLongest; ++end) {
      uint32_t stored = 0;
      std::memcpy(&stored, file.data() + end, sizeof stored);
      if (stored == 0 || hdf5_metadata_checksum(file.subspan(at, end - at)) != stored) continue;
      parts.push_back({at, end});
      break;
    }
  }
  return parts;
}

inline void correct_hdf5_checksums(const std::vector<Hdf5Checked>& parts, std::span<uint8_t> file) {
  for (const Hdf5Checked& part : parts) {
    if (part.end + 4 > file.size()) continue;
    const uint32_t sum = hdf5_metadata_checksum(file.subspan(part.begin, part.end - part.begin));
    std::memcpy(file.data() + part.end, &sum, sizeof sum);
  }
}

}  // namespace headrace
