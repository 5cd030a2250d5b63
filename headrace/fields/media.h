// SPDX-License-Identifier: Apache-2.0
// Media: kinds of files that are decoded (images, audio, video), as data. The kind's file in this
// folder registers a MediaRecord, its codecs or containers register themselves, and code that lists
// files, reads tables, writes packs or describes a build uses the records and never names a kind.
//
// Any thread may call what a record points to; the renderer is the caller's.
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
  std::string_view oracle;                 // empty of containers
  std::vector<std::string_view> suffixes;  // ".jpg", lower case; the first one names new files
  const RunTimeLibrary& (*library)() = nullptr;
};

struct MediaRecord {
  // Name of the kind of field, and of the field itself where a record has one such file: "image".
  std::string_view name;
  FieldKind kind;
  std::string_view noun;  // in messages: "image"; several have an s
  // A folder's records are the kind of files that comes first in this order, in which lists are
  // also sorted.
  int order;
  // The formats to convert to where the library of a file is missing: "PNG or JPEG".
  std::string_view without_library;
  // Suffixes, the surest first: of several files of one record it is the image, audio or video.
  std::vector<std::string_view> usual = {};
  // Suffixes of files that are meant although no codec of the build has them.
  std::vector<std::string_view> more_suffixes = {};
  // Whether a file in a folder is one by its first bytes, where its suffix says nothing.
  bool by_content = false;

  const std::vector<MediaFormat>& (*formats)();
  // By a file's first kMediaSignature bytes: the name of the format that reads it; empty: none.
  std::string_view (*format_of)(std::span<const uint8_t> first_bytes);
  // Whether it is this before anything else: a video with sound is no audio, an animation an image.
  bool (*begins)(std::span<const uint8_t> first_bytes);
  // An error where nothing can come out of the file, as far as its header tells.
  Result<void> (*check)(const ByteRanges& file, Renderer& renderer);
  // Data that caches and packs keep of a file so that its tables need not be read again; may be
  // empty. Null: its files have no such tables.
  Result<std::vector<uint8_t>> (*index)(const ByteRanges& file) = nullptr;
};

// How many first bytes of a file say what it is.
inline constexpr size_t kMediaSignature = 64;

// All, by their order.
const std::vector<const MediaRecord*>& all_media();
// The media of a kind's encoded values; null if it has none.
const MediaRecord* media_of(FieldKind kind);
const MediaRecord* media_named(std::string_view name);
// The media of files with this suffix, in upper or lower case: in order, and mostly one.
std::span<const MediaRecord* const> media_by_suffix(std::string_view name);
// The media of a file with these first bytes; null if unknown.
const MediaRecord* media_that_begins(std::span<const uint8_t> first_bytes);
// The suffix for a file of these bytes, ".jpg"; empty where no format reads them.
std::string suffix_for(const MediaRecord& media, std::span<const uint8_t> first_bytes);
// All suffixes, sorted.
std::vector<std::string_view> suffixes_of(const MediaRecord& media);
// "picture, sound or video", "pictures, sounds and videos", from this one of the order on.
std::string nouns_of_media(std::string_view before_last, std::string_view plural = {},
                           size_t first = 0);

inline bool has_media_suffix(std::string_view name) { return !media_by_suffix(name).empty(); }
bool has_suffix_of(FieldKind kind, std::string_view name);
inline bool has_picture_suffix(std::string_view name) {
  return has_suffix_of(FieldKind::kImage, name);
}

// ".webp" of "cat.WebP", where the library that decodes such files is missing; else empty. What is
// inside may be something else.
std::string unread_suffix(std::string_view name);
// Debian's package of that library, by the suffix; empty where none is missing.
std::string missing_package(std::string_view suffix);

// MediaRecord::formats of codecs or containers that register records of this type.
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
