// SPDX-License-Identifier: Apache-2.0
// The layout of a video (or another file with tables) in a pack: the file, then the index of its
// tables (MediaRecord::index; for videos, that of codecs/video/video_index.h), and at the end the
// index's size in bytes, a u32, 0 if there is no index. So the file's container need not be parsed
// again.
#pragma once

#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <vector>

#include "headrace/fields/kind.h"
#include "headrace/fields/media.h"

namespace headrace {

// Whether a field's values have this format in packs with kVideoIndexes.
inline bool is_indexed_video(const Field& field) {
  const MediaRecord* const media = field.encoded ? media_of(field.kind) : nullptr;
  return media && media->index;
}

struct IndexedVideo {
  std::span<const uint8_t> file, index;
};

// Empty if the bytes do not have this format.
inline std::optional<IndexedVideo> indexed_video_from(std::span<const uint8_t> stored) {
  uint32_t bytes = 0;
  if (stored.size() < sizeof bytes) return std::nullopt;
  std::memcpy(&bytes, stored.data() + stored.size() - sizeof bytes, sizeof bytes);
  const auto rest = stored.first(stored.size() - sizeof bytes);
  if (bytes > rest.size()) return std::nullopt;
  return IndexedVideo{.file = rest.first(rest.size() - bytes), .index = rest.last(bytes)};
}

inline void append_video_index(std::span<const uint8_t> index, std::vector<uint8_t>& file) {
  const auto bytes = static_cast<uint32_t>(index.size());
  const auto* const raw = reinterpret_cast<const uint8_t*>(&bytes);
  file.insert(file.end(), index.begin(), index.end());
  file.insert(file.end(), raw, raw + sizeof bytes);
}

}  // namespace headrace
