// SPDX-License-Identifier: Apache-2.0
// MDS: the shards of MosaicML Streaming, a folder with index.json. Records are the samples, shard
// by shard in index order. Compressed shards are decompressed once, into the cache folder.
#include <algorithm>
#include <array>
#include <cstring>

#include "headrace/base/registry.h"
#include "headrace/base/text.h"
#include "headrace/formats/folder/folder_listing.h"
#include "headrace/formats/folder/splits.h"
#include "headrace/formats/format.h"
#include "headrace/formats/mds/mds_columns.h"
#include "headrace/formats/mds/mds_index.h"
#include "headrace/formats/shards/extent_source.h"
#include "headrace/formats/shards/unpacked_files.h"
#include "headrace/sources/fingerprint.h"
#include "headrace/sources/labeled_files.h"
#include "headrace/sources/named_files.h"
#include "headrace/sources/readable_text.h"
#include "headrace/storage/file.h"
#include "headrace/storage/paths.h"

namespace headrace {
namespace {

// A shard: u32 samples; u32 offsets, one more than samples; its description; the samples.
constexpr size_t kOffsetsTogether = 65536;
constexpr int64_t kMaxExamples = 8;

// Whether it looks like an index written by MosaicML Streaming, which sorts keys: "shards", each
// beginning with "column_encodings".
bool is_index(const std::string& path) {
  if (!is_file(path)) return false;
  std::array<uint8_t, 2048> begin{};
  const Result<size_t> read = read_prefix(path, begin);
  if (!read) return false;
  const std::string_view text(reinterpret_cast<const char*>(begin.data()), *read);
  return text.find("\"shards\"") != std::string_view::npos &&
         text.find("\"column_encodings\"") != std::string_view::npos;
}

// train/index.json, val/index.json, ... in a folder without an index of its own.
std::vector<std::string> splits_in(const std::string& root) {
  std::vector<std::string> out;
  for (const std::string_view split : kSplitNames) {
    if (is_index(joined(joined(root, split), "index.json"))) out.emplace_back(split);
  }
  return out;
}

// --- Finding the samples
// --------------------------------------------------------------------------

class ShardScan {
 public:
  using Passed = std::function<void(uint64_t)>;
  ShardScan(const File& file, ContainerIndex& out, std::string why)
      : file_(file), out_(out), why_(std::move(why)) {}

  Result<void> run(uint64_t expected, const Passed& passed) {
    uint32_t samples = 0;
    if (file_.size() >= sizeof samples) {
      if (Result<void> read = read_at(0, {&samples, 1}); !read) return read;
    }
    table_end_ = sizeof samples + sizeof(uint32_t) * (uint64_t{samples} + 1);
    if (samples != expected || table_end_ > file_.size()) {
      bad(0, file_.size(),
          "index.json declares " + with_commas(static_cast<int64_t>(expected)) +
              " samples for the shard, but the shard, of " +
              with_commas(static_cast<int64_t>(file_.size())) + " bytes, declares " +
              with_commas(samples));
      return {};
    }
    std::vector<uint32_t> offsets(std::min<size_t>(samples, kOffsetsTogether) + 1);
    for (uint64_t first = 0; first < samples; first += offsets.size() - 1) {
      const auto count =
          static_cast<size_t>(std::min<uint64_t>(offsets.size() - 1, samples - first));
      const uint64_t at = sizeof samples + sizeof(uint32_t) * first;
      if (Result<void> read = read_at(at, {offsets.data(), count + 1}); !read) return read;
      for (size_t i = 0; i < count; ++i) {
        if (out_.is_full_of_damage(file_)) {
          bad(last_, file_.size() - last_,
              "too many samples without a position; the rest is not read");
          return {};
        }
        add(offsets[i], offsets[i + 1]);
      }
      last_ = std::max<uint64_t>(last_, std::min<uint64_t>(offsets[count], file_.size()));
      passed(last_);
    }
    return {};
  }

 private:
  Result<void> read_at(uint64_t offset, std::span<uint32_t> out) const {
    return file_.read(offset, {reinterpret_cast<uint8_t*>(out.data()), out.size_bytes()});
  }
  void add(uint32_t begin, uint32_t end) {
    const uint64_t size = file_.size();
    if (begin >= table_end_ && begin <= end && end <= size) {
      out_.records.add(begin, end - begin);
      return;
    }
    const uint64_t from = std::min<uint64_t>(begin, size);
    std::string what = "a sample should be at " + with_commas(begin) + " to " + with_commas(end);
    what += end > size ? ", but the shard has " + with_commas(static_cast<int64_t>(size)) + " bytes"
                       : ", but samples start at " + with_commas(static_cast<int64_t>(table_end_));
    bad(from, end > begin ? std::min<uint64_t>(end, size) - from : 0, std::move(what));
  }
  void bad(uint64_t offset, uint64_t bytes, std::string what) {
    out_.damage.push_back({.record = out_.records.size(),
                           .offset = offset,
                           .code = std::string(bad_sample("").code->id),
                           .what = what + (why_.empty() ? "" : " (" + why_ + ")"),
                           .hint = {}});
    out_.records.add(offset, bytes);
  }

  const File& file_;
  ContainerIndex& out_;
  const std::string why_;  // error if the copy of a packed shard is incomplete
  uint64_t table_end_ = 0, last_ = 0;
};

// --- The source
// -----------------------------------------------------------------------------------

class MdsSource final : public ExtentSource {
 public:
  MdsSource(std::string path, std::unique_ptr<FileSet> files, ContainerIndex index,
            std::unique_ptr<MdsColumns> columns)
      : ExtentSource(std::move(files), std::move(index), columns->schema()),
        path_(std::move(path)),
        columns_(std::move(columns)) {}

  std::string description() const override { return described("mds", path_); }

  std::vector<int64_t> integer_column(std::string_view name) const override {
    const auto field = std::ranges::find(schema(), name, &Field::name);
    if (field == schema().end() || field->dtype != DType::kInt64 || !field->shape.empty() ||
        field->kind == FieldKind::kText || field->kind == FieldKind::kBytes) {
      return {};
    }
    const auto number = static_cast<size_t>(field - schema().begin());
    return column_of(files(), index(), [&](FileWindow& window, int64_t, const Extent& extent) {
      return columns_->integer(number, extent.bytes, [&](uint64_t offset, std::span<uint8_t> part) {
        return window.read(extent.offset + offset, part);
      });
    });
  }

 private:
  size_t buffers() const override { return columns_->buffers(); }
  Result<void> parse(int64_t, std::span<const uint8_t> bytes, const std::vector<bool>& wanted,
                     RecordData& out) const override {
    return columns_->parse(bytes, wanted, out);
  }

  const std::string path_;
  const std::unique_ptr<MdsColumns> columns_;
};

// --- Opening
// --------------------------------------------------------------------------------------

// An index may refer to files anywhere, if the user allows it.
std::string place_of(const std::string& root, const std::string& name) {
  return name.starts_with('/') ? name : joined(root, name);
}

// The shards' files: plain ones if they exist, otherwise copies of the packed ones.
UnpackedFiles files_of(const std::string& root, const std::string& index_path,
                       const MdsIndex& index, const Progress& progress) {
  UnpackedFiles out;
  std::vector<std::string> packed;
  std::vector<size_t> places;
  for (const MdsShard& shard : index.shards) {
    const std::string raw = place_of(root, shard.raw), zip = place_of(root, shard.packed);
    if (!shard.raw.empty() && is_file(raw)) {
      out.paths.push_back(raw);
    } else if (!shard.packed.empty() && is_file(zip)) {
      const std::string packing = shard.packing.substr(0, shard.packing.find(':'));
      if (packing != "zstd" && packing != "gz") {
        mds_not_read(zip + " is compressed with " + (packing.empty() ? "nothing known" : packing),
                     "decompress the shards, or rewrite them with compression=\"zstd\"");
      }
      places.push_back(out.paths.size());
      packed.push_back(zip);
      out.paths.push_back(zip);
    } else {
      bad_mds_index(index_path,
                    "it refers to the shard \"" + (shard.raw.empty() ? shard.packed : shard.raw) +
                        "\", which is not in the folder",
                    "copy the missing shards, too: all " +
                        with_commas(static_cast<int64_t>(index.shards.size())) + " of the index");
    }
  }
  out.names = out.paths;
  if (packed.empty()) return out;
  const UnpackedFiles copies =
      unpacked_files(std::move(packed), [](std::span<const uint8_t>) { return false; }, progress);
  for (size_t i = 0; i < places.size(); ++i) out.paths[places[i]] = copies.paths[i];
  out.damage = copies.damage;
  return out;
}

ContainerIndex index_of_shards(const FileSet& files, const MdsIndex& index,
                               const UnpackedFiles& unpacked, const Progress& progress) {
  std::map<std::string, uint64_t> samples;
  Fingerprint expected;
  for (size_t i = 0; i < index.shards.size(); ++i) {
    samples[files.path(i)] = index.shards[i].samples;
    expected.add(index.shards[i].samples);
  }
  return index_of(
      "mds 1 " + std::to_string(expected.value()), files,
      [&](const File& file, ContainerIndex& out, const std::function<void(uint64_t)>& passed) {
        const Error* const damage = unpacked.damage_of(file.path());
        return ShardScan(file, out, damage ? damage->what : "")
            .run(samples.at(file.path()), passed);
      },
      progress);
}

// Determines the schema from one of the first valid samples.
void look_at_samples(const FileSet& files, const ContainerIndex& index, MdsColumns& columns) {
  std::vector<uint8_t> sample;
  RecordData parsed;
  columns.begin({});
  const std::vector<bool> all(columns.schema().size(), true);
  begin_record(0, all.size(), columns.buffers(), parsed);
  int64_t looked = 0;
  for (int64_t i = 0; i < index.records.size() && looked < kMaxExamples; ++i) {
    if (index.is_damaged(i)) continue;
    const Extent extent = index.records[i];
    sample.resize(extent.bytes);
    if (Result<void> read = files.read(extent.file, extent.offset, sample); !read) {
      throw Exception(std::move(read.error()));
    }
    if (columns.begin(sample) && columns.parse(sample, all, parsed)) return;
    ++looked;
  }
}

SourcePtr open_mds(const std::string& path, const Arguments& arguments, const Progress& progress) {
  std::string root = path;
  if (is_file(root)) root = parent_path(root);
  if (root.empty()) root = ".";
  const std::string index_path = joined(root, "index.json");
  if (!is_file(index_path)) {
    if (const std::vector<std::string> splits = splits_in(root); !splits.empty()) {
      raise_splits(root, splits, false);
    }
  }
  const MdsIndex index = read_mds_index(index_path, arguments.flag("allow_outside"));
  const std::vector<std::string> chosen =
      arguments.is_none("columns") ? std::vector<std::string>() : arguments.texts("columns");
  auto columns = std::make_unique<MdsColumns>(index.columns, chosen);
  const UnpackedFiles unpacked = files_of(root, index_path, index, progress);
  std::unique_ptr<FileSet> files = unpacked.file_set();
  ContainerIndex samples = index_of_shards(*files, index, unpacked, progress);
  look_at_samples(*files, samples, *columns);
  return std::make_shared<MdsSource>(path, std::move(files), std::move(samples),
                                     std::move(columns));
}

bool is_mds(const std::string& path) {
  if (is_file(path)) return path.ends_with("index.json") && is_index(path);
  return is_index(joined(path, "index.json")) || !splits_in(path).empty();
}

const FormatRecord kMds{
    .name = "mds",
    .doc =
        "A folder of MDS shards with their index.json, as written by MosaicML Streaming's "
        "MDSWriter, uncompressed or compressed with Zstandard or gzip. Records are the samples in "
        "the index's order. Fields: the columns, by their encodings.",
    .example = "hr.open(\"mds/train/\")",
    .params = {{.name = "columns",
                .type = ParamType::kStrings,
                .doc = "The columns to read; default: all. Other columns are never parsed, so "
                       "they may be pickles."},
               outside_param()},
    .recognizes = is_mds,
    .open = open_mds};
const Register<FormatRecord> registered_mds_format(kMds);

}  // namespace
}  // namespace headrace
