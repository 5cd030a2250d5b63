// SPDX-License-Identifier: Apache-2.0
// Tar archives: WebDataset's samples, and plain pictures in class folders.
#include <algorithm>
#include <memory>
#include <optional>

#include "headrace/base/registry.h"
#include "headrace/base/text.h"
#include "headrace/formats/format.h"
#include "headrace/formats/shards/shard_files.h"
#include "headrace/formats/shards/unpacked_files.h"
#include "headrace/formats/webdataset/tar.h"
#include "headrace/formats/webdataset/wds_fields.h"
#include "headrace/formats/webdataset/wds_scan.h"
#include "headrace/formats/webdataset/wds_source.h"
#include "headrace/sources/readable_text.h"

namespace headrace {
namespace {

const ErrorCode kNoSamples{
    "HR0468", ErrorKind::kConfig, "no samples",
    "The archive contains no sample: no file whose name has an extension. Names that begin with a "
    "dot, links and folders are ignored. Inspect it with `tar tf`."};

const ErrorCode kOtherPacking{
    "HR0469", ErrorKind::kUnsupported, "unsupported tar compression",
    "Archives are read uncompressed, or compressed with gzip or Zstandard. Decompress this archive "
    "(xz -d, bzip2 -d, lz4 -d), or recompress it with zstd; compression does not make images "
    "smaller."};

const std::vector<std::string_view> kSuffixes = {".tar", ".tar.gz", ".tgz", ".tar.zst", ".tzst"};
const std::vector<std::string_view> kOtherSuffixes = {".tar.xz", ".txz",     ".tar.bz2", ".tbz2",
                                                      ".tbz",    ".tar.lz4", ".tar.lzma"};

// Some array headers of a field.
std::vector<std::vector<uint8_t>> arrays_of(const WdsField& field, const FileSet& files,
                                            const ContainerIndex& index) {
  constexpr int64_t kSamples = 16;
  constexpr uint64_t kHeader = 4096;
  std::vector<std::vector<uint8_t>> out;
  const int64_t count = index.records.size();
  for (int64_t i = 0; i < std::min(count, kSamples); ++i) {
    const Extent extent = index.records[count <= kSamples ? i : i * (count - 1) / (kSamples - 1)];
    TarInput input(
        [&](uint64_t offset, std::span<uint8_t> bytes) -> Result<void> {
          return files.read(extent.file, offset, bytes);
        },
        files.identity(extent.file).size);
    // Bad samples are ignored here; reading them reports the error.
    (void)each_member(input, extent, [&](const TarMember& member, const WdsName& name) {
      if (!field.takes(name.extension)) return true;
      const auto data = input.at(member.data, std::min(member.bytes, kHeader));
      if (data) out.emplace_back(data->begin(), data->end());
      return false;
    });
  }
  return out;
}

WdsChoice fields_of(const Arguments& arguments, const WdsCounts& counts) {
  WdsChoice choice = arguments.is_none("fields")
                         ? guessed_wds_fields(counts)
                         : given_wds_fields(arguments.texts("fields"), counts);
  if (!arguments.is_none("json_fields")) {
    add_json_fields(arguments.texts("json_fields"), counts, choice);
  }
  if (choice.fields.empty()) {
    bad_wds_field("no component appears in at least half of the samples",
                  "select the components: fields=[\"image=jpg;png\"]");
  }
  return choice;
}

// Adds the field made from folders, if samples are single pictures in folders.
void add_folder_label(const WdsCounts& counts, std::optional<ClassList> given,
                      WdsOptions& options) {
  const bool pictures_alone = options.fields.size() == 1 && options.fields[0].field.encoded &&
                              counts.in_folders == counts.samples;
  if (!pictures_alone) return;
  std::optional<WdsFolders> folders = class_folders(counts.folders, given ? &*given : nullptr);
  if (!folders) return;
  if (!given) {
    options.classes = ClassList::found(folders->classes);
  } else {
    std::vector<std::string> unknown;
    for (const std::string& name : folders->classes) {
      if (!given->number(name)) unknown.push_back(name);
    }
    given->refuse_unknown(unknown, "in " + options.path);
    options.classes = std::move(*given);
  }
  options.folders = std::move(*folders);
  options.fields.push_back(
      {.field = {.name = "label", .kind = FieldKind::kLabel, .dtype = DType::kInt64},
       .how = WdsField::How::kFolder,
       .extensions = {},
       .json_path = {}});
}

void refuse_other_packings(const std::vector<std::string>& paths) {
  for (const std::string& path : paths) {
    if (!has_one_suffix(path, kOtherSuffixes)) continue;
    throw Exception(Error{.code = &kOtherPacking,
                          .what = "archives with this compression are not supported",
                          .where = Where{.file = path},
                          .hint = "decompress it, or compress it with zstd or gzip"});
  }
}

[[noreturn]] void no_samples(const ContainerIndex& index, const FileSet& files,
                             const std::string& path) {
  if (!index.damage.empty()) {
    const Damage& damage = index.damage[0];
    const ErrorCode* code = Registry<ErrorCode>::find(damage.code);
    throw Exception(Error{.code = code ? code : &kNoSamples,
                          .what = damage.what,
                          .where = Where{.file = files.shown(index.records[damage.record].file),
                                         .offset = static_cast<int64_t>(damage.offset)},
                          .hint = damage.hint});
  }
  raise(kNoSamples, "there is no sample in " + path,
        "names must look like \"folder/0001.jpg\"; list them with `tar tf`");
}

std::string joined_text(const std::vector<std::string>& parts, size_t most) {
  std::string out;
  for (size_t i = 0; i < std::min(parts.size(), most); ++i) out += (i ? ", " : "") + parts[i];
  if (parts.size() > most) out += " and " + with_commas(int64_t(parts.size() - most)) + " more";
  return out;
}

SourcePtr open_webdataset(const std::string& path, const Arguments& arguments,
                          const Progress& progress) {
  const std::vector<std::string> paths = shard_files(path, kSuffixes);
  refuse_other_packings(paths);
  const UnpackedFiles unpacked = unpacked_files(paths, is_tar_header, progress);
  std::unique_ptr<FileSet> files = unpacked.file_set();
  std::optional<std::string> named_indexes;
  if (!arguments.is_none("index")) named_indexes = arguments.text("index");
  const WdsIndexes indexes = indexes_of(unpacked.names, unpacked.paths, named_indexes, kSuffixes);
  const std::string kind = "webdataset 2" + indexes_text(indexes);
  ContainerIndex index = index_of(kind, *files, scan_of_wds(unpacked, indexes), progress);
  const WdsCounts counts = counts_of(index.tallies);
  if (counts.samples == 0) no_samples(index, *files, path);

  WdsOptions options;
  options.path = path;
  const std::string& missing = arguments.text("missing");
  options.missing = missing == "skip"    ? WdsMissing::kSkip
                    : missing == "empty" ? WdsMissing::kEmpty
                                         : WdsMissing::kError;
  WdsChoice choice = fields_of(arguments, counts);
  options.fields = std::move(choice.fields);
  std::optional<ClassList> given = classes_argument(arguments);
  const bool labeled =
      std::any_of(options.fields.begin(), options.fields.end(),
                  [](const WdsField& field) { return field.field.kind == FieldKind::kLabel; });
  if (labeled) {
    if (given) options.classes = std::move(*given);
  } else {
    const bool named = given.has_value();
    if (arguments.is_none("fields")) add_folder_label(counts, std::move(given), options);
    if (named && options.classes.size() == 0) {
      bad_wds_field("classes= is given, but there is no label",
                    "labels come from a cls component, or from the folders of images");
    }
  }

  const int64_t lacking = counts.samples - complete_samples(options.fields, counts);
  if (options.missing == WdsMissing::kSkip && lacking > 0) {
    const int64_t before = index.records.size();
    index = index_of(kind + " with " + components_text(options.fields), *files,
                     scan_of_wds(unpacked, indexes, &options.fields), progress);
    options.notes.push_back(with_commas(before - index.records.size()) +
                            " samples without all components skipped");
  }
  for (WdsField& field : options.fields) {
    if (field.how == WdsField::How::kArray) {
      describe_wds_array(arrays_of(field, *files, index), field.field);
    }
  }
  if (!choice.left_out.empty()) {
    options.notes.push_back("not fields: " + joined_text(choice.left_out, 4));
  }
  if (counts.links > 0) {
    options.notes.push_back(count_text(counts.links, "link") + " skipped");
  }
  if (counts.without_end > 0) {
    options.notes.push_back(count_text(counts.without_end, "archive") +
                            " without an end-of-archive marker: perhaps truncated between two "
                            "members");
  }
  if (counts.unused_indexes > 0) {
    options.notes.push_back(count_text(counts.unused_indexes, "index file") +
                            " not used: " + counts.why_unused);
  }
  return webdataset_source(std::move(files), std::move(index), std::move(options));
}

bool is_webdataset(const std::string& path) {
  return is_shard_path(path, kSuffixes, [](const std::string& file) {
    return has_one_suffix(file, kSuffixes) || has_one_suffix(file, kOtherSuffixes) ||
           begins_like(file, is_tar_header);
  });
}

// The classes are used later to parse text labels.
Param classes_of_text() {
  Param classes = classes_param();
  classes.decides = Affects::kRecords;
  return classes;
}

const FormatRecord kWebDataset{
    .name = "webdataset",
    .doc =
        "Tar archives (v7, ustar, GNU, PAX), one or many, plain or compressed with gzip or "
        "Zstandard. Consecutive members whose names are equal up to the first dot are one record, "
        "as in WebDataset; their extensions are the fields: images (image), cls (label), txt "
        "(text), json, npy, others as bytes. For archives of images in folders, the folder is the "
        "label. Nothing is unpickled.",
    .example = "hr.open(\"train-{0000..0146}.tar\")",
    .params =
        {{.name = "fields",
          .type = ParamType::kStrings,
          .doc = "The components to read, by extension, with alternatives separated by a "
                 "semicolon and an optional field name: [\"image=jpg;png\", \"label=cls\", "
                 "\"mask=seg.png\"]. None: all components that at least half of the samples have."},
         {.name = "missing",
          .type = ParamType::kString,
          .doc = "What to do with a sample that lacks a field: \"error\" makes it a bad record, "
                 "\"skip\" skips it, \"empty\" substitutes empty text or bytes, -1 or NaN (for "
                 "images and arrays it remains an error).",
          .fallback = std::string("error"),
          .choices = {"error", "skip", "empty"}},
         {.name = "json_fields",
          .type = ParamType::kStrings,
          .doc = "Values of the JSON component to deliver as separate fields, with their types "
                 "(int64, float32, float64, text): [\"width:int64\", "
                 "\"year=meta.year:int64\"]."},
         {.name = "index",
          .type = ParamType::kString,
          .doc = "Index files written by wds2idx, one per archive: a path, pattern or folder. "
                 "None: indexes next to the archives are used if they match; otherwise the "
                 "archives are scanned.",
          .decides = Affects::kPlace},
         classes_of_text()},
    .recognizes = is_webdataset,
    .open = open_webdataset,
    .shards = true};
const Register<FormatRecord> registered_webdataset_format(kWebDataset);

}  // namespace
}  // namespace headrace
