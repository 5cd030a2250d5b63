// SPDX-License-Identifier: Apache-2.0
#include "headrace/storage/copy_info.h"

#include <cstring>
#include <utility>

#include "headrace/base/byte_stream.h"
#include "headrace/base/registry.h"
#include "headrace/storage/crc32c.h"
#include "headrace/storage/file.h"
#include "headrace/storage/file_times.h"

// The file:
//   8 bytes  "HRUNPAC3"
//   u32      CRC-32C of all that follows
//   text     path of the packed file (u64 length, bytes)
//   i64      when that one's status changed last; u64 hash of its first and last bytes
//   u64      bytes of the copy; i64, i64 when its content and its status changed last
//   u64      hash of the copy
//   u8       1 where it ends early; then  text id of the error code, what, hint; i64 offset

namespace headrace {
namespace {

constexpr std::string_view kMagic = "HRUNPAC3";
constexpr size_t kChecksumEnd = 12;

}  // namespace

std::optional<CopyState> state_of_copy(const std::string& path) {
  const Result<FileIdentity> found = identity_of(path);
  if (!found) return {};
  return CopyState{.bytes = found->size,
                   .modified_ns = found->modified_ns,
                   .status_changed_ns = status_changed_ns(path)};
}

std::vector<uint8_t> bytes_from_copy_info(const CopyInfo& about) {
  ByteWriter out;
  out.bytes(kMagic);
  out.number(uint32_t{0});
  out.text(about.packed_path);
  out.number(about.packed.status_changed_ns);
  out.number(about.packed.ends);
  out.number(about.copy.bytes);
  out.number(about.copy.modified_ns);
  out.number(about.copy.status_changed_ns);
  out.number(about.hash);
  out.number(static_cast<uint8_t>(about.damage.has_value()));
  if (const std::optional<Error>& damage = about.damage) {
    for (std::string_view text :
         {damage->code->id, std::string_view(damage->what), std::string_view(damage->hint)}) {
      out.text(text);
    }
    out.number(damage->where.offset);
  }
  const uint32_t sum = crc32c(std::span<const uint8_t>(out.out).subspan(kChecksumEnd));
  std::memcpy(out.out.data() + kMagic.size(), &sum, sizeof sum);
  return std::move(out.out);
}

std::optional<CopyInfo> copy_info_from_bytes(std::span<const uint8_t> bytes) {
  ByteReader in(bytes);
  if (in.text(kMagic.size()) != kMagic) return {};
  const auto sum = in.number<uint32_t>();
  if (!in.good() || sum != crc32c(bytes.subspan(kChecksumEnd))) return {};
  CopyInfo about;
  about.packed_path = in.text();
  about.packed.status_changed_ns = in.number<int64_t>();
  about.packed.ends = in.number<uint64_t>();
  about.copy.bytes = in.number<uint64_t>();
  about.copy.modified_ns = in.number<int64_t>();
  about.copy.status_changed_ns = in.number<int64_t>();
  about.hash = in.number<uint64_t>();
  if (in.number<uint8_t>() != 0) {
    const std::string id(in.text()), what(in.text()), hint(in.text());
    const ErrorCode* code = Registry<ErrorCode>::find(id);
    if (!code || code->kind == ErrorKind::kStorage) return {};
    about.damage = Error{.code = code,
                         .what = what,
                         .where = Where{.file = about.packed_path, .offset = in.number<int64_t>()},
                         .hint = hint};
  }
  if (!in.at_end()) return {};
  return about;
}

}  // namespace headrace
