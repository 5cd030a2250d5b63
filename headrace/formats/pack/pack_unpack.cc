// SPDX-License-Identifier: Apache-2.0
// Unpacking: each record's files, and everything else in a manifest and arrays.
#include "headrace/formats/pack/pack.h"

#include <algorithm>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>

#include "headrace/base/clock.h"
#include "headrace/base/json_writer.h"
#include "headrace/base/process_limits.h"
#include "headrace/base/text.h"
#include "headrace/fields/media.h"
#include "headrace/formats/pack/indexed_video.h"
#include "headrace/formats/pack/pack_output.h"
#include "headrace/formats/pack/pack_writer.h"
#include "headrace/sources/in_order.h"
#include "headrace/storage/crc32c.h"

namespace headrace {
namespace {

const ErrorCode kOtherBytes{
    "HR0452", ErrorKind::kData, "record cannot be restored",
    "The packed form of this record cannot be restored to the original bytes: it is damaged, or "
    "was written by a program that does not follow the format. Other records are not affected. "
    "`headrace scan` lists all damaged records."};

constexpr size_t kUnpackWaitingBytes = size_t{16} << 20;
constexpr std::string_view kManifest = "labels.jsonl";

// One record's output other than files.
struct Unpacked {
  std::string line;                        // line of the manifest
  std::vector<std::vector<uint8_t>> rows;  // rows of the arrays, one per field; others stay empty
  int64_t files = 0, present = 0;
  uint64_t bytes = 0;
  std::optional<DamagedRecord> damaged;
};

// A file that grows row by row and is renamed at the end.
class GrowingFile {
 public:
  GrowingFile(OutputFolder& folder, std::string name)
      : folder_(folder), name_(std::move(name)), temporary_(folder.temporary_name()) {
    file_.reset(std::fopen(temporary_.c_str(), "wbx"));
    if (!file_) not_written(temporary_, errno);
  }
  ~GrowingFile() {
    if (file_) std::remove(temporary_.c_str());
  }
  GrowingFile(const GrowingFile&) = delete;
  GrowingFile& operator=(const GrowingFile&) = delete;

  void write(const void* bytes, size_t count) {
    if (std::fwrite(bytes, 1, count, file_.get()) != count) not_written(temporary_, errno);
  }
  // Whether the file is new.
  bool finish() {
    if (std::fclose(file_.release()) != 0) {
      const int error_number = errno;
      std::remove(temporary_.c_str());
      not_written(temporary_, error_number);
    }
    return folder_.move_in(temporary_, name_);
  }

 private:
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  OutputFolder& folder_;
  const std::string name_, temporary_;
  std::unique_ptr<std::FILE, Close> file_;
};

// "a/b.jpg" -> "a/b"
std::string_view without_suffix(std::string_view path) {
  const size_t dot = path.rfind('.'), slash = path.rfind('/');
  const size_t name = slash == std::string_view::npos ? 0 : slash + 1;
  return dot == std::string_view::npos || dot <= name ? path : path.substr(0, dot);
}

std::string suffix_of(FieldKind kind, std::span<const uint8_t> bytes) {
  const MediaRecord* const media = media_of(kind);
  return media ? suffix_for(*media, bytes.first(std::min(bytes.size(), kMediaSignature))) : "";
}

class Unpacking {
 public:
  Unpacking(const OpenedPack& pack, OutputFolder& folder)
      : pack_(pack), header_(pack.files.front().header()), folder_(folder) {
    for (const PackFile& file : pack.files) {
      begins_.push_back(size_);
      size_ += file.records();
      Result<PackTable> table = file.table();
      if (!table) throw Exception(table.error());
      tables_.push_back(std::move(*table));
    }
    for (size_t i = 0; i < header_.schema.size(); ++i) {
      if (is_file(header_.schema[i])) {
        files_.push_back(i);
      } else if (is_array(header_.schema[i])) {
        arrays_.push_back(i);
      }
    }
    check_keys();
    check_arrays();
  }

  void run(int threads, const Progress& progress, UnpackReport& report) {
    std::optional<GrowingFile> manifest;
    if (!folders_suffice(pack_)) manifest.emplace(folder_, std::string(kManifest));
    std::vector<std::unique_ptr<GrowingFile>> arrays;
    for (size_t field : arrays_) arrays.push_back(begin_array(header_.schema[field]));
    InOrder<Unpacked> order(0, size_, kUnpackWaitingBytes * static_cast<size_t>(threads));
    order.run(
        threads, [this] { return worker(); },
        [](const Unpacked& record) {
          size_t bytes = sizeof record + record.line.size();
          for (const auto& row : record.rows) bytes += row.size();
          return bytes;
        },
        [&](Unpacked record) {
          if (manifest) manifest->write(record.line.data(), record.line.size());
          for (size_t i = 0; i < arrays.size(); ++i) {
            arrays[i]->write(record.rows[i].data(), record.rows[i].size());
          }
          add(std::move(record), report);
        },
        [&](int64_t done) {
          if (progress) progress(done, size_);
        });
    for (const auto& array : arrays) count(array->finish(), report);
    if (manifest) {
      count(manifest->finish(), report);
      report.manifest = kManifest;
    }
    report.records = size_;
  }

 private:
  // Fields that were files, or could be. Numbers and text go to the manifest; the rest to arrays.
  static bool is_file(const Field& field) {
    return field.encoded || field.kind == FieldKind::kBytes || has_own_shape(field);
  }
  static bool is_number(const Field& field) {
    return field.dtype == DType::kInt64 && field.shape.empty() && !is_file(field) &&
           field.kind != FieldKind::kText;
  }
  static bool is_array(const Field& field) {
    return !is_file(field) && !is_number(field) && field.kind != FieldKind::kText;
  }

  void check_keys() const {
    for (const PackFile& file : pack_.files) {
      for (int64_t i = 0; i < file.records() && !files_.empty(); ++i) {
        const std::string wrong = why_unsafe_key(file.key(i));
        if (!wrong.empty()) OutputFolder::refuse(file.key(i), wrong);
      }
    }
    for (const Field& field : header_.schema) {
      const std::string wrong = why_unsafe_key(field.name);
      if (!wrong.empty()) OutputFolder::refuse(field.name, wrong);
    }
  }

  // Rows have the length given by the schema, so that no array becomes larger than the pack.
  void check_arrays() const {
    for (size_t field : arrays_) {
      uint64_t bytes = size_of(header_.schema[field].dtype);
      bool fits = true;
      for (int64_t size : header_.schema[field].shape) {
        fits &= !__builtin_mul_overflow(bytes, static_cast<uint64_t>(size), &bytes);
      }
      for (const PackTable& table : tables_) {
        const TableField& stored = table.fields[field];
        for (size_t i = 0; stored.width == 0 && i < table.records(); ++i) {
          fits &= stored.stored_bytes[i] == bytes && (stored.form[i] & kFormBits) == 0;
        }
      }
      if (!fits) {
        raise(kOtherBytes, "field '" + header_.schema[field].name + "' has values of wrong size",
              "pack the dataset again");
      }
    }
  }

  struct Place {
    const PackFile& file;
    int64_t record;
    const PackTable& table;
  };
  Place place_of(int64_t index) const {
    const size_t shard =
        std::upper_bound(begins_.begin(), begins_.end(), index) - begins_.begin() - 1;
    return {pack_.files[shard], index - begins_[shard], tables_[shard]};
  }

  static int64_t number(const PackFile& file, size_t field, int64_t record) {
    int64_t value = 0;
    std::memcpy(&value, file.column(field, record).data(), sizeof value);
    return value;
  }

  std::unique_ptr<GrowingFile> begin_array(const Field& field) {
    auto file = std::make_unique<GrowingFile>(folder_, field.name + ".npy");
    Shape shape = field.shape;
    shape.insert(shape.begin(), size_);
    const std::vector<uint8_t> header = npy_header(field.dtype, shape);
    file->write(header.data(), header.size());
    return file;
  }

  std::function<Unpacked(int64_t)> worker() {
    auto buffer = std::make_shared<Buffer>();  // shared_ptr, because std::function must be copyable
    return [this, buffer](int64_t index) { return record(index, *buffer); };
  }

  Unpacked record(int64_t index, Buffer& buffer) {
    const auto [file, record, table] = place_of(index);
    Unpacked out;
    const auto damaged = [&](const Error& error) {
      out.damaged = {.record = index,
                     .key = std::string(file.key(record)),
                     .code = std::string(error.code->id),
                     .what = error.what};
    };
    for (size_t field : files_) {
      Result<std::vector<uint8_t>> bytes = original(file, table, field, record, buffer);
      if (!bytes) {
        damaged(bytes.error());
        continue;
      }
      out.bytes += bytes->size();
      const bool written = write_file(file, field, record, *bytes);
      ++(written ? out.files : out.present);
    }
    for (size_t field : arrays_) {
      Result<std::vector<uint8_t>> row = array_row(file, table, field, record, buffer);
      if (!row) damaged(row.error());
      out.rows.push_back(row ? std::move(*row) : std::vector<uint8_t>(row_bytes(field)));
    }
    Result<std::string> line = manifest_line(file, table, record, buffer);
    if (!line) damaged(line.error());
    if (line) out.line = std::move(*line);
    return out;
  }

  size_t row_bytes(size_t field) const {
    const Field& declared = header_.schema[field];
    return static_cast<size_t>(element_count(declared.shape)) * size_of(declared.dtype);
  }

  // A blob's bytes before packing.
  Result<std::vector<uint8_t>> original(const PackFile& file, const PackTable& table, size_t field,
                                        int64_t record, Buffer& buffer) const {
    Result<void> read = file.read(field, record, true, buffer);
    if (!read) return std::move(read.error());
    const BlobFacts facts = table.fields[field].blob(static_cast<size_t>(record));
    std::string wrong;
    Result<std::vector<uint8_t>> bytes = std::vector<uint8_t>();
    if (static_cast<PackForm>(facts.form & kFormBits) == PackForm::kAsIs) {
      bytes->assign(buffer.bytes().begin(), buffer.bytes().end());
    } else if (is_indexed_video(header_.schema[field])) {
      const std::optional<IndexedVideo> video = indexed_video_from(buffer.bytes());
      if (video) bytes->assign(video->file.begin(), video->file.end());
      if (!video) wrong = "it is not a video with its index";
    } else {
      bytes = unpack_jpeg(buffer.bytes());
      if (!bytes) wrong = bytes.error().what;
    }
    if (wrong.empty() &&
        (bytes->size() != facts.original_bytes || crc32c(*bytes) != facts.original_sum)) {
      wrong = "the bytes differ from those that were packed";
    }
    if (wrong.empty()) return bytes;
    return Error{.code = &kOtherBytes,
                 .what = "field '" + header_.schema[field].name + "': " + wrong,
                 .where = Where{.file = file.path(),
                                .member = std::string(file.key(record)),
                                .offset = static_cast<int64_t>(file.blob(field, record).offset)},
                 .hint = "copy the pack again"};
  }

  Result<std::vector<uint8_t>> array_row(const PackFile& file, const PackTable& table, size_t field,
                                         int64_t record, Buffer& buffer) const {
    if (column_bytes(header_.schema[field]) > 0) {
      const std::span<const uint8_t> value = file.column(field, record);
      return std::vector<uint8_t>(value.begin(), value.end());
    }
    return original(file, table, field, record, buffer);
  }

  bool write_file(const PackFile& file, size_t field, int64_t record,
                  const std::vector<uint8_t>& bytes) {
    const Field& declared = header_.schema[field];
    const std::string key(file.key(record));
    const bool first = field == files_.front();
    std::string name = key;
    if (!first || !header_.keys_are_paths) {
      std::string suffix(declared.encoded ? suffix_of(declared.kind, bytes) : ".bin");
      if (has_own_shape(declared)) suffix = ".npy";
      name = (first ? "" : declared.name + "/") +
             std::string(header_.keys_are_paths ? without_suffix(key) : key) + suffix;
    }
    if (!has_own_shape(declared)) return folder_.write(name, bytes);
    const size_t tail = declared.shape.size() * sizeof(int64_t);
    Shape shape(declared.shape.size());
    if (bytes.size() < tail) return folder_.write(name, bytes);
    std::memcpy(shape.data(), bytes.data() + bytes.size() - tail, tail);
    std::vector<uint8_t> array = npy_header(declared.dtype, shape);
    array.insert(array.end(), bytes.begin(), bytes.end() - static_cast<ptrdiff_t>(tail));
    return folder_.write(name, array);
  }

  Result<std::string> manifest_line(const PackFile& file, const PackTable& table, int64_t record,
                                    Buffer& buffer) const {
    JsonWriter json;
    json.begin_object();
    json.member("key", std::string_view(file.key(record)));
    for (size_t i = 0; i < header_.schema.size(); ++i) {
      const Field& field = header_.schema[i];
      if (is_number(field)) {
        const int64_t value = number(file, i, record);
        json.member(field.name, value);
        if (field.kind == FieldKind::kLabel && value >= 0 &&
            value < static_cast<int64_t>(header_.classes.size())) {
          json.member("class", header_.classes[static_cast<size_t>(value)]);
        }
      } else if (field.kind == FieldKind::kText) {
        Result<std::vector<uint8_t>> text = original(file, table, i, record, buffer);
        if (!text) return std::move(text.error());
        json.member(field.name, text_from_bytes(*text));
      }
    }
    json.end_object();
    return json.text() + "\n";
  }

  static void count(bool written, UnpackReport& report) {
    ++(written ? report.files : report.present);
  }

  static void add(Unpacked record, UnpackReport& report) {
    report.files += record.files;
    report.present += record.present;
    report.bytes += record.bytes;
    if (record.damaged) report.damaged.push_back(std::move(*record.damaged));
  }

  const OpenedPack& pack_;
  const PackHeader& header_;
  OutputFolder& folder_;
  std::vector<PackTable> tables_;
  std::vector<int64_t> begins_;
  std::vector<size_t> files_, arrays_;  // field indices
  int64_t size_ = 0;
};

}  // namespace

UnpackReport unpack(const std::string& path, const std::string& folder,
                    const UnpackOptions& options, const Progress& progress) {
  const double begin = now();
  const OpenedPack pack = open_pack(path, options.recover);
  OutputFolder output(folder, options.overwrite);
  UnpackReport report;
  report.missing = pack.missing;
  const int threads = options.threads > 0 ? options.threads : allowed_cores().count();
  Unpacking(pack, output).run(threads, progress, report);
  report.seconds = now() - begin;
  return report;
}

}  // namespace headrace
