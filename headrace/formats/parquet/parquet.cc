// SPDX-License-Identifier: Apache-2.0
// Parquet files, which pyarrow reads.
#include "headrace/base/registry.h"
#include "headrace/formats/format.h"
#include "headrace/formats/python/python_formats.h"
#include "headrace/formats/shards/shard_files.h"
#include "headrace/sources/named_files.h"
#include "headrace/storage/file.h"

namespace headrace {
namespace {

const std::vector<std::string_view> kParquetSuffixes = {".parquet", ".pq"};

bool is_parquet(const std::string& path) {
  return is_shard_path(path, kParquetSuffixes,
                       [](const std::string& file) { return file_begins_with(file, "PAR1"); });
}

SourcePtr open_parquet(const std::string& path, const Arguments& arguments, const Progress&) {
  std::map<std::string, ParamValue> given = python_arguments(arguments);
  given["memory"] = arguments.value("memory");
  const std::vector<std::string> files =
      arguments.is_none("split")
          ? shard_files(path, kParquetSuffixes)
          : shard_files_of_split(path, kParquetSuffixes, arguments.text("split"));
  return open_in_python("parquet", files, given);
}

const FormatRecord kParquet{
    .name = "parquet",
    .doc =
        "Parquet files: one, several, or a folder of them (sorted), read through pyarrow. Columns "
        "are fields: integers, floats, strings, lists of numbers, and images as bytes or as the "
        "structs {bytes, path} of Hugging Face. A dataset that fits into `memory` is decoded once "
        "and kept in memory; the row groups of larger ones are decoded on demand.",
    .example = "hr.open(\"train.parquet\", fields=[\"image\", \"label\"])",
    .params =
        {python_fields_param(),
         outside_param(),
         {.name = "split",
          .type = ParamType::kString,
          .doc = "The split to open, if the folder has files of several splits (train-*, test-*).",
          .decides = Affects::kFingerprint},
         {.name = "memory",
          .type = ParamType::kInt,
          .doc = "Limit on decoded columns in memory, in bytes. None: 1 GiB, but at most 64 times "
                 "the size of the files, or 256 MiB.",
          .minimum = 0,
          .decides = Affects::kReading}},
    .recognizes = is_parquet,
    .open = open_parquet,
    .shards = true,
    .index_at_end = ".parquet"};
const Register<FormatRecord> registered_parquet_format(kParquet);

}  // namespace
}  // namespace headrace
