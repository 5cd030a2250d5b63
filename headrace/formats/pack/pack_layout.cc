// SPDX-License-Identifier: Apache-2.0
#include "headrace/formats/pack/pack_layout.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include "headrace/base/byte_stream.h"
#include "headrace/fields/kind.h"
#include "headrace/fields/media.h"
#include "headrace/sources/field_names.h"
#include "headrace/storage/crc32c.h"

namespace headrace {
namespace {

const ErrorCode kNoPack{
    "HR0440", ErrorKind::kData, "not a pack",
    "The file lacks the signature of a pack, or its first bytes are damaged. Check that it is the "
    "right file and that it was copied in binary mode; pack the dataset again if it is damaged."};

const ErrorCode kNewer{
    "HR0441", ErrorKind::kUnsupported, "pack needs a newer Headrace",
    "The pack was written by a later version and uses a feature unknown to this one. Use that "
    "version or a later one, or pack the dataset again with this one."};

static_assert(static_cast<int>(FieldKind::kImage) == 0 &&
                  static_cast<int>(FieldKind::kMasks) == 8 &&
                  static_cast<int>(FieldKind::kAudio) == 9 &&
                  static_cast<int>(FieldKind::kVideo) == 10,
              "packs store kinds by number");
static_assert(static_cast<int>(BoxFormat::kXYXY) == 1 &&
                  static_cast<int>(BoxFormat::kXYXYXYXYNormalized) == 10,
              "packs store box formats by number");
static_assert(static_cast<int>(DType::kUInt8) == 0 && static_cast<int>(DType::kBool) == 12,
              "packs store dtypes by number");
constexpr int kDTypes = 13, kMaxRank = 32;
constexpr uint64_t kMaxPageBytes = uint64_t{1} << 40;
constexpr uint32_t kKeysArePaths = 1;
constexpr size_t kHeaderSum = 84, kMetadataSum = 80;

Error no_pack(std::string what) {
  return {.code = &kNoPack,
          .what = std::move(what),
          .hint = "check that it is a pack and that it was copied completely"};
}

// Bytes of one value of a fixed shape; none if the shape is variable or the size exceeds 64 bits.
std::optional<int64_t> fixed_bytes(const Field& field) {
  int64_t bytes = static_cast<int64_t>(size_of(field.dtype));
  for (int64_t size : field.shape) {
    if (size < 0 || __builtin_mul_overflow(bytes, size, &bytes)) return {};
  }
  return bytes;
}

bool is_dense(const Field& field) { return !field.encoded && !is_string(field.kind); }

void write_metadata(const PackHeader& header, ByteWriter& out) {
  out.number(static_cast<uint32_t>(header.schema.size()));
  for (const Field& field : header.schema) {
    out.number(static_cast<uint16_t>(field.name.size()));
    out.bytes(field.name);
    out.number(static_cast<uint8_t>(field.kind));
    out.number(static_cast<uint8_t>(field.dtype));
    out.number(static_cast<uint8_t>(column_bytes(field) ? 0 : 1));
    out.number(static_cast<uint8_t>(field.encoded));
    out.number(static_cast<uint8_t>(field.shape.size()));
    for (int64_t size : field.shape) out.number(size);
  }
  out.number(static_cast<uint32_t>(header.classes.size()));
  for (const std::string& name : header.classes) {
    out.number(static_cast<uint32_t>(name.size()));
    out.bytes(name);
  }
  const auto has_rows = [](const Field& field) {
    return field.box_format != BoxFormat::kUnspecified || field.row_group > 0;
  };
  // and the format of packs is unchanged
  if (std::ranges::none_of(header.schema, has_rows)) return;
  for (const Field& field : header.schema) {
    out.number(static_cast<uint8_t>(field.box_format));
    out.number(field.row_group);
  }
}

// Reads the part that older packs lack. A format known only to later versions is ignored.
void read_rows(ByteReader& in, Schema& schema) {
  if (in.left() < 2 * schema.size()) return;
  for (Field& field : schema) {
    const auto format = in.number<uint8_t>();
    if (format <= static_cast<uint8_t>(BoxFormat::kXYXYXYXYNormalized)) {
      field.box_format = static_cast<BoxFormat>(format);
    }
    field.row_group = in.number<uint8_t>();
  }
}

bool read_field(ByteReader& in, Schema& schema, FieldNames& names) {
  Field field;
  field.name = in.text(in.number<uint16_t>());
  const auto kind = in.number<uint8_t>(), dtype = in.number<uint8_t>();
  const auto storage = in.number<uint8_t>(), encoded = in.number<uint8_t>();
  const auto rank = in.number<uint8_t>();
  if (!in.good() || !find_kind(static_cast<FieldKind>(kind)) || dtype >= kDTypes || storage > 1 ||
      encoded > 1 || rank > kMaxRank || field.name.empty() ||
      field.name.find('\0') != std::string::npos) {
    return false;
  }
  field.kind = static_cast<FieldKind>(kind);
  field.dtype = static_cast<DType>(dtype);
  field.encoded = encoded;
  for (int i = 0; i < rank; ++i) {
    field.shape.push_back(in.number<int64_t>());
    if (field.shape.back() < -1) return false;
  }
  if (!in.good() || (storage == 0) != (column_bytes(field) > 0)) return false;
  // Checks the engine's assumptions: only media are encoded, an encoded value or an array of
  // samples fits its kind, and a label is one number.
  const MediaRecord* const media = media_of(field.kind);
  if (field.encoded && !media) return false;
  if (media) {
    Field taken = field;
    taken.kind = field.encoded ? FieldKind::kBytes : FieldKind::kTensor;
    const bool takes = record_of(field.kind).take(taken);
    if (!takes || taken.dtype != field.dtype || taken.shape.size() != field.shape.size()) {
      return false;
    }
  }
  if (field.kind == FieldKind::kLabel && (field.dtype != DType::kInt64 || rank > 0)) return false;
  if (!names.add(field.name)) return false;
  schema.push_back(std::move(field));
  return true;
}

bool read_metadata(ByteReader in, PackHeader& header) {
  const auto fields = in.number<uint32_t>();
  if (fields > kMaxFields) return false;
  FieldNames names;
  for (uint32_t i = 0; i < fields; ++i) {
    if (!read_field(in, header.schema, names)) return false;
  }
  const auto classes = in.number<uint32_t>();
  if (!in.good() || fields == 0 || classes > in.left() / sizeof(uint32_t)) return false;
  for (uint32_t i = 0; i < classes; ++i) {
    header.classes.emplace_back(in.text(in.number<uint32_t>()));
  }
  if (in.good()) read_rows(in, header.schema);
  return in.good();  // the rest may be ignored: it is reserved for later versions
}

}  // namespace

size_t column_bytes(const Field& field) {
  if (!is_dense(field)) return 0;
  const std::optional<int64_t> bytes = fixed_bytes(field);
  return bytes && *bytes <= kMaxColumnBytes ? static_cast<size_t>(*bytes) : 0;
}

bool has_own_shape(const Field& field) {
  return is_dense(field) &&
         std::any_of(field.shape.begin(), field.shape.end(), [](int64_t size) { return size < 0; });
}

std::vector<uint8_t> bytes_from_header(const PackHeader& header) {
  ByteWriter metadata, out;
  write_metadata(header, metadata);
  const uint64_t bytes = aligned(kPackHeaderFixed + metadata.out.size(), kPageAlignment);
  out.bytes(kPackMagic);
  out.number(kPackVersion);
  out.number(static_cast<uint32_t>(bytes));
  out.number((header.video_indexes ? kVideoIndexes : 0) |
             (header.entries_in_rows ? kEntriesInRows : 0));
  out.number(header.page_bytes);
  out.number(header.shard);
  out.number(header.shards);
  out.number(header.first_record);
  out.number(header.records);
  out.number(header.dataset_records);
  out.number(header.plan);
  out.number(static_cast<uint32_t>(metadata.out.size()));
  out.number(header.keys_are_paths ? kKeysArePaths : 0);
  out.number(crc32c(metadata.out));
  out.number(crc32c(out.out));
  out.bytes(metadata.out);
  out.zeros(bytes - out.out.size());
  return std::move(out.out);
}

Result<uint32_t> header_bytes(std::span<const uint8_t> fixed) {
  ByteReader in(fixed);
  if (in.text(kPackMagic.size()) != kPackMagic) {
    return no_pack("the file does not begin with a pack's signature");
  }
  const auto version = in.number<uint32_t>(), bytes = in.number<uint32_t>();
  const auto required = in.number<uint64_t>();
  if (!in.good() || fixed.size() < kPackHeaderFixed) return no_pack("its header is truncated");
  uint32_t sum = 0;
  std::memcpy(&sum, fixed.data() + kHeaderSum, sizeof sum);
  if (sum != crc32c(fixed.first(kHeaderSum))) return no_pack("its header is damaged");
  if (version > kPackVersion || (required & ~kPackFeatures) != 0) {
    return Error{.code = &kNewer,
                 .what = "the pack has version " + std::to_string(version) + ", features " +
                         std::to_string(required) + "; this reader supports version " +
                         std::to_string(kPackVersion) + ", features " +
                         std::to_string(kPackFeatures),
                 .hint = "use the Headrace that wrote it, or a later one"};
  }
  if (version == 0 || bytes < kPackHeaderFixed || bytes % kPageAlignment != 0) {
    return no_pack("its header is damaged");
  }
  return bytes;
}

Result<PackHeader> header_from_bytes(std::span<const uint8_t> bytes) {
  const Result<uint32_t> size = header_bytes(bytes);
  if (!size) return Error(size.error());
  if (*size > bytes.size()) return no_pack("its header is truncated");
  PackHeader header;
  header.header_bytes = *size;
  ByteReader in(bytes.subspan(kPackMagic.size() + 8));
  const auto features = in.number<uint64_t>();
  header.video_indexes = features & kVideoIndexes;
  header.entries_in_rows = features & kEntriesInRows;
  header.page_bytes = in.number<uint64_t>();
  header.shard = in.number<uint32_t>();
  header.shards = in.number<uint32_t>();
  header.first_record = in.number<uint64_t>();
  header.records = in.number<uint64_t>();
  header.dataset_records = in.number<uint64_t>();
  header.plan = in.number<uint64_t>();
  const auto metadata_bytes = in.number<uint32_t>(), flags = in.number<uint32_t>();
  header.keys_are_paths = flags & kKeysArePaths;
  if (metadata_bytes > *size - kPackHeaderFixed) return no_pack("its header is damaged");
  const std::span<const uint8_t> metadata = bytes.subspan(kPackHeaderFixed, metadata_bytes);
  uint32_t sum = 0;
  std::memcpy(&sum, bytes.data() + kMetadataSum, sizeof sum);
  constexpr uint64_t kMax = uint64_t{1} << 62;
  if (sum != crc32c(metadata) || header.shard >= header.shards || header.first_record > kMax ||
      header.records > kMax || header.dataset_records > kMax ||
      header.first_record + header.records > header.dataset_records ||
      header.page_bytes > kMaxPageBytes || !read_metadata(ByteReader(metadata), header)) {
    return no_pack("its header is damaged");
  }
  return header;
}

std::array<uint8_t, kPageHeaderBytes> bytes_from_page(PageHeader page,
                                                      std::span<const uint8_t> table) {
  ByteWriter out;
  out.number(kPageMagic);
  out.number(uint32_t{0});
  out.number(page.bytes);
  out.number(page.number);
  out.number(page.first_record);
  out.number(page.records);
  out.number(page.table_bytes);
  out.number(page.data_offset);
  out.zeros(kPageHeaderBytes - out.out.size());
  std::array<uint8_t, kPageHeaderBytes> bytes;
  std::copy(out.out.begin(), out.out.end(), bytes.begin());
  const uint32_t sum = crc32c(table, crc32c(std::span(bytes).subspan(8)));
  std::memcpy(bytes.data() + 4, &sum, sizeof sum);
  return bytes;
}

PageHeader page_from_bytes(std::span<const uint8_t> bytes) {
  ByteReader in(bytes);
  PageHeader page;
  const auto magic = in.number<uint32_t>();
  page.checksum = in.number<uint32_t>();
  page.bytes = in.number<uint64_t>();
  page.number = in.number<uint64_t>();
  page.first_record = in.number<uint64_t>();
  page.records = in.number<uint32_t>();
  page.table_bytes = in.number<uint32_t>();
  page.data_offset = in.number<uint32_t>();
  const bool good = in.good() && bytes.size() >= kPageHeaderBytes && magic == kPageMagic &&
                    page.records > 0 && page.bytes % kPageAlignment == 0 &&
                    page.data_offset % kBlobAlignment == 0 && page.data_offset <= page.bytes &&
                    uint64_t{kPageHeaderBytes} + page.table_bytes <= page.data_offset;
  return good ? page : PageHeader{};
}

bool is_intact(std::span<const uint8_t> header_bytes, std::span<const uint8_t> table) {
  const PageHeader page = page_from_bytes(header_bytes);
  return page.bytes > 0 &&
         page.checksum == crc32c(table, crc32c(header_bytes.subspan(8, kPageHeaderBytes - 8)));
}

std::vector<uint8_t> bytes_from_sections(const std::vector<Section>& sections) {
  ByteWriter out;
  for (const Section& section : sections) {
    out.number(static_cast<uint32_t>(section.tag));
    out.number(section.field);
    out.number(section.offset);
    out.number(section.bytes);
    out.number(section.checksum);
    out.number(section.flags);
  }
  return std::move(out.out);
}

std::vector<Section> sections_from_bytes(std::span<const uint8_t> bytes) {
  std::vector<Section> sections(bytes.size() / kSectionEntryBytes);
  ByteReader in(bytes);
  for (Section& section : sections) {
    section.tag = static_cast<SectionTag>(in.number<uint32_t>());
    section.field = in.number<uint32_t>();
    section.offset = in.number<uint64_t>();
    section.bytes = in.number<uint64_t>();
    section.checksum = in.number<uint32_t>();
    section.flags = in.number<uint32_t>();
  }
  return sections;
}

std::array<uint8_t, kPackTailBytes> bytes_from_tail(const PackTail& tail) {
  ByteWriter out;
  out.number(tail.directory_offset);
  out.number(tail.sections);
  out.number(tail.directory_checksum);
  out.number(tail.records);
  out.number(tail.pages);
  out.number(tail.content);
  out.number(tail.file_bytes);
  out.zeros(4);
  out.number(crc32c(out.out));
  out.bytes(kPackEndMagic);
  std::array<uint8_t, kPackTailBytes> bytes;
  std::copy(out.out.begin(), out.out.end(), bytes.begin());
  return bytes;
}

bool tail_from_bytes(std::span<const uint8_t> bytes, PackTail& out) {
  ByteReader in(bytes);
  out.directory_offset = in.number<uint64_t>();
  out.sections = in.number<uint32_t>();
  out.directory_checksum = in.number<uint32_t>();
  out.records = in.number<uint64_t>();
  out.pages = in.number<uint64_t>();
  out.content = in.number<uint64_t>();
  out.file_bytes = in.number<uint64_t>();
  in.bytes(4);
  const auto sum = in.number<uint32_t>();
  return in.text(kPackEndMagic.size()) == kPackEndMagic &&
         sum == crc32c(bytes.first(kPackTailBytes - 12));
}

}  // namespace headrace
