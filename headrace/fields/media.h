// SPDX-License-Identifier: Apache-2.0
// Media kinds: kinds of files that are decoded (images, audio, video), as data. The kind's file in
// this folder registers a MediaRecord, and its codecs or containers register themselves. Code that
// lists files, reads tables, writes packs or describes a build uses these records and does not
// refer to a particular kind.
//
// Any thread may call the functions of a record; the caller owns the renderer.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "headrace/base/error.h"
#include "headrace/base/from_registries.h"
#include "headrace/fields/field.h"
#include "headrace/storage/byte_ranges.h"

namespace headrace {

class Renderer;        // image/render.h
class RunTimeLibrary;  // codecs/run_time_library.h

// A codec or a container.
struct MediaFormat {
  std::string_view name, doc;
  std::string_view oracle;                 // empty for containers
  std::vector<std::string_view> suffixes;  // ".jpg", lower case; the first one names new files
  const RunTimeLibrary& (*library)() = nullptr;
};

struct MediaRecord {
  // The name of the field kind, and of the field itself if a record is a single file of this kind:
  // "image".
  std::string_view name;
  FieldKind kind;
  std::string_view noun;  // in messages: "image"; the plural adds an s
  // Rank among media kinds: a folder is opened as the kind with the lowest rank that it contains,
  // and lists are sorted by it.
  int order;
  // The formats to convert to if the library for a file is missing: "PNG or JPEG".
  std::string_view without_library;
  // Suffixes in order of preference: determines which of several files of a record is the image,
  // audio or video.
  std::vector<std::string_view> usual = {};
  // Suffixes that count as this kind even if the build has no codec for them.
  std::vector<std::string_view> more_suffixes = {};
  // Whether files in a folder with an unknown suffix are recognized by their first bytes.
  bool by_content = false;

  const std::vector<MediaFormat>& (*formats)();
  // The name of the format that reads a file, from its first kMediaSignature bytes; empty: none.
  std::string_view (*format_of)(std::span<const uint8_t> first_bytes);
  // Whether a file is primarily of this kind: a video with audio is not audio, and an animation is
  // an image.
  bool (*begins)(std::span<const uint8_t> first_bytes);
  // Returns an error if the file cannot be decoded, judging by its header.
  Result<void> (*check)(const ByteRanges& file, Renderer& renderer);
  // Makes the index that caches and packs store for a file, so that its tables need not be read
  // again; may be empty. Null: the files have no such tables.
  Result<std::vector<uint8_t>> (*index)(const ByteRanges& file) = nullptr;
};

// The number of bytes at the start of a file by which its format is recognized.
inline constexpr size_t kMediaSignature = 64;

// All media kinds, sorted by `order`.
const std::vector<const MediaRecord*>& all_media();
// The media kind of a field kind's encoded values; null if it has none.
const MediaRecord* media_of(FieldKind kind);
const MediaRecord* media_named(std::string_view name);
// The media kinds of files with the suffix of this name, ignoring case: sorted by `order`, usually
// one.
std::span<const MediaRecord* const> media_by_suffix(std::string_view name);
// The media kind of a file with these first bytes; null if unknown.
const MediaRecord* media_that_begins(std::span<const uint8_t> first_bytes);
// The suffix for a file with these first bytes, ".jpg"; empty if no format reads it.
std::string suffix_for(const MediaRecord& media, std::span<const uint8_t> first_bytes);
// All suffixes, sorted.
std::vector<std::string_view> suffixes_of(const MediaRecord& media);
// All nouns as a list, without the `first` ones: with "or", "image, audio clip or video". `plural`:
// ending of each.
std::string nouns_of_media(std::string_view before_last, std::string_view plural = {},
                           size_t first = 0);

inline bool has_media_suffix(std::string_view name) { return !media_by_suffix(name).empty(); }
bool has_suffix_of(FieldKind kind, std::string_view name);
inline bool has_picture_suffix(std::string_view name) {
  return has_suffix_of(FieldKind::kImage, name);
}

// ".webp" for "cat.WebP", if the library that decodes such files is missing; else empty. The
// content may be of a different format.
std::string unread_suffix(std::string_view name);
// The Debian package of that library, by the suffix; empty if none is missing.
std::string missing_package(std::string_view suffix);

// MediaRecord::formats for codecs or containers that register records of this type.
template <class Record>
const std::vector<MediaFormat>& registered_formats() {
  static FromRegistries<std::vector<MediaFormat>> all;
  return all.get([] {
    std::vector<MediaFormat> out;
    for (const Record* record : Registry<Record>::all()) {
      MediaFormat format{.name = record->name, .doc = record->doc, .oracle = {}, .suffixes = {}};
      format.suffixes.assign(record->suffixes.begin(), record->suffixes.end());
      if constexpr (requires { record->oracle; }) format.oracle = record->oracle;
      if constexpr (requires { record->library; }) format.library = record->library;
      out.push_back(format);
    }
    return out;
  });
}

}  // namespace headrace
