// SPDX-License-Identifier: Apache-2.0
#include "headrace/sources/columns/columns.h"

#include <algorithm>

#include "headrace/base/text.h"
#include "headrace/sources/columns/column_cell.h"
#include "headrace/sources/columns/column_video.h"
#include "headrace/sources/field_names.h"
#include "headrace/sources/labeled_files.h"
#include "headrace/sources/named_files.h"
#include "headrace/sources/readable_text.h"

namespace headrace {
namespace {

const ErrorCode kLargeRecord{
    "HR0421", ErrorKind::kResource, "array record too large for the memory limit",
    "A record of an array file is larger than memory_limit leaves for one record. Raise "
    "memory_limit, or store smaller records."};

const ErrorCode kNoValue{
    "HR0428", ErrorKind::kData, "record without a value",
    "A table's column has no value (null) for this record, and the field needs one. Filter such "
    "rows out, fill them in, or let on_error= skip the record."};

class ColumnSource final : public Source {
 public:
  ColumnSource(Schema schema, std::vector<Cell> cells, int64_t size, std::string title)
      : schema_(std::move(schema)),
        cells_(std::move(cells)),
        size_(size),
        title_(std::move(title)) {
    Fingerprint print;
    print.add("records");
    print.add(static_cast<uint64_t>(size_));
    for (size_t i = 0; i < cells_.size(); ++i) {
      Cell& cell = cells_[i];
      cell.names.shrink();
      cell.buffer = buffers_;
      buffers_ += cell.buffers();
      async_ |= is_async(cell, size_);
      add_cell(schema_[i], cell, size_, print);
      videos_.push_back(VideoColumn::of(schema_, cells_, i, size_));
    }
    fingerprint_ = print.value();
  }

  int64_t size() const override { return size_; }
  const Schema& schema() const override { return schema_; }
  ReadStyle read_style() const override {
    if (buffers_ == 0) return ReadStyle::kMemory;
    return async_ ? ReadStyle::kLater : ReadStyle::kFiles;
  }
  void pieces(int64_t index, const std::vector<bool>& wanted,
              std::vector<FilePiece>& out) const override {
    for (size_t field = 0; async_ && field < cells_.size(); ++field) {
      if (!wanted[field]) continue;
      if (videos_[field]) {
        videos_[field]->add_pieces(index, out);
      } else {
        add_pieces(cells_[field], index, out);
      }
    }
  }
  bool prepare_pieces(int64_t index, const std::vector<bool>& wanted, bool wait) const override {
    bool is_ready = true;
    for (size_t field = 0; async_ && field < videos_.size(); ++field) {
      if (wanted[field] && videos_[field]) is_ready &= videos_[field]->prepare(index, false);
    }
    // Only now, so that the tables of all its videos are read at once.
    for (size_t field = 0; wait && !is_ready && field < videos_.size(); ++field) {
      if (wanted[field] && videos_[field]) videos_[field]->prepare(index, true);
    }
    return is_ready || wait;
  }
  std::string separate_file(int64_t index, size_t field) const override {
    std::string path;
    if (cells_[field].form == Cell::Form::kFile && !videos_[field]) {
      cells_[field].set_path(index, path);
    }
    return path;
  }
  uint64_t fingerprint() const override { return fingerprint_; }
  bool shares_files(size_t field) const override {
    return cells_[field].form == Cell::Form::kFile && !cells_[field].which.empty();
  }

  void read(std::span<const int64_t> indices, const std::vector<bool>& wanted,
            std::span<RecordData> out) const override {
    std::string path;
    for (size_t i = 0; i < out.size(); ++i) {
      const int64_t record = indices[i];
      begin_record(record, cells_.size(), buffers_, out[i]);
      for (size_t field = 0; field < cells_.size(); ++field) {
        if (!wanted[field]) continue;
        if (videos_[field] && out[i].by_range && (*out[i].by_range)[field]) {
          videos_[field]->read(record, field, out[i]);
        } else {
          read_cell(cells_[field], record, field, path, out[i]);
        }
      }
    }
  }

  std::string key(int64_t index) const override {
    const Cell* const files = first_files();
    if (!files) return std::to_string(index);
    std::string out(files->name(index));
    return files->which.empty() ? out : out + "#" + std::to_string(index);
  }
  Where where(int64_t index) const override {
    const Cell* const files = first_files();
    return {.file = files ? std::string(files->name(index)) : key(index), .record = index};
  }

  std::string file(int64_t index, size_t field) const override {
    if (cells_[field].form != Cell::Form::kFile) return where(index).file;
    std::string path;
    cells_[field].set_path(index, path);
    return path;
  }

  // The folder of the first file, because there is no better one.
  std::string root() const override {
    const Cell* const files = first_files();
    if (!files || size_ == 0) return {};
    if (!files->root.empty()) return files->root;
    const std::string_view path = files->name(0);
    const size_t slash = path.rfind('/');
    return slash == std::string_view::npos ? "." : std::string(path.substr(0, slash + 1));
  }

  std::vector<int64_t> integer_column(std::string_view field) const override {
    for (size_t i = 0; i < cells_.size(); ++i) {
      if (schema_[i].name != field || cells_[i].form != Cell::Form::kScalar) continue;
      const auto* values = reinterpret_cast<const int64_t*>(cells_[i].data);
      return {values, values + size_};
    }
    return {};
  }

  const uint8_t* dense_values(size_t field) const override {
    const Cell& cell = cells_[field];
    const bool dense = cell.form == Cell::Form::kInMemory || cell.form == Cell::Form::kScalar;
    return dense ? cell.data : nullptr;
  }

  std::vector<std::string> classes() const override {
    for (const Cell& cell : cells_) {
      if (!cell.classes.empty()) return cell.classes;
    }
    return {};
  }

  std::string description() const override {
    std::string names;
    for (const Field& field : schema_) names += (names.empty() ? "" : ", ") + field.name;
    std::string out = title_.empty() ? "records of " + names : title_;
    out += " (" + count_text(size_, "record");
    if (const auto count = static_cast<int64_t>(classes().size()); count > 0 && !title_.empty()) {
      out += ", " + count_text(count, "class", "classes");
    }
    return out + ")";
  }

 private:
  const Cell* first_files() const {  // null if no column has files
    const auto found = std::ranges::find(cells_, Cell::Form::kFile, &Cell::form);
    return found == cells_.end() ? nullptr : &*found;
  }

  static bool is_async(const Cell& cell, int64_t size) {
    if (cell.form == Cell::Form::kFile) {
      return size > 0 && headrace::is_async(cell.name(0));
    }
    return cell.form == Cell::Form::kFileArray && cell.array.is_async();
  }

  static void add_pieces(const Cell& cell, int64_t record, std::vector<FilePiece>& out) {
    if (cell.form == Cell::Form::kFile) {
      FilePiece piece;
      cell.set_path(record, piece.path);
      add_piece(std::move(piece), out);
    }
    if (cell.form == Cell::Form::kFileArray) cell.array.add_piece(record, out);
  }

  static void read_cell(const Cell& cell, int64_t record, size_t field, std::string& path,
                        RecordData& out) {
    FieldData& data = out.fields[field];
    switch (cell.form) {
      case Cell::Form::kInMemory:
        data.bytes = {cell.data + record * cell.bytes, cell.bytes};
        break;
      case Cell::Form::kScalar:
        data.scalar = reinterpret_cast<const int64_t*>(cell.data)[record];
        break;
      case Cell::Form::kText: {
        data.bytes = bytes_from_text(cell.name(record));
        break;
      }
      case Cell::Form::kFile:
        cell.set_path(record, path);
        read_named_picture(path, cell.root, record, field, cell.buffer, out, !cell.which.empty());
        break;
      case Cell::Form::kWindow:
        read_into(cell, record, cell.bytes * cell.offsets.size(), data, out, [&](Buffer& buffer) {
          read_window(cell, record, {buffer.data(), buffer.size()});
          return Result<void>();
        });
        break;
      case Cell::Form::kBlob:
        read_blob(cell, record, data, out);
        break;
      case Cell::Form::kFileArray:
        read_into(cell, record, cell.bytes, data, out, [&](Buffer& buffer) {
          return cell.array.read(record, buffer, out.owned[cell.buffer + 1]);
        });
    }
  }

  static void read_blob(const Cell& cell, int64_t record, FieldData& data, RecordData& out) {
    if (const std::optional<Blob> blob = blob_of(cell, record)) {
      data.shape.clear();
      if (cell.is_vector) data.shape = {static_cast<int64_t>(blob->bytes / cell.bytes)};
      if (blob->file < 0) {
        data.bytes = {blob->data, blob->bytes};
        return;
      }
      read_into(cell, record, blob->bytes, data, out, [&](Buffer& buffer) {
        return blob->read(cell.blobs, {buffer.data(), blob->bytes});
      });
    } else if (!cell.may_be_null && out.result) {
      out.result = Error{.code = &kNoValue,
                         .what = "a column has no value (null) for it",
                         .where = Where{.record = record},
                         .hint = "filter such rows out of the table"};
    }
  }

  // Fills the cell's buffer with a value of this many bytes, by `fill(buffer)`.
  template <class Fill>
  static void read_into(const Cell& cell, int64_t record, size_t bytes, FieldData& data,
                        RecordData& out, const Fill& fill) {
    if (!out.result) return;
    Buffer& buffer = out.owned[cell.buffer];
    if (bytes > out.max_bytes) {
      out.result = too_large(cell, bytes, out.max_bytes);
    } else {
      buffer.resize(bytes);
      out.result = fill(buffer);
    }
    if (out.result) {
      data.bytes = buffer.bytes();
    } else {
      out.result.error().where.record = record;
    }
  }

  static Error too_large(const Cell& cell, uint64_t bytes, uint64_t max_bytes) {
    const bool in_file = cell.form == Cell::Form::kFileArray;
    return {.code = &kLargeRecord,
            .what = "the record has " + with_commas(static_cast<int64_t>(bytes)) +
                    " bytes, the cap is " + with_commas(static_cast<int64_t>(max_bytes)),
            .where = Where{.file = in_file ? cell.array.parts.front().file->path() : std::string()},
            .hint = "raise memory_limit"};
  }

  Schema schema_;
  std::vector<Cell> cells_;
  int64_t size_;
  std::string title_;
  size_t buffers_ = 0;  // for reading a record
  bool async_ = false;  // some files are in an asynchronous storage
  // By field; null for all others. They refer to cells_.
  std::vector<std::unique_ptr<const VideoColumn>> videos_;
  uint64_t fingerprint_ = 0;
};

void check(const std::vector<Column>& columns) {
  if (columns.empty()) no_columns();
  if (columns.size() > kMaxFields) {
    bad_column(columns[0].name,
               "it is one of " + with_commas(static_cast<int64_t>(columns.size())) +
                   " fields; at most " + with_commas(kMaxFields) + " are supported",
               "select fields with fields=; or store related values as one array");
  }
  FieldNames names;
  for (size_t i = 0; i < columns.size(); ++i) {
    const std::string& name = columns[i].name;
    if (!is_field_name(name)) {
      bad_column(name, "a field's name is a word, or words joined by dots",
                 "letters, digits and _, no digit first");
    }
    if (is_reserved_field(name)) {
      bad_column(name, "every source has a field of this name already", "choose another");
    }
    if (!names.add(name)) bad_column(name, "it appears twice");
    if (length_of(columns[i]) != length_of(columns[0])) {
      bad_column(name,
                 "it has " + count_text(length_of(columns[i]), "record") + ", but '" +
                     columns[0].name + "' has " + with_commas(length_of(columns[0])),
                 "all fields need the same number of records");
    }
  }
}

}  // namespace

SourcePtr records(std::vector<Column> columns, const std::string& title) {
  check(columns);
  const int64_t size = length_of(columns[0]);
  Schema schema;
  std::vector<Cell> cells(columns.size());
  for (size_t i = 0; i < columns.size(); ++i) {
    schema.push_back(make_cell(columns[i], cells[i]));
    columns[i].values = TextColumn{};  // free the caller's copy before the next one is packed
  }
  return std::make_shared<ColumnSource>(std::move(schema), std::move(cells), size, title);
}

}  // namespace headrace
