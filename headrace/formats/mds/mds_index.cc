// SPDX-License-Identifier: Apache-2.0
#include "headrace/formats/mds/mds_index.h"

#include <optional>
#include <unordered_set>

#include "headrace/base/json_reader.h"
#include "headrace/base/text.h"
#include "headrace/sources/field_names.h"
#include "headrace/sources/named_files.h"
#include "headrace/storage/file.h"

namespace headrace {
namespace {

const ErrorCode kBadIndex{
    "HR0486", ErrorKind::kData, "invalid index of MDS shards",
    "The index.json of a dataset in MosaicML's MDS format is damaged, of a version other than 2, "
    "or names shards that are missing or outside its folder. Copy the folder again, or rewrite "
    "its index with streaming's merge_index."};

const ErrorCode kNotRead{
    "HR0487", ErrorKind::kConfig, "unsupported MDS feature",
    "The dataset has an unsupported column or shard type: pickles, which would run code from the "
    "data, lists of images, shards compressed with brotli, bzip2 or snappy, or formats other than "
    "MDS. Select other columns with columns=, or rewrite the shards with MDSWriter."};

class IndexParser {
 public:
  IndexParser(std::string_view text, const std::string& path, bool outside)
      : json_(text), path_(path), outside_(outside) {}

  MdsIndex parse() {
    bool shards = false;
    int64_t version = 0;
    for (json_.begin_object(); json_.next_key();) {
      if (json_.key() == "version") {
        version = integer();
      } else if (json_.key() == "shards") {
        shards = true;
        for (json_.begin_array(); json_.next_element();) add_shard();
      } else {
        json_.skip();
      }
    }
    json_.end();
    if (!json_.ok()) throw Exception(json_.error(kBadIndex, path_));
    if (version != 2) bad("it is of version " + std::to_string(version) + ", not 2");
    if (!shards || index_.shards.empty()) bad("it lists no shards");
    return std::move(index_);
  }

 private:
  struct Columns {
    std::vector<std::string> names, encodings;
    std::vector<uint64_t> sizes;
  };

  [[noreturn]] void bad(std::string what) const { bad_mds_index(path_, std::move(what)); }

  int64_t integer() {
    const JsonNumber number = json_.number();
    if (json_.ok() && !number.integer) json_.fail("a whole number was expected");
    return number.integer.value_or(0);
  }
  std::string text_or_null() {
    if (json_.type() != JsonReader::Type::kNull) return std::string(json_.string());
    json_.null();
    return {};
  }
  std::vector<std::string> texts() {
    std::vector<std::string> out;
    for (json_.begin_array(); json_.next_element();) out.emplace_back(json_.string());
    return out;
  }
  std::vector<uint64_t> sizes() {
    std::vector<uint64_t> out;
    for (json_.begin_array(); json_.next_element();) {
      int64_t size = 0;
      if (json_.type() == JsonReader::Type::kNull) {
        json_.null();
      } else {
        size = integer();
      }
      if (size < 0) json_.fail("a column's size is negative");
      out.push_back(static_cast<uint64_t>(size));
    }
    return out;
  }
  // The name of a file; empty for null.
  std::string file() {
    if (json_.type() == JsonReader::Type::kNull) {
      json_.null();
      return {};
    }
    std::string name;
    const uint64_t offset = json_.offset();
    for (json_.begin_object(); json_.next_key();) {
      if (json_.key() == "basename") {
        name = std::string(json_.string());
      } else {
        json_.skip();
      }
    }
    const bool names_one = !name.empty() && name.find('\0') == std::string::npos;
    if (json_.ok() && !stays_inside(name) && !(outside_ && names_one)) {
      json_.fail("a shard's file \"" + name + "\" is not in the folder" +
                     (names_one ? " (allow_outside=True reads it, if you trust the dataset)" : ""),
                 offset);
    }
    return name;
  }

  void add_shard() {
    MdsShard shard;
    Columns columns;
    std::string format = "mds";
    int64_t version = 2, samples = -1;
    for (json_.begin_object(); json_.next_key();) {
      if (json_.key() == "column_names") {
        columns.names = texts();
      } else if (json_.key() == "column_encodings") {
        columns.encodings = texts();
      } else if (json_.key() == "column_sizes") {
        columns.sizes = sizes();
      } else if (json_.key() == "raw_data") {
        shard.raw = file();
      } else if (json_.key() == "zip_data") {
        shard.packed = file();
      } else if (json_.key() == "compression") {
        shard.packing = text_or_null();
      } else if (json_.key() == "samples") {
        samples = integer();
      } else if (json_.key() == "format") {
        format = std::string(json_.string());
      } else if (json_.key() == "version") {
        version = integer();
      } else {
        json_.skip();
      }
    }
    if (!json_.ok()) return;  // parse() reports it
    const std::string name = "shard " + std::to_string(index_.shards.size());
    if (format != "mds") {
      mds_not_read(path_ + ": " + name + " is of the format \"" + format + "\"",
                   "of streaming's formats only MDS is supported; rewrite the dataset with "
                   "MDSWriter");
    }
    if (version != 2) bad(name + " is of version " + std::to_string(version) + ", not 2");
    if (samples < 0 || samples > UINT32_MAX) bad(name + " has an invalid number of samples");
    if (shard.raw.empty() && shard.packed.empty()) bad(name + " has no file name");
    for (const std::string* file : {&shard.raw, &shard.packed}) {
      if (!file->empty() && !files_.insert(*file).second) {
        bad(name + " is the file \"" + *file + "\", which an earlier shard also uses");
      }
    }
    shard.samples = static_cast<uint64_t>(samples);
    check_columns(name, columns);
    index_.shards.push_back(std::move(shard));
  }

  void check_columns(const std::string& shard, const Columns& given) {
    std::vector<MdsColumn> columns;
    if (given.names.size() > kMaxFields) {
      bad(shard + " has " + std::to_string(given.names.size()) + " columns; at most " +
          std::to_string(kMaxFields) + " are supported");
    }
    if (given.names.empty() || given.names.size() != given.encodings.size() ||
        given.names.size() != given.sizes.size()) {
      bad(shard + " has " + std::to_string(given.names.size()) + " column names, " +
          std::to_string(given.encodings.size()) + " encodings and " +
          std::to_string(given.sizes.size()) + " sizes");
    }
    for (size_t i = 0; i < given.names.size(); ++i) {
      columns.push_back({given.names[i], given.encodings[i], given.sizes[i]});
    }
    if (index_.shards.empty()) {
      index_.columns = std::move(columns);
    } else if (columns != index_.columns) {
      bad(shard + " has different columns from the previous shards");
    }
  }

  JsonReader json_;
  const std::string& path_;
  const bool outside_;
  MdsIndex index_;
  std::unordered_set<std::string> files_;  // names in all shards so far
};

}  // namespace

MdsIndex read_mds_index(const std::string& path, bool outside) {
  Buffer bytes;
  if (Result<void> read = read_file(path, bytes); !read) throw Exception(std::move(read.error()));
  const std::string_view text = text_from_bytes(bytes.bytes());
  return IndexParser(text, path, outside).parse();
}

void mds_not_read(std::string what, std::string hint) {
  raise(kNotRead, std::move(what), std::move(hint));
}

void bad_mds_index(const std::string& path, std::string what, std::string hint) {
  throw Exception({.code = &kBadIndex,
                   .what = std::move(what),
                   .where = Where{.file = path},
                   .hint = std::move(hint)});
}

}  // namespace headrace
