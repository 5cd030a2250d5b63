// SPDX-License-Identifier: Apache-2.0
// TFRecord: frames with checksums, usually with a tf.train.Example in each. Records are in file
// order, files in the given order.
#include <algorithm>
#include <map>
#include <set>

#include "headrace/base/registry.h"
#include "headrace/base/text.h"
#include "headrace/codecs/codec.h"
#include "headrace/formats/format.h"
#include "headrace/formats/shards/shard_files.h"
#include "headrace/formats/shards/unpacked_files.h"
#include "headrace/formats/tfrecord/tfrecord_frames.h"
#include "headrace/formats/tfrecord/tfrecord_source.h"
#include "headrace/sources/readable_text.h"
#include "headrace/storage/file.h"

namespace headrace {
namespace {

const ErrorCode kNothingToRead{
    "HR0475", ErrorKind::kConfig, "no usable records in TFRecord files",
    "The TFRecord files contain no readable record, so their fields are unknown, or index= lists "
    "files that do not belong to these TFRecords. An index file has a line \"offset size\" per "
    "record, as written by NVIDIA's tfrecord2idx, and there is one per file, in the same order. "
    "Without index= the files are scanned once."};

const std::vector<std::string_view> kSuffixes = {".tfrecord",    ".tfrecords",    ".tfrec",
                                                 ".tfrecord.gz", ".tfrecords.gz", ".tfrec.gz"};
constexpr int64_t kLookedAt = 64;       // records to sample, and files from which the first one is
                                        // sampled
constexpr int64_t kMaxLookedAt = 1024;  // records, if they are small
constexpr uint64_t kBytesLookedAt = uint64_t{8} << 20;
constexpr uint64_t kLargestLookedAt = uint64_t{64} << 20;

bool is_tf_header(std::span<const uint8_t> first_bytes) {
  uint64_t length = 0;
  return first_bytes.size() >= kTfHeaderBytes && tf_length(first_bytes, length);
}

bool recognizes(const std::string& path) {
  return is_shard_path(path, kSuffixes, [](const std::string& file) {
    return has_one_suffix(file, kSuffixes) || begins_like(file, is_tf_header);
  });
}

// --- Where the records are
// ------------------------------------------------------------------------

// Names of index files next to a file: "x.tfrecord.idx", "x.idx".
std::vector<std::string> index_names(const std::string& path) {
  std::vector<std::string> names = {path + ".idx"};
  const size_t dot = path.rfind('.');
  if (dot != std::string::npos && path.find('/', dot) == std::string::npos) {
    names.push_back(path.substr(0, dot) + ".idx");
  }
  return names;
}

// File -> its index file, as paired by index=.
std::map<std::string, std::string> given_indexes(const std::vector<std::string>& paths,
                                                 const Arguments& arguments) {
  std::map<std::string, std::string> out;
  if (arguments.is_none("index")) return out;
  const std::vector<std::string> indexes = shard_files(arguments.text("index"), {".idx"});
  if (indexes.size() != paths.size()) {
    raise(kNothingToRead,
          "index= names " + count_text(static_cast<int64_t>(indexes.size()), "file") + " for " +
              count_text(static_cast<int64_t>(paths.size()), "TFRecord file"),
          "pass one index per file, in the same order");
  }
  for (size_t i = 0; i < paths.size(); ++i) out[paths[i]] = indexes[i];
  return out;
}

Result<bool> take_index(const File& file, const std::string& name, ContainerIndex& out) {
  Buffer text;
  if (Result<void> read = read_file(name, text); !read) return std::move(read.error());
  return take_tfrecord_index(file, text_from_bytes(text.bytes()), out);
}

// A compressed file that could not be decompressed completely is one bad record after its last
// complete record.
void add_cut(const File& file, const Error& cut, ContainerIndex& out) {
  const std::string what =
      cut.what + " (at byte " + std::to_string(cut.where.offset) + " of the compressed file)";
  if (out.damage.empty()) {
    out.add_damage(file, file.size(), *cut.code, what, cut.hint);
    return;
  }
  Damage& damage = out.damage.back();
  damage.code = cut.code->id;
  damage.what = what;
  damage.hint = cut.hint;
}

ContainerIndex records_of(const UnpackedFiles& unpacked, const FileSet& files,
                          const std::map<std::string, std::string>& indexes,
                          const Progress& progress) {
  const ScanFile scan = [&](const File& file, ContainerIndex& out,
                            const std::function<void(uint64_t)>& passed) -> Result<void> {
    if (const auto given = indexes.find(file.path()); given != indexes.end()) {
      Result<bool> taken = take_index(file, given->second, out);
      if (!taken) return std::move(taken.error());
      if (*taken) return {};
      return Error{.code = &kNothingToRead,
                   .what = "the index " + given->second + " does not belong to the file",
                   .where = Where{.file = file.path()},
                   .hint = "recreate it, or omit index="};
    }
    for (const std::string& name : index_names(file.path())) {
      if (!is_file(name)) continue;
      const Result<bool> taken = take_index(file, name, out);
      if (taken && *taken) return {};
    }
    if (Result<void> scanned = scan_tfrecord(file, out, passed); !scanned) return scanned;
    if (const Error* cut = unpacked.damage_of(file.path())) add_cut(file, *cut, out);
    return {};
  };
  std::string kind = "tfrecord 1";
  for (const auto& [file, index] : indexes) kind += "\n" + index;
  return index_of(kind, files, scan, progress);
}

// --- What they contain
// ----------------------------------------------------------------------------

struct Probed {
  TfSample sample;
  int64_t readable = 0;
  int64_t picture_count = 0;  // data that are encoded pictures
  // A few pictures may be bad, so the majority of the records decides the format.
  bool pictures() const { return 2 * picture_count > readable; }
};

// The first record of some files, and a sample of all.
std::vector<int64_t> records_to_look_at(const ContainerIndex& index, uint64_t total_bytes) {
  std::set<int64_t> out;
  const auto files = static_cast<int64_t>(index.records.files());
  for (int64_t i = 0; i < std::min(files, kLookedAt); ++i) {
    const auto file = static_cast<size_t>(i * files / std::min(files, kLookedAt));
    if (index.records.first_of(file) < index.records.end_of(file)) {
      out.insert(index.records.first_of(file));
    }
  }
  const int64_t records = index.records.size();
  const uint64_t usual = total_bytes / static_cast<uint64_t>(std::max<int64_t>(records, 1)) + 1;
  const int64_t wanted = std::min(
      records, std::clamp(static_cast<int64_t>(kBytesLookedAt / usual), kLookedAt, kMaxLookedAt));
  for (int64_t i = 0; i < wanted; ++i) out.insert(i * records / wanted);
  for (const Damage& damage : index.damage) out.erase(damage.record);
  return {out.begin(), out.end()};
}

Probed look_at(const FileSet& files, const ContainerIndex& index) {
  Probed out;
  Buffer buffer;
  for (const int64_t record : records_to_look_at(index, files.total_bytes())) {
    const Extent extent = index.records[record];
    if (extent.bytes > kLargestLookedAt) continue;
    buffer.resize(extent.bytes);
    if (!files.read(extent.file, extent.offset, {buffer.data(), buffer.size()})) continue;
    const Result<std::span<const uint8_t>> data = tf_data(buffer.bytes(), true);
    if (!data) continue;
    ++out.readable;
    out.sample.add(*data);
    out.picture_count += begins_like_image(*data);
  }
  return out;
}

[[noreturn]] void raise_nothing_readable(const std::string& path, const ContainerIndex& index) {
  if (index.damage.empty()) {
    raise(kNothingToRead, "there is no record in " + path,
          "check the path, and the program that wrote it");
  }
  raise(kNothingToRead,
        "no record of " + path + " can be read; the first damage: " + index.damage.front().what,
        "copy or recreate the files");
}

SourcePtr open(const std::string& path, const Arguments& arguments, const Progress& progress) {
  const UnpackedFiles unpacked =
      unpacked_files(shard_files(path, kSuffixes), is_tf_header, progress);
  std::unique_ptr<FileSet> files = unpacked.file_set();
  ContainerIndex index =
      records_of(unpacked, *files, given_indexes(unpacked.paths, arguments), progress);
  const Probed looked = look_at(*files, index);
  if (looked.readable == 0) raise_nothing_readable(path, index);

  TfRecordOptions options;
  options.title = path.substr(0, path.find('\n'));
  options.verify = arguments.flag("verify");
  options.empty_if_missing = arguments.text("missing") == "empty";
  options.label_offset = arguments.integer("label_offset");
  if (!arguments.is_none("classes")) options.classes = arguments.texts("classes");

  const std::string& content = arguments.text("content");
  const bool mostly = looked.sample.examples() * 2 > looked.readable;
  const bool fields_given = !arguments.is_none("fields");
  if (content == "bytes" || (content == "auto" && !fields_given && !mostly)) {
    Field data{.name = "data", .kind = FieldKind::kBytes};
    if (looked.pictures()) {
      data = {.name = "image", .kind = FieldKind::kImage, .shape = {-1, -1, -1}, .encoded = true};
    }
    return std::make_shared<TfRecordSource>(std::move(files), std::move(index), std::move(data),
                                            std::move(options));
  }
  std::vector<TfField> fields = fields_given
                                    ? given_fields(arguments.texts("fields"), looked.sample,
                                                   looked.readable == index.records.size())
                                    : guessed_fields(looked.sample, options.left_out);
  if (fields.empty()) {
    raise(kNothingToRead, "the records of " + path + " have no feature that could be a field",
          "content=\"bytes\" delivers their data unchanged");
  }
  return std::make_shared<TfRecordSource>(std::move(files), std::move(index), std::move(fields),
                                          std::move(options));
}

const FormatRecord kTfRecord{
    .name = "tfrecord",
    .doc = "TFRecord files with tf.train.Example, SequenceExample or arbitrary data; one or many.",
    .example = "hr.open(\"train-{00000..01023}-of-01024\", fields=[\"image=image/encoded\"])",
    .params =
        {{.name = "fields",
          .type = ParamType::kStrings,
          .doc = "The fields, each as \"NAME=FEATURE\" or \"NAME=FEATURE:TYPE[SHAPE]\". None: all "
                 "features of the sampled records that can be fields."},
         {.name = "missing",
          .type = ParamType::kString,
          .doc = "What to do if a record lacks a text or bytes feature: \"error\" makes it a bad "
                 "record, \"empty\" substitutes an empty value.",
          .fallback = std::string("error"),
          .choices = {"error", "empty"}},
         {.name = "label_offset",
          .type = ParamType::kInt,
          .doc = "Number added to every label: -1 for labels that start at 1, like ImageNet's.",
          .fallback = int64_t{0},
          .minimum = -1e15,
          .maximum = 1e15},
         {.name = "classes",
          .type = ParamType::kStrings,
          .doc = "The class names of the labels 0, 1, 2, ..., which TFRecords do not contain."},
         {.name = "content",
          .type = ParamType::kString,
          .doc = "Contents of a record: \"example\", \"bytes\" (one field), or "
                 "\"auto\": examples if most of the sampled records are.",
          .fallback = std::string("auto"),
          .choices = {"auto", "example", "bytes"}},
         {.name = "index",
          .type = ParamType::kString,
          .doc = "Index files written by tfrecord2idx, one per TFRecord file: a path, pattern or "
                 "folder. None: indexes next to the files are used if they match; otherwise the "
                 "files are scanned.",
          .decides = Affects::kPlace},
         {.name = "verify",
          .type = ParamType::kBool,
          .doc = "Whether to verify the checksum of each record that is read.",
          .fallback = true,
          .decides = Affects::kReading}},
    .recognizes = &recognizes,
    .open = &open,
    .shards = true};
const Register<FormatRecord> registered_tfrecord_format(kTfRecord);

}  // namespace
}  // namespace headrace
