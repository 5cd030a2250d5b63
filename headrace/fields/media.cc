// SPDX-License-Identifier: Apache-2.0
#include "headrace/fields/media.h"

#include <map>

#include "headrace/base/text.h"
#include "headrace/codecs/run_time_library.h"
#include "headrace/fields/kind.h"

namespace headrace {
namespace {

constexpr size_t kLongestSuffix = 8;

std::string suffix_in(std::string_view path) {
  const std::string_view name = without_query(path);
  const size_t dot = name.rfind('.');
  if (dot == std::string_view::npos || name.size() - dot > kLongestSuffix) return {};
  return lower_case(name.substr(dot));
}

using BySuffix = std::map<std::string_view, std::vector<const MediaRecord*>, std::less<>>;

const BySuffix& by_suffix() {
  static FromRegistries<BySuffix> table;
  return table.get([] {
    BySuffix out;
    for (const MediaRecord* media : all_media()) {
      for (const std::string_view suffix : suffixes_of(*media)) out[suffix].push_back(media);
    }
    return out;
  });
}

}  // namespace

const std::vector<const MediaRecord*>& all_media() {
  static const std::vector<const MediaRecord*> all = [] {
    std::vector<const MediaRecord*> out = Registry<MediaRecord>::all();
    std::ranges::stable_sort(out, {}, &MediaRecord::order);
    return out;
  }();
  return all;
}

const MediaRecord* media_named(std::string_view name) { return Registry<MediaRecord>::find(name); }

const MediaRecord* media_of(FieldKind kind) {
  const KindRecord* const record = find_kind(kind);
  return record ? media_named(record->media) : nullptr;
}

std::span<const MediaRecord* const> media_by_suffix(std::string_view name) {
  const BySuffix& table = by_suffix();
  const auto found = table.find(std::string_view(suffix_in(name)));
  if (found == table.end()) return {};
  return found->second;
}

bool has_suffix_of(FieldKind kind, std::string_view name) {
  return std::ranges::any_of(media_by_suffix(name),
                             [&](const MediaRecord* media) { return media->kind == kind; });
}

const MediaRecord* media_that_begins(std::span<const uint8_t> first_bytes) {
  const auto found = std::ranges::find_if(
      all_media(), [&](const MediaRecord* media) { return media->begins(first_bytes); });
  return found == all_media().end() ? nullptr : *found;
}

std::string suffix_for(const MediaRecord& media, std::span<const uint8_t> first_bytes) {
  const std::string_view name = media.format_of(first_bytes);
  for (const MediaFormat& format : media.formats()) {
    if (format.name == name && !format.suffixes.empty()) return std::string(format.suffixes[0]);
  }
  return {};
}

std::vector<std::string_view> suffixes_of(const MediaRecord& media) {
  std::vector<std::string_view> all = media.more_suffixes;
  for (const MediaFormat& format : media.formats()) {
    all.insert(all.end(), format.suffixes.begin(), format.suffixes.end());
  }
  std::ranges::sort(all);
  all.erase(std::ranges::unique(all).begin(), all.end());
  return all;
}

std::string nouns_of_media(std::string_view before_last, std::string_view plural, size_t first) {
  std::string out;
  for (size_t i = first; i < all_media().size(); ++i) {
    const bool last = i + 1 == all_media().size();
    if (i > first) out += last ? " " + std::string(before_last) + " " : ", ";
    out.append(all_media()[i]->noun).append(plural);
  }
  return out;
}

std::string unread_suffix(std::string_view name) {
  std::string suffix = suffix_in(name);
  return missing_package(suffix).empty() ? std::string() : suffix;
}

std::string missing_package(std::string_view suffix) {
  for (const MediaRecord* media : media_by_suffix(suffix)) {
    for (const MediaFormat& format : media->formats()) {
      if (!format.library || std::ranges::find(format.suffixes, suffix) == format.suffixes.end()) {
        continue;
      }
      return format.library().is_open() ? "" : format.library().package();
    }
  }
  return {};
}

}  // namespace headrace
