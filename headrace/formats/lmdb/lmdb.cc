// SPDX-License-Identifier: Apache-2.0
// LMDB environments: records are the values of a database, in key order. Keys take no memory: a key
// stored before its value is read with it; for others see LmdbKeys.
#include <algorithm>
#include <array>
#include <cstring>
#include <optional>

#include "headrace/base/registry.h"
#include "headrace/formats/format.h"
#include "headrace/formats/lmdb/lmdb_pages.h"
#include "headrace/formats/lmdb/lmdb_records.h"
#include "headrace/formats/lmdb/lmdb_values.h"
#include "headrace/formats/shards/extent_source.h"
#include "headrace/formats/shards/shard_files.h"
#include "headrace/sources/readable_text.h"
#include "headrace/storage/file.h"

namespace headrace {
namespace {

constexpr uint64_t kLargestSample = uint64_t{64} << 20;

// The bytes before a value: checked, because the index may come from the cache.
struct Prefix {
  std::span<const uint8_t> key;  // empty if it is stored elsewhere
  size_t bytes = 0;
  std::string problem;
};

Prefix prefix_of(std::span<const uint8_t> bytes, const Extent& extent, uint64_t page_bytes) {
  Prefix out;
  if (extent.offset % page_bytes == 0) {
    out.problem = overflow_problem(bytes, page_bytes, extent.offset / page_bytes);
    out.bytes = kLmdbPageHeader;
    return out;
  }
  std::array<uint16_t, 4> head{};
  if (bytes.size() >= sizeof head) std::memcpy(head.data(), bytes.data(), sizeof head);
  out.bytes = sizeof head + head[3];
  if (bytes.size() != out.bytes + (head[0] | static_cast<uint64_t>(head[1]) << 16)) {
    out.problem = "the entry is no longer where it was when the environment was opened";
    return out;
  }
  out.key = bytes.subspan(sizeof head, head[3]);
  return out;
}

class LmdbSource final : public ExtentSource {
 public:
  LmdbSource(const std::string& path, LmdbOptions options, std::unique_ptr<FileSet> files,
             ContainerIndex index, std::unique_ptr<LmdbValues> values,
             std::vector<uint64_t> page_bytes)
      : ExtentSource(std::move(files), std::move(index), values->schema()),
        path_(path),
        options_(std::move(options)),
        values_(std::move(values)),
        page_bytes_(std::move(page_bytes)),
        keys_(options_, page_bytes_.size()) {
    const auto tally = this->index().tallies.find("integer keys");
    integer_keys_ = tally != this->index().tallies.end() &&
                    tally->second == static_cast<int64_t>(page_bytes_.size());
  }

  std::string key(int64_t record) const override {
    const Extent extent = index().records[record];
    std::optional<std::string> found;
    if (!index().is_damaged(record)) {
      const int64_t number = record - index().records.first_of(extent.file);
      found = extent.offset % page_bytes_[extent.file] == 0
                  ? keys_.key(files(), extent.file, number, integer_keys_)
                  : key_before_value(record, extent);
    }
    return found ? *found : ExtentSource::key(record);
  }

  std::vector<int64_t> integer_column(std::string_view field) const override {
    const auto declared = std::ranges::find(schema(), field, &Field::name);
    if (declared == schema().end() || declared->kind != FieldKind::kLabel) return {};
    return column_of(files(), index(), [this](FileWindow& window, int64_t, const Extent& extent) {
      return label_of(window, extent);
    });
  }

  std::string description() const override {
    std::string out = described("lmdb", path_);
    out.pop_back();
    out += "; values: " + std::string(values_->name());
    for (const auto& [name, count] : index().tallies) {
      if (name.starts_with("left out: ")) out += "; \"" + name.substr(10) + "\" skipped";
      if (name == "named databases") out += "; " + count_text(count, "named database") + " skipped";
      if (name == "recovered") out += "; recovered: the last transaction may be missing";
    }
    return out + ")";
  }

 private:
  size_t buffers() const override { return values_->buffers(); }

  Result<void> parse(int64_t record, std::span<const uint8_t> bytes,
                     const std::vector<bool>& wanted, RecordData& out) const override {
    const Extent extent = index().records[record];
    const Prefix prefix = prefix_of(bytes, extent, page_bytes_[extent.file]);
    if (!prefix.problem.empty()) return bad_lmdb_page(prefix.problem);
    Result<void> parsed = values_->parse(bytes.subspan(prefix.bytes), wanted, out);
    if (parsed) return parsed;
    Where& where = parsed.error().where;
    where.offset = std::max<int64_t>(where.offset, 0) + static_cast<int64_t>(prefix.bytes);
    where.member = key(record);
    return parsed;
  }

  // None if it cannot be read: reading the record reports the error.
  std::optional<std::string> key_before_value(int64_t record, const Extent& extent) const {
    std::array<uint8_t, 1024> bytes;
    const std::span<uint8_t> part(bytes.data(), std::min<uint64_t>(bytes.size(), extent.bytes));
    std::array<uint16_t, 4> head{};
    if (part.size() < sizeof head || !read_part(record, 0, part)) return {};
    std::memcpy(head.data(), part.data(), sizeof head);
    if (head[3] > extent.bytes - sizeof head) return {};
    if (sizeof head + head[3] <= part.size()) {
      return shown_lmdb_key(part.subspan(sizeof head, head[3]), integer_keys_);
    }
    std::vector<uint8_t> key(head[3]);
    if (!read_part(record, sizeof head, key)) return {};
    return shown_lmdb_key(key, integer_keys_);
  }

  Result<int64_t> label_of(FileWindow& window, const Extent& extent) const {
    std::array<uint16_t, 4> head{};
    uint64_t skipped = kLmdbPageHeader;
    if (extent.offset % page_bytes_[extent.file] != 0) {
      uint8_t* const raw = reinterpret_cast<uint8_t*>(head.data());
      if (Result<void> read = window.read(extent.offset, {raw, sizeof head}); !read) {
        return std::move(read.error());
      }
      skipped = sizeof head + head[3];
    }
    if (skipped > extent.bytes) return bad_lmdb_page("damaged");
    return values_->label(extent.bytes - skipped, [&](uint64_t offset, std::span<uint8_t> part) {
      return window.read(extent.offset + skipped + offset, part);
    });
  }

  const std::string path_;
  const LmdbOptions options_;
  const std::unique_ptr<LmdbValues> values_;
  const std::vector<uint64_t> page_bytes_;  // of each file
  bool integer_keys_ = false;
  const LmdbKeys keys_;
};

// --- Opening
// --------------------------------------------------------------------------------------

std::string data_file(const std::string& path) {
  return is_folder(path) ? path + (path.ends_with('/') ? "data.mdb" : "/data.mdb") : path;
}

// A sample of values from the whole container, to detect their format.
std::vector<Buffer> samples_of(const FileSet& files, const ContainerIndex& index,
                               const std::vector<uint64_t>& page_bytes) {
  const int64_t count = index.records.size();
  std::vector<int64_t> chosen = {0, 1, 2, 3, count / 2, count - 1};
  std::vector<Buffer> out;
  for (size_t i = 0; i < chosen.size(); ++i) {
    const int64_t record = chosen[i];
    if (record < 0 || record >= count) continue;
    if (std::ranges::find(chosen.begin(), chosen.begin() + i, record) != chosen.begin() + i)
      continue;
    const Extent extent = index.records[record];
    if (index.is_damaged(record) || extent.bytes > kLargestSample) continue;
    Buffer whole(extent.bytes);
    if (Result<void> read = files.read(extent.file, extent.offset, {whole.data(), whole.size()});
        !read) {
      throw Exception(std::move(read.error()));
    }
    const Prefix prefix = prefix_of(whole.bytes(), extent, page_bytes[extent.file]);
    if (!prefix.problem.empty()) continue;
    Buffer value(whole.size() - prefix.bytes);
    if (value.size() > 0) std::memcpy(value.data(), whole.data() + prefix.bytes, value.size());
    out.push_back(std::move(value));
  }
  return out;
}

SourcePtr open_lmdb(const std::string& path, const Arguments& arguments, const Progress& progress) {
  LmdbOptions options;
  if (!arguments.is_none("database")) options.database = arguments.text("database");
  options.recover = arguments.flag("recover");
  std::vector<std::string> paths = shard_files(path);
  for (std::string& each : paths) each = data_file(each);
  auto files = std::make_unique<FileSet>(std::move(paths));
  std::vector<uint64_t> page_bytes;
  for (size_t i = 0; i < files->size(); ++i) {
    const Result<File> file = File::open(files->path(i));
    if (!file) throw Exception(file.error());
    const Result<LmdbEnvironment> environment = read_lmdb_environment(*file, options.recover);
    if (!environment) throw Exception(environment.error());
    page_bytes.push_back(environment->page_bytes);
  }
  const std::string kind =
      "lmdb 1 " + std::string(options.recover ? "recover " : "") + options.database;
  ContainerIndex index = index_of(
      kind, *files,
      [&](const File& file, ContainerIndex& out, const std::function<void(uint64_t)>& passed) {
        return scan_lmdb(file, options, out, passed);
      },
      progress);
  const std::vector<Buffer> samples = samples_of(*files, index, page_bytes);
  std::vector<ValueBytes> values;
  for (const Buffer& sample : samples) values.push_back(sample.bytes());
  const std::string named = arguments.is_none("values") ? "" : arguments.text("values");
  std::unique_ptr<LmdbValues> reader = lmdb_values(named, values, {.bgr = arguments.flag("bgr")});
  return std::make_shared<LmdbSource>(path, std::move(options), std::move(files), std::move(index),
                                      std::move(reader), std::move(page_bytes));
}

bool is_lmdb(const std::string& path) {
  const std::string file = data_file(path);
  if (!is_file(file)) return false;
  std::array<uint8_t, 32> begin{};
  const Result<size_t> read = read_prefix(file, begin);
  return read && begins_like_lmdb({begin.data(), *read});
}

const FormatRecord kLmdb{
    .name = "lmdb",
    .doc =
        "An LMDB environment: the folder with data.mdb, or the file itself (nosubdir); several "
        "become one dataset. Records are the values, ordered by key: encoded images, Caffe's Datum "
        "messages or bytes. Fields: image and label, or the contents of the messages; value for "
        "plain bytes.",
    .example = "hr.open(\"train_lmdb/\")",
    .params =
        {{.name = "database",
          .type = ParamType::kString,
          .doc =
              "The named database; default: the unnamed one, or the only one in the environment."},
         {.name = "values",
          .type = ParamType::kString,
          .doc = "Format of the values; default: inferred from the first ones.",
          .choices = {"image", "datum", "bytes"}},
         {.name = "bgr",
          .type = ParamType::kBool,
          .doc = "Whether raw three-channel pixels in a Datum are stored as BGR, as Caffe's tools "
                 "write them; they are delivered as RGB either way.",
          .fallback = true},
         {.name = "recover",
          .type = ParamType::kBool,
          .doc = "Whether to use the other meta page if one of the two is damaged.",
          .fallback = false}},
    .recognizes = is_lmdb,
    .open = open_lmdb,
    .shards = true};
const Register<FormatRecord> registered_lmdb_format(kLmdb);

}  // namespace
}  // namespace headrace
