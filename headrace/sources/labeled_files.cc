// SPDX-License-Identifier: Apache-2.0
#include "headrace/sources/labeled_files.h"

#include <memory>
#include <utility>

#include "headrace/sources/named_files.h"
#include "headrace/sources/staged_videos.h"
#include "headrace/storage/file.h"

namespace headrace {
namespace {

enum : size_t { kFileField, kLabelField };

// Files up to this size are read completely: one read ahead is as fast as a few small reads while
// the record waits.
constexpr uint64_t kReadWhole = uint64_t{8} << 20;
// Bytes at each end of a file, where containers have their tables.
constexpr uint64_t kTables = uint64_t{256} << 10;

// Passes an open file to the record. False if the bytes must be read instead, possibly to report an
// error.
bool give_open(const std::string& path, size_t field, bool shared, RecordData& out) {
  if (!out.by_range || !(*out.by_range)[field]) return false;
  if (const StagedVideo* const video = StagedVideos::find(path)) {
    out.fields[field].file = video->file;
    out.fields[field].track = video->track;
    return true;
  }
  if (is_async(path)) return false;
  if (!shared) {
    const Result<FileIdentity> identity = identity_of(path);
    if (!identity || identity->size <= kReadWhole) return false;
  }
  Result<File> file = File::open(path);
  if (!file) return false;
  if (!shared &&
      file->size() > kTables) {  // the tables of shared files have usually been read by the process
    file->will_read(0, kTables);
    file->will_read(file->size() - kTables, kTables);
  }
  out.fields[field].file = std::make_shared<const File>(std::move(*file));
  return true;
}

}  // namespace

void begin_record(int64_t record, size_t fields, size_t buffers, RecordData& out) {
  out.index = record;
  if (!out.result) out.result = {};
  out.fields.resize(fields);
  for (FieldData& field : out.fields) {
    field.bytes = {};
    field.shape.clear();
    field.scalar = 0;
    field.annotated_width = field.annotated_height = 0;
    field.file.reset();
    field.track.reset();
  }
  if (out.owned.size() < buffers) out.owned.resize(buffers);
}

void read_file_field(const std::string& path, int64_t record, size_t field, size_t buffer,
                     RecordData& out, bool shared) {
  if (give_open(path, field, shared, out)) return;
  ReadLimits limits;
  const bool less_memory = out.max_bytes < limits.max_bytes;
  if (less_memory) limits.max_bytes = out.max_bytes;
  Result<void> read = read_file(path, out.owned[buffer], limits);
  if (read) {
    out.fields[field].bytes = out.owned[buffer].bytes();
  } else if (out.result) {
    read.error().where.record = record;
    if (less_memory && read.error().code->kind == ErrorKind::kResource) {
      read.error().hint = "raise memory_limit, or remove the file";
    }
    out.result = std::move(read);
  }
}

LabeledFiles::LabeledFiles(bool labeled, FieldKind kind) {
  Field file{.name = std::string(name_of(kind)), .kind = FieldKind::kBytes};
  record_of(kind).take(file);
  schema_.push_back(std::move(file));
  if (labeled) {
    schema_.push_back({.name = "label", .kind = FieldKind::kLabel, .dtype = DType::kInt64});
  }
}

void LabeledFiles::read(std::span<const int64_t> indices, const std::vector<bool>& wanted,
                        std::span<RecordData> out) const {
  std::string path;
  const std::string folder = root();
  for (size_t i = 0; i < out.size(); ++i) {
    begin_record(indices[i], schema_.size(), 1, out[i]);
    if (wanted[kFileField]) {
      path_of(indices[i], path);
      read_named_picture(path, folder, indices[i], kFileField, 0, out[i]);
    }
    if (labeled() && wanted[kLabelField]) out[i].fields[kLabelField].scalar = label_of(indices[i]);
  }
}

ReadStyle LabeledFiles::read_style() const {
  return is_async(root()) ? ReadStyle::kLater : ReadStyle::kFiles;
}

void LabeledFiles::pieces(int64_t index, const std::vector<bool>& wanted,
                          std::vector<FilePiece>& out) const {
  if (wanted[kFileField]) add_piece({.path = key(index)}, out);
}

std::string LabeledFiles::separate_file(int64_t index, size_t field) const {
  return field == kFileField ? key(index) : "";
}

std::string LabeledFiles::key(int64_t index) const {
  std::string path;
  path_of(index, path);
  return path;
}

std::vector<int64_t> LabeledFiles::integer_column(std::string_view field) const {
  if (!labeled() || field != "label") return {};
  std::vector<int64_t> labels(size());
  for (int64_t i = 0; i < size(); ++i) labels[i] = label_of(i);
  return labels;
}

}  // namespace headrace
