// SPDX-License-Identifier: Apache-2.0
#include "headrace/formats/arrays/zip_directory.h"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <climits>
#include <set>
#include <string_view>
#include <utility>

#include "headrace/base/byte_stream.h"
#include "headrace/storage/inflate.h"

namespace headrace {
namespace {

const ErrorCode kDamagedZip{
    "HR0426", ErrorKind::kData, "damaged zip archive",
    "The archive's directory does not match the file: it was truncated or changed, members overlap "
    "or share a name, or a checksum is wrong. Archives that are encrypted, split, or use a "
    "compression other than stored and deflate are not supported either. `unzip -t` checks it with "
    "another program; np.savez and np.savez_compressed write supported files."};

constexpr uint32_t kEndMark = 0x06054b50, kEnd64Mark = 0x06064b50, kLocator64Mark = 0x07064b50;
constexpr uint32_t kMemberMark = 0x02014b50, kLocalMark = 0x04034b50;
constexpr size_t kEndBytes = 22, kLocatorBytes = 20, kEnd64Bytes = 56, kLocalBytes = 30;
constexpr size_t kMaxComment = 65535;
constexpr size_t kPiece = size_t{64} << 10;  // bytes that are read to decompress a member's begin
constexpr uint64_t kMaxDirectory = uint64_t{256} << 20, kMaxMembers = 1'000'000;

Error damaged(const File& file, std::string what, uint64_t offset, std::string member = {}) {
  return {.code = &kDamagedZip,
          .what = std::move(what),
          .where = Where{.file = file.path(),
                         .member = std::move(member),
                         .offset = static_cast<int64_t>(offset)},
          .hint = "copy the archive again, or rewrite it"};
}

struct Directory {
  uint64_t offset = 0, bytes = 0, members = 0;
  uint64_t end = 0;  // where the records after it begin
};

// The end record comes last, except for a comment of unknown length.
Result<Directory> find_directory(const File& file) {
  const uint64_t size = file.size();
  const auto tail = static_cast<size_t>(std::min<uint64_t>(size, kEndBytes + kMaxComment));
  Buffer bytes(tail);
  if (Result<void> read = file.read(size - tail, {bytes.data(), tail}); !read) {
    return std::move(read.error());
  }
  for (size_t at = tail >= kEndBytes ? tail - kEndBytes + 1 : 0; at-- > 0;) {
    ByteReader in(bytes.bytes().subspan(at));
    if (in.number<uint32_t>() != kEndMark) continue;
    const auto disk = in.number<uint16_t>(), first_disk = in.number<uint16_t>();
    const auto here = in.number<uint16_t>(), members = in.number<uint16_t>();
    Directory out;
    out.bytes = in.number<uint32_t>();
    out.offset = in.number<uint32_t>();
    out.members = members;
    out.end = size - tail + at;
    if (in.number<uint16_t>() != in.left())
      continue;  // of a comment that contains the end
                 // record's signature
    const bool wide = members == UINT16_MAX || out.bytes == UINT32_MAX || out.offset == UINT32_MAX;
    if (!wide) {
      if (disk != 0 || first_disk != 0 || here != members) {
        return damaged(file, "it is one part of several", out.end);
      }
      return out;
    }
    if (out.end < kLocatorBytes + kEnd64Bytes) return damaged(file, "no zip64 record", out.end);
    std::array<uint8_t, kEnd64Bytes> record{};
    const uint64_t locator_at = out.end - kLocatorBytes;
    if (Result<void> read = file.read(locator_at, std::span(record).first(kLocatorBytes)); !read) {
      return std::move(read.error());
    }
    ByteReader locator(std::span<const uint8_t>(record).first(kLocatorBytes));
    const bool located = locator.number<uint32_t>() == kLocator64Mark;
    locator.number<uint32_t>();
    out.end = locator.number<uint64_t>();
    if (!located || out.end > locator_at || locator_at - out.end < kEnd64Bytes) {
      return damaged(file, "no zip64 record", locator_at);
    }
    if (Result<void> read = file.read(out.end, record); !read) return std::move(read.error());
    ByteReader wide_end(record);
    if (wide_end.number<uint32_t>() != kEnd64Mark) {
      return damaged(file, "no zip64 record", out.end);
    }
    wide_end.bytes(8 + 2 + 2 + 4 + 4 + 8);  // sizes, versions, disks, members on this disk
    out.members = wide_end.number<uint64_t>();
    out.bytes = wide_end.number<uint64_t>();
    out.offset = wide_end.number<uint64_t>();
    return out;
  }
  return damaged(file, "no end-of-central-directory record: the archive was truncated", size);
}

// Fields that do not fit into 32 bits are in an extra field, in this order.
bool take_wide_sizes(std::span<const uint8_t> extra, ZipMember& member, uint64_t& local) {
  const bool bytes = member.bytes == UINT32_MAX, stored = member.stored == UINT32_MAX,
             offset = local == UINT32_MAX;
  if (!bytes && !stored && !offset) return true;
  ByteReader in(extra);
  while (in.good() && !in.at_end()) {
    const auto id = in.number<uint16_t>();
    const auto length = in.number<uint16_t>();
    ByteReader field(in.bytes(length));
    if (!in.good() || id != 1) continue;
    if (bytes) member.bytes = field.number<uint64_t>();
    if (stored) member.stored = field.number<uint64_t>();
    if (offset) local = field.number<uint64_t>();
    return field.good();
  }
  return false;
}

// Where the member's bytes begin: its local header has its own name and extra field lengths.
Result<void> find_bytes(const File& file, uint64_t local, uint64_t end, ZipMember& member) {
  std::array<uint8_t, kLocalBytes> header{};
  const auto outside = [&](const char* what) { return damaged(file, what, local, member.name); };
  if (local > end || end - local < kLocalBytes) return outside("it starts outside the archive");
  if (Result<void> read = file.read(local, header); !read) return read;
  ByteReader in(header);
  if (in.number<uint32_t>() != kLocalMark) return outside("there is no member at its offset");
  in.bytes(22);
  const auto name = in.number<uint16_t>(), extra = in.number<uint16_t>();
  member.offset = local + kLocalBytes + name + extra;
  if (member.offset > end || member.stored > end - member.offset) {
    return outside("it overlaps the central directory");
  }
  return {};
}

Result<void> check_places(const File& file, const std::vector<ZipMember>& members) {
  std::vector<const ZipMember*> sorted;
  std::set<std::string_view> names;
  for (const ZipMember& member : members) {
    if (!names.insert(member.name).second) {
      return damaged(file, "two members have this name", member.offset, member.name);
    }
    sorted.push_back(&member);
  }
  std::sort(sorted.begin(), sorted.end(),
            [](const ZipMember* a, const ZipMember* b) { return a->offset < b->offset; });
  // The data of an empty member begins at the next one's header.
  for (size_t i = 1; i < sorted.size(); ++i) {
    if (sorted[i - 1]->offset + sorted[i - 1]->stored > sorted[i]->offset - kLocalBytes) {
      return damaged(file, "it overlaps '" + sorted[i - 1]->name + "'", sorted[i]->offset,
                     sorted[i]->name);
    }
  }
  return {};
}

}  // namespace

Result<std::vector<ZipMember>> read_zip_directory(const File& file) {
  const Result<Directory> found = find_directory(file);
  if (!found) return Error(found.error());
  const Directory& directory = *found;
  if (directory.offset > directory.end || directory.bytes > directory.end - directory.offset ||
      directory.bytes > kMaxDirectory || directory.members > kMaxMembers) {
    return damaged(file, "its directory lies outside of the archive", directory.end);
  }
  Buffer bytes(static_cast<size_t>(directory.bytes));
  if (Result<void> read = file.read(directory.offset, {bytes.data(), bytes.size()}); !read) {
    return std::move(read.error());
  }
  ByteReader in(bytes.bytes());
  std::vector<ZipMember> members;
  for (uint64_t i = 0; i < directory.members; ++i) {
    const uint64_t at = directory.offset + (bytes.size() - in.left());
    const bool marked = in.number<uint32_t>() == kMemberMark;
    in.number<uint32_t>();  // versions
    const auto flags = in.number<uint16_t>(), method = in.number<uint16_t>();
    in.number<uint32_t>();  // time
    ZipMember member;
    member.crc32 = in.number<uint32_t>();
    member.stored = in.number<uint32_t>();
    member.bytes = in.number<uint32_t>();
    const auto name = in.number<uint16_t>(), extra = in.number<uint16_t>();
    const auto comment = in.number<uint16_t>();
    in.bytes(8);  // disk, attributes
    uint64_t local = in.number<uint32_t>();
    member.name = in.text(name);
    const std::span<const uint8_t> more = in.bytes(extra);
    in.bytes(comment);
    if (!in.good() || !marked) return damaged(file, "its directory is damaged", at);
    if (flags & 1) return damaged(file, "the member is encrypted", at, member.name);
    if (method != 0 && method != 8) {
      return damaged(file, "the member is compressed with method " + std::to_string(method), at,
                     member.name);
    }
    member.deflated = method == 8;
    if (!take_wide_sizes(more, member, local) ||
        (!member.deflated && member.stored != member.bytes)) {
      return damaged(file, "the member's sizes contradict each other", at, member.name);
    }
    if (Result<void> placed = find_bytes(file, local, directory.offset, member); !placed) {
      return std::move(placed.error());
    }
    members.push_back(std::move(member));
  }
  if (Result<void> checked = check_places(file, members); !checked) {
    return std::move(checked.error());
  }
  return members;
}

Result<void> read_zip_member(const File& file, const ZipMember& member, Buffer& out) {
  if (member.deflated) {
    InflateLimits limits;
    limits.max_bytes = std::min(limits.max_bytes, member.bytes);
    Result<void> done =
        inflate_file(file, member.offset, member.stored, DeflateWrap::kNone, limits, out);
    if (!done) {
      done.error().where.member = member.name;
      return done;
    }
  } else {
    out.resize(static_cast<size_t>(member.bytes));
    if (Result<void> read = file.read(member.offset, {out.data(), out.size()}); !read) return read;
  }
  uLong crc = ::crc32(0, nullptr, 0);
  for (size_t at = 0; at < out.size(); at += INT_MAX) {
    crc = ::crc32(crc, out.data() + at,
                  static_cast<uInt>(std::min<size_t>(out.size() - at, INT_MAX)));
  }
  if (out.size() == member.bytes && crc == member.crc32) return {};
  return damaged(file,
                 out.size() == member.bytes ? "its checksum is wrong"
                                            : "its size differs from the directory's",
                 member.offset, member.name);
}

Result<void> read_zip_begin(const File& file, const ZipMember& member, std::span<uint8_t> out) {
  if (out.size() > member.bytes)
    return damaged(file, "it is too short", member.offset, member.name);
  if (!member.deflated) return file.read(member.offset, out);
  Inflater inflater(DeflateWrap::kNone);
  Buffer stored(static_cast<size_t>(std::min<uint64_t>(member.stored, kPiece)));
  for (uint64_t at = 0; !out.empty() && at < member.stored;) {
    const auto piece = static_cast<size_t>(std::min<uint64_t>(member.stored - at, kPiece));
    const std::span<uint8_t> in(stored.data(), piece);
    if (Result<void> read = file.read(member.offset + at, in); !read) return read;
    Result<Inflater::Step> step = inflater.run(in, out);
    if (!step) {
      step.error().where = Where{.file = file.path(),
                                 .member = member.name,
                                 .offset = step.error().where.offset + int64_t(member.offset + at)};
      return std::move(step.error());
    }
    out = out.subspan(step->produced);
    if (step->ended) break;
    at += piece;
  }
  if (out.empty()) return {};
  return damaged(file, "its size differs from the directory's", member.offset, member.name);
}

bool begins_as_zip(const std::string& path) {
  std::array<uint8_t, 4> begin{};
  const Result<size_t> read = read_prefix(path, begin);
  if (!read || *read < begin.size()) return false;
  const uint32_t mark = ByteReader(begin).number<uint32_t>();
  return mark == kLocalMark || mark == kEndMark;
}

std::string first_zip_name(const std::string& path) {
  constexpr size_t kLengthAt = 26, kMaxName = 255;
  std::array<uint8_t, kLocalBytes + kMaxName> bytes{};
  const Result<size_t> read = read_prefix(path, bytes);
  if (!read || *read < kLocalBytes) return {};
  const std::span<const uint8_t> begin(bytes.data(), *read);
  if (ByteReader(begin).number<uint32_t>() != kLocalMark) return {};
  const size_t length = ByteReader(begin.subspan(kLengthAt)).number<uint16_t>();
  const std::span<const uint8_t> name = begin.subspan(kLocalBytes);
  return {reinterpret_cast<const char*>(name.data()), std::min(length, name.size())};
}

}  // namespace headrace
