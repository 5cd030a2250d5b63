// SPDX-License-Identifier: Apache-2.0
// RecordIO as written by MXNet: frames, usually with an IRHeader (which has the label) and a
// picture. Records are in file order, files in the given order; an index gives names.
#include <algorithm>
#include <cmath>
#include <optional>

#include "headrace/base/registry.h"
#include "headrace/base/text.h"
#include "headrace/codecs/codec.h"
#include "headrace/formats/format.h"
#include "headrace/formats/recordio/recordio_frames.h"
#include "headrace/formats/recordio/recordio_source.h"
#include "headrace/formats/shards/shard_files.h"
#include "headrace/sources/readable_text.h"
#include "headrace/storage/file.h"

namespace headrace {
namespace {

const ErrorCode kNothingToRead{
    "HR0478", ErrorKind::kConfig, "no usable fields in RecordIO files",
    "Either the RecordIO files contain no readable record, so their fields are unknown, or "
    "label_dtype= or label_shape= does not match the labels. Check the path; copy or recreate the "
    "files."};

const ErrorCode kBadIndex{
    "HR0479", ErrorKind::kConfig, "invalid RecordIO index",
    "index= lists files that are not the indexes of these RecordIO files, or the wrong number of "
    "files. An index has a line \"key<tab>offset\" per record, as written by MXNet's im2rec and "
    "rec2idx, and there is one per file, in the same order. Without index=, an index next to the "
    "file is used if it matches; an index is optional."};

const std::vector<std::string_view> kSuffixes = {".rec"};
constexpr size_t kLookedAt = 64;  // records
constexpr uint64_t kLargestLookedAt = uint64_t{64} << 20;

bool recognizes(const std::string& path) {
  return is_shard_path(path, kSuffixes, [](const std::string& file) {
    const std::string_view magic(reinterpret_cast<const char*>(&kRecordIoMagic),
                                 sizeof kRecordIoMagic);
    return has_one_suffix(file, kSuffixes) || file_begins_with(file, magic);
  });
}

// --- Where the records are
// ------------------------------------------------------------------------

// The text of an index file and its lines.
struct IndexFile {
  Buffer text;
  std::vector<RecordIoKey> entries;
};

std::optional<IndexFile> read_index(const std::string& name) {
  IndexFile out;
  if (!read_file(name, out.text)) return {};
  const std::string_view text = text_from_bytes(out.text.bytes());
  if (!parse_recordio_index(text, out.entries) || out.entries.empty()) return {};
  return out;
}

// The index file of each file; "" if there is none.
std::vector<std::string> index_names(const std::vector<std::string>& paths,
                                     const Arguments& arguments) {
  if (!arguments.is_none("index")) {
    std::vector<std::string> given = shard_files(arguments.text("index"), {".idx"});
    if (given.size() != paths.size()) {
      raise(kBadIndex,
            "index= names " + count_text(static_cast<int64_t>(given.size()), "file") + " for " +
                count_text(static_cast<int64_t>(paths.size()), "RecordIO file"),
            "pass one index per file, in the same order");
    }
    return given;
  }
  std::vector<std::string> names;
  for (const std::string& path : paths) {
    const std::string stem = has_suffix(path, ".rec") ? path.substr(0, path.size() - 4) : path;
    names.emplace_back();
    for (const std::string& name : {stem + ".idx", path + ".idx"}) {
      if (names.back().empty() && is_file(name)) names.back() = name;
    }
  }
  return names;
}

// The keys of a file's records. None if the index has offsets at which no record begins.
std::optional<RecordIoKeys> keys_of(const IndexFile& file, const Extents& records, size_t number) {
  RecordIoKeys keys;
  auto entry = file.entries.begin();
  size_t found = 0;
  for (int64_t i = records.first_of(number); i < records.end_of(number); ++i) {
    const Extent extent = records[i];
    std::string_view key;
    for (; entry != file.entries.end() && entry->offset < extent.offset + extent.bytes; ++entry) {
      if (entry->offset != extent.offset) continue;  // inside of a damaged range
      if (key.empty()) key = entry->key;
      ++found;
    }
    keys.add(key);
  }
  if (found * 2 < file.entries.size()) return {};
  keys.shrink();
  return keys;
}

std::vector<RecordIoKeys> all_keys(const FileSet& files, const Extents& records,
                                   const std::vector<std::string>& names, bool given) {
  std::vector<RecordIoKeys> out(files.size());
  bool any = false;
  for (size_t i = 0; i < files.size(); ++i) {
    const std::optional<IndexFile> index = names[i].empty() ? std::nullopt : read_index(names[i]);
    std::optional<RecordIoKeys> keys;
    if (index) keys = keys_of(*index, records, i);
    if (!keys && given) {
      raise(kBadIndex, names[i] + " is not the index of " + files.path(i),
            "recreate it, or omit index=");
    }
    if (!keys) {
      keys.emplace();
      for (int64_t n = records.first_of(i); n < records.end_of(i); ++n) keys->add("");
    } else {
      any = true;
    }
    out[i] = std::move(*keys);
  }
  if (!any) out.clear();
  return out;
}

// --- What they contain
// ----------------------------------------------------------------------------

// A few pictures may be bad, so the majority of the records decides the format.
struct Probed {
  int64_t readable = 0;
  int64_t plain_pictures = 0;        // data that are encoded pictures, without a header
  int64_t header_picture_count = 0;  // with a header
  bool headers = true;               // all data may begin with a header
  bool pictures() const { return 2 * plain_pictures > readable; }
  bool header_pictures() const { return 2 * header_picture_count > readable; }
  bool single = true, whole = true;  // all labels are single values; all are integers
};

void note(std::span<const uint8_t> data, Probed& out) {
  ++out.readable;
  out.plain_pictures += begins_like_image(data);
  const std::optional<IrHeader> header = parse_ir_header(data);
  if (!header) {
    out.headers = false;
    return;
  }
  out.header_picture_count += begins_like_image(header->content);
  // If no picture proves that there is a header: values as MXNet's pack() writes them.
  const float size = std::abs(header->label);
  const bool sane = std::isfinite(size) && (size == 0 || (size > 1e-9f && size < 1e9f));
  out.headers = out.headers && header->id2 == 0 && sane;
  out.single = out.single && header->flag == 0;
  out.whole = out.whole && std::trunc(header->label) == header->label && size <= 16777216.0f;
}

Probed look_at(const FileSet& files, const ContainerIndex& index) {
  Probed out;
  Buffer buffer, joined;
  const int64_t records = index.records.size();
  const int64_t looked = std::min<int64_t>(records, kLookedAt);
  for (int64_t i = 0; i < looked; ++i) {
    const Extent extent = index.records[i * records / looked];
    if (extent.bytes > kLargestLookedAt) continue;
    buffer.resize(extent.bytes);
    if (!files.read(extent.file, extent.offset, {buffer.data(), buffer.size()})) continue;
    const Result<std::span<const uint8_t>> data = recordio_data(buffer.bytes(), true, joined);
    if (data) note(*data, out);
  }
  return out;
}

void add_label(const Probed& looked, const Arguments& arguments, RecordIoOptions& options,
               Schema& schema) {
  Field label{.name = "label", .kind = FieldKind::kTensor, .dtype = DType::kFloat32};
  const bool given = !arguments.is_none("label_dtype");
  const DType dtype = given ? arguments.dtype("label_dtype") : DType::kInt64;
  if (given && dtype != DType::kInt64 && dtype != DType::kFloat32) {
    raise(kNothingToRead, "label_dtype is int64 or float32, not " + std::string(name_of(dtype)),
          "convert it with T.ToDtype");
  }
  if (!arguments.is_none("label_shape") || !looked.single) {
    options.label = RecordIoLabel::kArray;
    label.shape = {-1};
    if (!arguments.is_none("label_shape")) label.shape = arguments.integers("label_shape");
    for (size_t i = 0; i < label.shape.size(); ++i) {
      const int64_t size = label.shape[i];
      if (size < 1 && (i > 0 || size != -1)) {
        raise(kNothingToRead, "label_shape has a size of " + std::to_string(size),
              "sizes must be positive; only the first may be -1");
      }
    }
    if (given && dtype == DType::kInt64) {
      raise(kNothingToRead, "array labels are always float32", "convert them with T.ToDtype");
    }
  } else if (given ? dtype == DType::kInt64 : looked.whole) {
    options.label = RecordIoLabel::kInteger;
    label.kind = FieldKind::kLabel;
    label.dtype = DType::kInt64;
  } else {
    options.label = RecordIoLabel::kFloat;
  }
  schema.push_back(std::move(label));
}

SourcePtr open(const std::string& path, const Arguments& arguments, const Progress& progress) {
  const std::vector<std::string> paths = shard_files(path, kSuffixes);
  auto files = std::make_unique<FileSet>(paths);
  ContainerIndex index = index_of("recordio 1", *files, scan_recordio, progress);
  const Probed looked = look_at(*files, index);
  if (looked.readable == 0) {
    raise(kNothingToRead,
          index.damage.empty() ? "there is no record in " + path
                               : "no record of " + path +
                                     " can be read; the first damage: " + index.damage.front().what,
          "check the path; copy or recreate the files");
  }
  RecordIoOptions options;
  options.title = path.substr(0, path.find('\n'));
  options.verify = arguments.flag("verify");
  options.header = arguments.is_none("header")
                       ? looked.header_pictures() || (looked.headers && !looked.pictures())
                       : arguments.flag("header");
  if (!arguments.is_none("classes")) options.classes = arguments.texts("classes");
  Schema schema;
  if (options.header ? looked.header_pictures() : looked.pictures()) {
    schema.push_back(
        {.name = "image", .kind = FieldKind::kImage, .shape = {-1, -1, -1}, .encoded = true});
  } else {
    schema.push_back({.name = "data", .kind = FieldKind::kBytes});
  }
  if (options.header) add_label(looked, arguments, options, schema);
  std::vector<RecordIoKeys> keys =
      all_keys(*files, index.records, index_names(paths, arguments), !arguments.is_none("index"));
  return std::make_shared<RecordIoSource>(std::move(files), std::move(index), std::move(schema),
                                          std::move(keys), std::move(options));
}

const FormatRecord kRecordIo{
    .name = "recordio",
    .doc = "MXNet RecordIO files, with labels and images or arbitrary data; one or many.",
    .example = "hr.open(\"train.rec\")",
    .params =
        {{.name = "label_dtype",
          .type = ParamType::kDType,
          .doc = "Dtype of single labels: int64 or float32. None: int64 if those of sampled "
                 "records are whole numbers."},
         {.name = "label_shape",
          .type = ParamType::kInts,
          .doc = "Shape of an array label; its first dimension may be -1 if records differ. None: "
                 "(-1,) if a sampled record has an array.",
          .min_count = 1},
         {.name = "classes",
          .type = ParamType::kStrings,
          .doc = "The class names of the labels 0, 1, 2, ..., which RecordIO files do not "
                 "contain."},
         {.name = "header",
          .type = ParamType::kBool,
          .doc = "Whether records start with MXNet's IRHeader. None: inferred from sampled "
                 "records."},
         {.name = "index",
          .type = ParamType::kString,
          .doc = "Index files, one per RecordIO file: a path, pattern or folder. They provide the "
                 "names of the records. None: those next to the files.",
          .decides = Affects::kPlace},
         {.name = "verify",
          .type = ParamType::kBool,
          .doc = "Whether to search inside records with a wrong length for more records.",
          .fallback = true,
          .decides = Affects::kReading}},
    .recognizes = &recognizes,
    .open = &open,
    .shards = true};
const Register<FormatRecord> registered_recordio_format(kRecordIo);

}  // namespace
}  // namespace headrace
