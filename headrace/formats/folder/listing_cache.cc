// SPDX-License-Identifier: Apache-2.0
#include "headrace/formats/folder/listing_cache.h"

#include <algorithm>
#include <cstring>

#include "headrace/base/byte_stream.h"
#include "headrace/base/number_text.h"
#include "headrace/base/text.h"
#include "headrace/sources/fingerprint.h"
#include "headrace/storage/file_times.h"

// The file format; all numbers are little-endian:
//   8 bytes    "HRLISTNG"
//   u64        version
//   u64        checksum of all that follows
//   u64        rules_of(what is listed) of the program that wrote it
//   text       the root (text: u64 length, bytes)
//   u64        others;  u64 left out
//   u64        folders;  u64 names
//   folders x  u64 inode, i64 changed_ns, i64 status_changed_ns, u64 count
//   names      of the folders' paths, of the pictures (each list: u32 lengths, then all bytes)
//   u64        files named after a record;  text the first;  u64 masks;  text the first
//   u64        tables;  names of them

namespace headrace {
namespace {

constexpr std::string_view kListingMagic = "HRLISTNG";
constexpr uint64_t kListingVersion = 4;
constexpr size_t kListingChecksumEnd = 24;
constexpr size_t kLongestListedPath = 4096;

void write_names(const NameList& list, ByteWriter& out) {
  for (int64_t i = 0; i < list.size(); ++i) out.number(static_cast<uint32_t>(list[i].size()));
  out.bytes(list.bytes());
}

// False if some are missing.
bool read_names(ByteReader& in, uint64_t count, NameList& out) {
  if (count > in.left() / sizeof(uint32_t)) return false;
  const std::span<const uint8_t> lengths = in.bytes(count * sizeof(uint32_t));
  uint64_t total = 0;
  for (ByteReader each(lengths); each.left() > 0;) total += each.number<uint32_t>();
  ByteReader all(in.bytes(total));
  if (!in.good()) return false;
  out.reserve(static_cast<int64_t>(count), total);
  for (ByteReader each(lengths); each.left() > 0;) out.add(all.text(each.number<uint32_t>()));
  return true;
}

void write_unread(const UnreadFiles& unread, ByteWriter& out) {
  out.number(unread.per_record);
  out.text(unread.first_per_record);
  out.number(unread.masks);
  out.text(unread.first_mask);
  out.number(static_cast<uint64_t>(unread.tables.size()));
  write_names(unread.tables, out);
}

// False if the counts are impossible.
bool read_unread(ByteReader& in, UnreadFiles& out) {
  out.per_record = in.number<int64_t>();
  out.first_per_record = in.text();
  out.masks = in.number<int64_t>();
  out.first_mask = in.text();
  const auto tables = in.number<uint64_t>();
  return in.good() && out.per_record >= 0 && out.masks >= 0 &&
         tables <= uint64_t{UnreadFiles::kMaxTables} && read_names(in, tables, out.tables);
}

uint64_t checksum(std::span<const uint8_t> bytes) {
  Fingerprint sum;
  sum.add(text_from_bytes(bytes));
  return sum.value();
}

// A possible result of the lister: a name inside its folder.
bool is_name(std::string_view name) {
  return !name.empty() && name.size() < kLongestListedPath && name.front() != '.' &&
         name.find('/') == std::string_view::npos && name.find('\0') == std::string_view::npos;
}

bool is_listed_path(std::string_view path) {
  if (path.size() >= kLongestListedPath) return false;
  for (;;) {
    const size_t slash = path.find('/');
    if (!is_name(path.substr(0, slash))) return false;
    if (slash == std::string_view::npos) return true;
    path.remove_prefix(slash + 1);
  }
}

bool is_plausible(const FolderListing& listing) {
  if (listing.folders.empty() || !listing.paths[0].empty()) return false;
  for (int64_t i = 1; i < listing.paths.size(); ++i) {
    if (!is_listed_path(listing.paths[i])) return false;
  }
  for (const ListedFolder& folder : listing.folders) {
    for (int64_t i = folder.first; i < folder.first + folder.count; ++i) {
      if (!is_name(listing.names[i])) return false;
      if (i > folder.first && listing.names[i - 1] >= listing.names[i]) return false;
    }
  }
  return true;
}

}  // namespace

std::string listing_cache_name(const std::string& root) {
  return "listing-" + hex_text(hash_name(root));
}

std::vector<uint8_t> bytes_from_listing(const FolderListing& listing, const std::string& root) {
  ByteWriter file;
  file.out.reserve(listing.names.bytes().size() + 4 * listing.names.size() +
                   listing.paths.bytes().size() + 36 * listing.folders.size() + 256 + root.size());
  file.bytes(kListingMagic);
  file.number(kListingVersion);
  file.number(uint64_t{0});
  file.number(rules_of(*listing.media));
  file.number(uint64_t{root.size()});
  file.bytes(root);
  file.number(listing.others);
  file.number(listing.left_out);
  file.number(static_cast<uint64_t>(listing.folders.size()));
  file.number(static_cast<uint64_t>(listing.names.size()));
  for (const ListedFolder& folder : listing.folders) {
    file.number(folder.inode);
    file.number(folder.changed_ns);
    file.number(folder.status_changed_ns);
    file.number(folder.count);
  }
  write_names(listing.paths, file);
  write_names(listing.names, file);
  write_unread(listing.unread, file);
  const uint64_t sum = checksum(std::span(file.out).subspan(kListingChecksumEnd));
  std::memcpy(file.out.data() + kListingChecksumEnd - sizeof sum, &sum, sizeof sum);
  return std::move(file.out);
}

std::optional<FolderListing> listing_from_bytes(std::span<const uint8_t> bytes,
                                                const std::string& root) {
  ByteReader file(bytes);
  if (file.text(kListingMagic.size()) != kListingMagic ||
      file.number<uint64_t>() != kListingVersion)
    return {};
  const auto sum = file.number<uint64_t>();
  if (!file.good() || sum != checksum(bytes.subspan(kListingChecksumEnd))) return {};
  FolderListing listing;
  const auto rules = file.number<uint64_t>();
  const auto found = std::ranges::find_if(
      all_media(), [&](const MediaRecord* media) { return rules == rules_of(*media); });
  if (found == all_media().end()) return {};
  listing.media = *found;
  if (file.text(file.number<uint64_t>()) != root) return {};
  listing.others = file.number<int64_t>();
  listing.left_out = file.number<int64_t>();
  if (listing.left_out < 0 || listing.left_out > listing.others) return {};
  const auto folders = file.number<uint64_t>(), names = file.number<uint64_t>();
  constexpr size_t kFolderBytes = 32;
  if (!file.good() || folders > file.left() / kFolderBytes || names > file.left()) return {};
  listing.folders.resize(folders);
  uint64_t next = 0;
  for (ListedFolder& folder : listing.folders) {
    folder.inode = file.number<uint64_t>();
    folder.changed_ns = file.number<int64_t>();
    folder.status_changed_ns = file.number<int64_t>();
    const auto count = file.number<uint64_t>();
    if (count > names - next) return {};
    folder.first = static_cast<int64_t>(next);
    folder.count = static_cast<int64_t>(count);
    next += count;
  }
  if (next != names || !read_names(file, folders, listing.paths) ||
      !read_names(file, names, listing.names) || !read_unread(file, listing.unread) ||
      !file.at_end() || !is_plausible(listing)) {
    return {};
  }
  return listing;
}

bool is_current(const FolderListing& listing, const std::string& root) {
  for (int64_t i = 0; i < listing.paths.size(); ++i) {
    const std::string path = joined(root, listing.paths[i]);
    const Result<PathStatus> status = storage_of(path).look_at(path);
    if (!status || status->kind != PathKind::kFolder ||
        status->identity.inode != listing.folders[i].inode ||
        status->identity.modified_ns != listing.folders[i].changed_ns ||
        status->status_changed_ns != listing.folders[i].status_changed_ns) {
      return false;
    }
  }
  return true;
}

std::optional<FolderListing> cached_listing(const CacheDirectory& cache, const std::string& root) {
  Buffer bytes;
  if (!cache.read(listing_cache_name(root), bytes)) return {};
  std::optional<FolderListing> listing = listing_from_bytes(bytes.bytes(), root);
  if (listing && !is_current(*listing, root)) listing.reset();
  return listing;
}

bool cache_listing(const CacheDirectory& cache, const std::string& root,
                   const FolderListing& listing, int64_t listed_ns) {
  for (const ListedFolder& folder : listing.folders) {
    if (changed_just_now(folder.changed_ns, listed_ns)) return false;
  }
  return cache.write(listing_cache_name(root), bytes_from_listing(listing, root));
}

}  // namespace headrace
