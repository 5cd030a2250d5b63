// SPDX-License-Identifier: Apache-2.0
// A pack as a source: the output of `headrace pack`, in the order in which it was packed.
#include <algorithm>
#include <cstring>

#include "headrace/base/byte_stream.h"
#include "headrace/base/registry.h"
#include "headrace/base/text.h"
#include "headrace/formats/folder/folder_listing.h"
#include "headrace/formats/format.h"
#include "headrace/formats/pack/indexed_video.h"
#include "headrace/formats/pack/pack_summary.h"
#include "headrace/sources/classes.h"
#include "headrace/sources/in_order.h"
#include "headrace/sources/labeled_files.h"
#include "headrace/sources/readable_text.h"
#include "headrace/storage/file.h"

namespace headrace {
namespace {

const ErrorCode kShards{
    "HR0445", ErrorKind::kData, "mismatched shards",
    "A pack of several shards is a folder with all of them, and one is missing or belongs to "
    "another pack. Copy the whole folder again. With recover=True (--recover) the shards before "
    "the gap are opened; a single shard can be opened by its own path."};

const ErrorCode kLargeRecord{
    "HR0455", ErrorKind::kResource, "record too large for the memory limit",
    "A record of the pack exceeds one record's share of memory_limit. Raise memory_limit, or skip "
    "the record."};

const ErrorCode kBadShape{
    "HR0456", ErrorKind::kData, "damaged shape in a pack",
    "The shape stored after a record's elements does not match them. The pack was written by a "
    "program that does not follow its format; pack the dataset again."};

bool is_pack_file(const std::string& path) {
  return is_file(path) && file_begins_with(path, kPackMagic);
}

class PackSource final : public Source {
 public:
  PackSource(std::string path, OpenedPack pack, bool verify,
             const std::optional<ClassList>& classes)
      : path_(std::move(path)),
        files_(std::move(pack.files)),
        missing_(std::move(pack.missing)),
        header_(files_.front().header()),
        verify_(verify),
        classes_(header_.classes) {
    uint64_t content = 0;
    for (const PackFile& file : files_) {
      begins_.push_back(size_);
      size_ += file.records();
      content += file.content();
    }
    for (size_t i = 0; i < header_.schema.size(); ++i) {
      widths_.push_back(column_bytes(header_.schema[i]));
      buffers_.push_back(blobs_);
      blobs_ += widths_.back() == 0;
      if (label_field_ < 0 && header_.schema[i].kind == FieldKind::kLabel) {
        label_field_ = static_cast<int>(i);
      }
    }
    if (classes) rename_classes(*classes);
    fingerprint_ = pack_fingerprint(header_.schema, classes_, size_, content);
  }

  int64_t size() const override { return size_; }
  const Schema& schema() const override { return header_.schema; }
  ReadStyle read_style() const override {
    if (blobs_ == 0) return ReadStyle::kMemory;
    return files_.front().is_async() ? ReadStyle::kLater : ReadStyle::kFiles;
  }
  void pieces(int64_t index, const std::vector<bool>& wanted,
              std::vector<FilePiece>& out) const override {
    const auto [file, record] = place_of(index);
    for (size_t field = 0; file.is_async() && field < widths_.size(); ++field) {
      if (wanted[field] && widths_[field] == 0) out.push_back(file.piece(field, record));
    }
  }
  std::vector<std::string> classes() const override { return classes_; }
  uint64_t fingerprint() const override { return fingerprint_; }
  std::string root() const override { return header_.keys_are_paths ? "." : ""; }

  std::string key(int64_t index) const override {
    const auto [file, record] = place_of(index);
    return std::string(file.key(record));
  }

  Where where(int64_t index) const override {
    const auto [file, record] = place_of(index);
    return {.file = file.path(), .member = std::string(file.key(record)), .record = index};
  }

  // The records of a page are a block.
  std::vector<int64_t> block_ends() const override {
    std::vector<int64_t> ends;
    for (size_t i = 0; i < files_.size(); ++i) {
      for (size_t page = 1; page < files_[i].pages().size(); ++page) {
        const auto first = static_cast<int64_t>(files_[i].pages()[page].first_record);
        ends.push_back(begins_[i] + std::min(first, files_[i].records()));
      }
      ends.push_back(begins_[i] + files_[i].records());
    }
    return ends;
  }

  void will_read(int64_t begin, int64_t end, const std::vector<bool>&) const override {
    for (size_t i = 0; i < files_.size(); ++i) {
      for (size_t page = 0; page < files_[i].pages().size(); ++page) {
        const int64_t first =
            begins_[i] + static_cast<int64_t>(files_[i].pages()[page].first_record);
        if (first >= begin && first < end) files_[i].will_read_page(page);
      }
    }
  }

  std::string description() const override {
    std::string out = "pack " + path_ + " (" + count_text(size_, "record");
    if (files_.size() > 1) out += ", " + count_text(static_cast<int64_t>(files_.size()), "shard");
    if (files_.size() == 1 && header_.shards > 1) {
      out += ", shard " + std::to_string(header_.shard) + " of " + std::to_string(header_.shards);
    }
    if (!classes_.empty()) {
      out += ", " + count_text(static_cast<int64_t>(classes_.size()), "class", "classes");
    }
    if (!missing_.empty()) out += "; recovered: " + missing_;
    return out + ")";
  }

  void read(std::span<const int64_t> indices, const std::vector<bool>& wanted,
            std::span<RecordData> out) const override {
    for (size_t i = 0; i < out.size(); ++i) {
      begin_record(indices[i], widths_.size(), blobs_, out[i]);
      const auto [file, record] = place_of(indices[i]);
      for (size_t field = 0; field < widths_.size() && out[i].result; ++field) {
        if (!wanted[field]) continue;
        if (widths_[field] > 0) {
          read_column(file, field, record, out[i]);
        } else {
          out[i].result = read_blob(file, field, record, out[i]);
        }
      }
      if (!out[i].result) out[i].result.error().where.record = indices[i];
    }
  }

  std::vector<int64_t> integer_column(std::string_view name) const override {
    std::vector<int64_t> values;
    for (size_t field = 0; field < widths_.size(); ++field) {
      if (header_.schema[field].name != name || !is_scalar(field)) continue;
      values.reserve(static_cast<size_t>(size_));
      for (const PackFile& file : files_) {
        for (int64_t i = 0; i < file.records(); ++i) values.push_back(scalar(file, field, i));
      }
    }
    return values;
  }

 private:
  struct Place {
    const PackFile& file;
    int64_t record;
  };
  Place place_of(int64_t index) const {
    const size_t shard =
        std::upper_bound(begins_.begin(), begins_.end(), index) - begins_.begin() - 1;
    return {files_[shard], index - begins_[shard]};
  }

  bool is_scalar(size_t field) const {
    const Field& declared = header_.schema[field];
    return widths_[field] > 0 && declared.dtype == DType::kInt64 && declared.shape.empty();
  }

  int64_t scalar(const PackFile& file, size_t field, int64_t record) const {
    int64_t value = 0;
    std::memcpy(&value, file.column(field, record).data(), sizeof value);
    const bool renamed = static_cast<int>(field) == label_field_ && value >= 0 &&
                         value < static_cast<int64_t>(renamed_.size());
    return renamed ? renamed_[static_cast<size_t>(value)] : value;
  }

  void read_column(const PackFile& file, size_t field, int64_t record, RecordData& out) const {
    if (is_scalar(field)) {
      out.fields[field].scalar = scalar(file, field, record);
    } else {
      out.fields[field].bytes = file.column(field, record);
    }
  }

  Result<void> read_blob(const PackFile& file, size_t field, int64_t record,
                         RecordData& out) const {
    const BlobPlace& place = file.blob(field, record);
    const Where where{.file = file.path(),
                      .member = std::string(file.key(record)),
                      .offset = static_cast<int64_t>(place.offset)};
    if (place.bytes > out.max_bytes) {
      return Error{.code = &kLargeRecord,
                   .what = "the record has " + with_commas(place.bytes) +
                           " bytes, which exceeds "
                           "the limit of " +
                           with_commas(static_cast<int64_t>(out.max_bytes)),
                   .where = where,
                   .hint = "raise memory_limit, or skip the record"};
    }
    Buffer& buffer = out.owned[buffers_[field]];
    if (Result<void> read = file.read(field, record, verify_, buffer); !read) return read;
    FieldData& data = out.fields[field];
    data.bytes = buffer.bytes();
    if (header_.video_indexes && is_indexed_video(header_.schema[field])) {
      if (take_video(data)) return {};
    } else if (has_own_shape(header_.schema[field]) ? take_shape(header_.schema[field], data)
                                                    : fits(header_.schema[field], data)) {
      return {};
    }
    data = {};
    return Error{.code = &kBadShape,
                 .what = "field '" + header_.schema[field].name + "' has " +
                         with_commas(place.bytes) + " bytes, which do not match its shape",
                 .where = where,
                 .hint = "pack the dataset again"};
  }

  // If the schema fixes the size, the bytes must have it.
  static bool fits(const Field& field, const FieldData& data) {
    if (field.encoded || field.kind == FieldKind::kText || field.kind == FieldKind::kBytes) {
      return true;
    }
    uint64_t bytes = size_of(field.dtype);
    for (int64_t size : field.shape) {
      if (__builtin_mul_overflow(bytes, static_cast<uint64_t>(size), &bytes)) return false;
    }
    return bytes == data.bytes.size();
  }

  // Splits off the index that comes after the file.
  static bool take_video(FieldData& data) {
    const std::optional<IndexedVideo> video = indexed_video_from(data.bytes);
    if (!video) return false;
    data.bytes = video->file;
    data.row_index = {.known = video->index};
    return true;
  }

  // Splits off the shape that comes after the elements.
  static bool take_shape(const Field& field, FieldData& data) {
    const size_t tail = field.shape.size() * sizeof(int64_t);
    if (data.bytes.size() < tail) return false;
    ByteReader in(data.bytes.last(tail));
    data.bytes = data.bytes.first(data.bytes.size() - tail);
    uint64_t bytes = size_of(field.dtype);
    for (int64_t declared : field.shape) {
      const auto size = in.number<int64_t>();
      if (size < 0 || (declared >= 0 && size != declared) ||
          __builtin_mul_overflow(bytes, static_cast<uint64_t>(size), &bytes)) {
        return false;
      }
      data.shape.push_back(size);
    }
    return bytes == data.bytes.size();
  }

  void rename_classes(const ClassList& given) {
    std::vector<std::string> unknown;
    std::vector<bool> used(classes_.size(), false);
    for (int64_t label : integer_column(
             label_field_ < 0 ? "" : header_.schema[static_cast<size_t>(label_field_)].name)) {
      if (label >= 0 && label < static_cast<int64_t>(used.size())) {
        used[static_cast<size_t>(label)] = true;
      }
    }
    for (size_t i = 0; i < classes_.size(); ++i) {
      const std::optional<int64_t> number = given.number(classes_[i]);
      if (!number && used[i]) unknown.push_back(classes_[i]);
      renamed_.push_back(number.value_or(-1));
    }
    given.refuse_unknown(unknown, "in " + path_);
    classes_ = given.names();
  }

  std::string path_;
  std::vector<PackFile> files_;
  std::string missing_;
  PackHeader header_;
  bool verify_;
  std::vector<std::string> classes_;
  std::vector<int64_t> renamed_;  // stored label -> delivered one; empty: the same
  std::vector<int64_t> begins_;   // first record of each file
  std::vector<size_t> widths_;    // width of each field's column; 0: blobs
  std::vector<size_t> buffers_;   // index of each field's buffer in a record
  size_t blobs_ = 0;
  int label_field_ = -1;
  int64_t size_ = 0;
  uint64_t fingerprint_ = 0;
};

// Checks that it is the next shard.
void check_shard(const PackFile& file, const std::vector<PackFile>& before) {
  const PackHeader& header = file.header();
  bool fits = header.shard == before.size();
  if (!before.empty()) {
    const PackHeader& last = before.back().header();
    fits = fits && header.plan == last.plan && header.shards == last.shards &&
           header.first_record == last.first_record + last.records;
  } else {
    fits = fits && header.first_record == 0;
  }
  if (fits) return;
  raise(kShards, file.path() + " is not shard " + std::to_string(before.size()) + " of this pack",
        "copy the whole folder again");
}

// The shards of a folder, as many as the header of shard 0 declares.
OpenedPack open_shards(const std::string& path, bool recover) {
  OpenedPack pack;
  uint32_t shards = 1;
  struct Last {};
  const auto open_one = [&](int64_t i) -> std::optional<Result<PackFile>> {
    return PackFile::open(joined(path, shard_name(static_cast<uint32_t>(i))), recover);
  };
  const auto take = [&](std::optional<Result<PackFile>> opened) {
    const size_t i = pack.files.size();
    const std::string name = joined(path, shard_name(static_cast<uint32_t>(i)));
    Result<PackFile>& file = *opened;
    if (!file && file.error().code->id != "HR0201") throw Exception(file.error());
    if (!file) {
      const std::string what =
          i == 0 ? "the folder is not a pack, or its first shard is missing"
                 : "shard " + std::to_string(i) + " of " + std::to_string(shards) + " is missing";
      if (!recover || i == 0) {
        raise(kShards, what + ": " + name,
              "copy the whole folder again, or open the rest with recover=True (--recover)");
      }
      pack.missing = what + "; it and later shards are not used";
      throw Last();
    }
    check_shard(*file, pack.files);
    shards = file->header().shards;
    if (file->lacks_records()) {
      pack.missing = name + ": " + file->missing();
      if (i + 1 < shards) pack.missing += "; later shards are not used";
    }
    pack.files.push_back(std::move(*file));
    if (!pack.missing.empty()) throw Last();
  };
  try {
    take(open_one(0));
    if (shards == 1) return pack;
    each_in_order(1, shards, is_async(path) ? kFarFilesAtOnce : 1, open_one, take);
  } catch (const Last&) {
  }
  return pack;
}

SourcePtr open_source_of_pack(const std::string& path, const Arguments& arguments,
                              const Progress&) {
  const std::optional<ClassList> classes = classes_argument(arguments);
  return std::make_shared<PackSource>(path, open_pack(path, arguments.flag("recover")),
                                      arguments.flag("verify"), classes);
}

}  // namespace

std::string shard_name(uint32_t shard) {
  std::string digits = std::to_string(shard);
  if (digits.size() < 5) digits.insert(0, 5 - digits.size(), '0');
  return "shard-" + digits + ".hrpack";
}

bool is_pack(const std::string& path) {
  if (!is_folder(path)) return is_pack_file(path);
  const std::string first = joined(path, shard_name(0));
  if (!is_file(first)) return false;
  (void)storage_of(first).look_at_ends(first);  // it is read next, if it is one
  return is_pack_file(first);
}

OpenedPack open_pack(const std::string& path, bool recover) {
  if (is_folder(path)) return open_shards(path, recover);
  Result<PackFile> file = PackFile::open(path, recover);
  if (!file) throw Exception(file.error());
  OpenedPack pack;
  pack.missing = file->missing();
  pack.files.push_back(std::move(*file));
  return pack;
}

namespace {

const FormatRecord kPack{
    .name = "pack",
    .doc =
        "The output of `headrace pack`: a file, or a folder of shards. Images are stored "
        "losslessly in a form that "
        "decodes several times faster; records, order, labels and classes are the same as in the "
        "packed dataset.",
    .example = "hr.open(\"train.hrpack\")",
    .params = {classes_param(),
               {.name = "verify",
                .type = ParamType::kBool,
                .doc = "Whether to verify the checksum of every value that is read.",
                .fallback = true,
                .decides = Affects::kReading},
               {.name = "recover",
                .type = ParamType::kBool,
                .doc = "Whether to open a truncated pack, with the records of its complete pages.",
                .fallback = false,
                .decides = Affects::kReading}},
    .recognizes = is_pack,
    .open = open_source_of_pack,
    .knows_kinds = true,
    .index_at_end = ".hrpack"};
const Register<FormatRecord> registered_pack_source_format(kPack);

}  // namespace
}  // namespace headrace
