// SPDX-License-Identifier: Apache-2.0
// Tar archives: WebDataset's samples, and plain pictures in class folders.
#include <sys/stat.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <set>

#include "headrace/base/cores.h"
#include "headrace/base/registry.h"
#include "headrace/base/utf8.h"
#include "headrace/formats/extent_source.h"
#include "headrace/formats/in_order.h"
#include "headrace/formats/shard_files.h"
#include "headrace/formats/unpacked_files.h"
#include "headrace/formats/webdataset/tar.h"
#include "headrace/formats/webdataset/wds_fields.h"
#include "headrace/formats/webdataset/wds_folders.h"
#include "headrace/formats/webdataset/wds_scan.h"
#include "headrace/formats/webdataset/wds_values.h"
#include "headrace/formats/wording.h"

namespace headrace {
namespace {

constexpr ErrorCode kNoSamples{"HR0468", ErrorKind::kConfig, "no samples",
                               "The archive holds no sample: no file whose name has an extension. "
                               "Names that begin with a dot, "
                               "links and folders are left out. Look into it with `tar tf`."};
const Register<ErrorCode> registered_no_samples(kNoSamples);

constexpr ErrorCode kOtherPacking{
    "HR0469", ErrorKind::kUnsupported, "tar packed with xz, bzip2 or lz4",
    "Archives are read as they are, or packed with gzip or Zstandard. Unpack this one (xz -d, "
    "bzip2 -d, lz4 -d), or pack it with zstd; pictures do not get smaller by packing."};
const Register<ErrorCode> registered_other_packing(kOtherPacking);

const std::vector<std::string_view> kSuffixes = {".tar", ".tar.gz", ".tgz", ".tar.zst", ".tzst"};
const std::vector<std::string_view> kOtherSuffixes = {".tar.xz", ".txz",     ".tar.bz2", ".tbz2",
                                                      ".tbz",    ".tar.lz4", ".tar.lzma"};

bool has_one_of(const std::string& path, const std::vector<std::string_view>& suffixes) {
  return std::any_of(suffixes.begin(), suffixes.end(),
                     [&](std::string_view suffix) { return has_suffix(path, suffix); });
}

enum class Missing : uint8_t { kError, kSkip, kEmpty };

struct Choices {
  std::string path;
  std::vector<WdsField> fields;
  std::vector<std::string> notes;  // of the description
  Missing missing = Missing::kError;
  ClassList classes;
  WdsFolders folders;
};

class WebDataset final : public ExtentSource {
 public:
  WebDataset(std::unique_ptr<FileSet> files, ContainerIndex index, Choices choices)
      : ExtentSource(std::move(files), std::move(index), schema_of(choices.fields)),
        choices_(std::move(choices)) {
    for (const WdsField& field : choices_.fields) {
      const bool own = field.how == WdsField::How::kArray || field.how == WdsField::How::kJson;
      own_.push_back(own ? buffers_++ : 0);
    }
  }

  std::vector<std::string> classes() const override { return choices_.classes.names(); }
  std::string description() const override {
    std::string out = described("webdataset", choices_.path);
    out.pop_back();
    if (choices_.classes.size() > 0) {
      out += ", " + counted(choices_.classes.size(), "class", "classes");
    }
    for (const std::string& note : choices_.notes) out += "; " + note;
    return out + ")";
  }

  std::string key(int64_t index) const override {
    const Extent extent = this->index().records[index];
    TarInput input(
        [&](uint64_t offset, std::span<uint8_t> out) -> Result<void> {
          return read_part(index, offset, out);
        },
        extent.bytes);
    TarWalker walker(input);
    TarMember member;
    for (int members = 0; members < 64; ++members) {
      const Result<bool> more = walker.next(member);
      if (!more || !*more) break;
      const std::optional<WdsName> name = wds_name(member.name);
      if (name && is_file(member)) return std::string(name->key);
    }
    return ExtentSource::key(index);
  }

  std::vector<int64_t> integer_column(std::string_view name) const override {
    for (const WdsField& field : choices_.fields) {
      const bool integer =
          field.field.shape.empty() && field.field.dtype == DType::kInt64 &&
          (field.field.kind == FieldKind::kLabel || field.field.kind == FieldKind::kTensor);
      if (field.field.name == name && integer && field.how != WdsField::How::kArray) {
        return column_of(field);
      }
    }
    return {};
  }

 private:
  static Schema schema_of(const std::vector<WdsField>& fields) {
    Schema schema;
    for (const WdsField& field : fields) schema.push_back(field.field);
    return schema;
  }
  size_t buffers() const override { return buffers_; }

  Result<void> parse(int64_t, std::span<const uint8_t> bytes, const std::vector<bool>& wanted,
                     RecordData& out) const override {
    TarInput input(bytes);
    TarWalker walker(input);
    TarMember member;
    // Of each field the place, in its list, of the alternative that was found.
    constexpr size_t kNone = SIZE_MAX;
    std::vector<size_t> found(choices_.fields.size(), kNone);
    std::string first_key;
    for (;;) {
      Result<bool> more = walker.next(member);
      if (!more) return std::move(more.error());
      if (!*more) break;
      const std::optional<WdsName> name = wds_name(member.name);
      if (!name || !is_file(member)) continue;
      if (first_key.empty()) first_key = name->key;
      for (size_t i = 0; i < choices_.fields.size(); ++i) {
        const WdsField& field = choices_.fields[i];
        if (!wanted[i]) continue;
        const size_t place = place_in(field, name->extension);
        if (place == kNone || place > found[i]) continue;
        Result<void> set;
        if (place == found[i]) {
          set = bad_sample("the sample has this component twice",
                           "members of one name in a row are one sample");
        } else {
          found[i] = place;
          set = set_field(i, member, bytes, out);
        }
        if (set) continue;
        set.error().where.member = std::string(member.name);
        set.error().where.offset = static_cast<int64_t>(member.begin);
        return set;
      }
    }
    for (size_t i = 0; i < choices_.fields.size(); ++i) {
      if (!wanted[i] || found[i] != kNone) continue;
      if (Result<void> set = set_missing(i, first_key, out); !set) {
        set.error().where.member = first_key;
        return set;
      }
    }
    return {};
  }

  static size_t place_in(const WdsField& field, std::string_view extension) {
    for (size_t i = 0; i < field.extensions.size(); ++i) {
      if (extension_fits(field.extensions[i], extension)) return i;
    }
    return SIZE_MAX;
  }

  Result<void> set_field(size_t i, const TarMember& member, std::span<const uint8_t> bytes,
                         RecordData& out) const {
    const WdsField& field = choices_.fields[i];
    const std::span<const uint8_t> data = bytes.subspan(member.data, member.bytes);
    FieldData& value = out.fields[i];
    if (member.kind == TarKind::kSparse) return sparse_member();
    switch (field.how) {
      case WdsField::How::kInteger: {
        Result<int64_t> number = wds_integer(data, choices_.classes);
        if (!number) return std::move(number.error());
        value.scalar = *number;
        return {};
      }
      case WdsField::How::kArray:
        return wds_array(data, field.field, out.owned[own_[i]], value);
      case WdsField::How::kJson: {
        bool found = false;
        Result<void> set = wds_json(data, field, out.owned[own_[i]], value, found);
        if (!set || found) return set;
        return missing(i, "\"" + json_text(field) + "\" is not in it", out);
      }
      case WdsField::How::kFolder:
      case WdsField::How::kBytes:
        break;
    }
    if (field.field.kind == FieldKind::kText && !is_utf8(data)) {
      return bad_sample("the text is no UTF-8", "store it as UTF-8");
    }
    value.bytes = data;
    return {};
  }

  static std::string json_text(const WdsField& field) {
    std::string out;
    for (const std::string& name : field.json_path) out += (out.empty() ? "" : ".") + name;
    return out;
  }

  // A field for which no member was found.
  Result<void> set_missing(size_t i, const std::string& key, RecordData& out) const {
    const WdsField& field = choices_.fields[i];
    if (field.how == WdsField::How::kFolder) {
      const std::optional<int64_t> label = choices_.folders.label_of(key, choices_.classes);
      if (!label) return bad_sample("its folder is no class", "name all classes in classes=");
      out.fields[i].scalar = *label;
      return {};
    }
    std::string names;
    for (const std::string& extension : field.extensions) {
      names += (names.empty() ? "" : " or ") + extension;
    }
    return missing(i, "the sample has no component " + names, out);
  }

  Result<void> missing(size_t i, std::string what, RecordData& out) const {
    const WdsField& field = choices_.fields[i];
    if (choices_.missing == Missing::kEmpty &&
        set_empty(field, out.owned[own_[i]], out.fields[i])) {
      return {};
    }
    return bad_sample(std::move(what),
                      "missing=\"skip\" leaves such samples out; fields= says which are needed");
  }

  // -1 for records without a value, or a bad one.
  std::vector<int64_t> column_of(const WdsField& field) const {
    constexpr int64_t kChunk = 4096;
    std::vector<int64_t> out;
    out.reserve(static_cast<size_t>(size()));
    const int64_t chunks = (size() + kChunk - 1) / kChunk;
    if (chunks == 0) return out;
    const auto values_of = [&](int64_t chunk) {
      std::vector<int64_t> values;
      std::unique_ptr<TarInput> input;
      size_t file = SIZE_MAX;
      for (int64_t i = chunk * kChunk; i < std::min(size(), (chunk + 1) * kChunk); ++i) {
        const Extent extent = index().records[i];
        if (extent.file != file) {
          file = extent.file;
          input = std::make_unique<TarInput>(input_of(file));
        }
        values.push_back(value_of(field, extent, *input));
      }
      return values;
    };
    InOrder<std::vector<int64_t>> threads(0, chunks, SIZE_MAX);
    threads.run(
        static_cast<int>(std::min<int64_t>(allowed_cores().count(), chunks)),
        [&] { return values_of; }, [](const auto&) { return size_t{1} << 20; },
        [&](std::vector<int64_t> values) { out.insert(out.end(), values.begin(), values.end()); },
        [](int64_t) {});
    return out;
  }

  TarInput input_of(size_t file) const {
    return {[this, file](uint64_t offset, std::span<uint8_t> out) {
              return files().read(file, offset, out);
            },
            files().identity(file).size};
  }

  int64_t value_of(const WdsField& field, const Extent& extent, TarInput& input) const {
    int64_t out = -1;
    each_member(input, extent, [&](const TarMember& member, const WdsName& name) {
      if (field.how == WdsField::How::kFolder) {
        out = choices_.folders.label_of(name.key, choices_.classes).value_or(-1);
        return false;
      }
      if (!field.takes(name.extension)) return true;
      if (member.bytes > TarInput::kMost || member.kind == TarKind::kSparse) return false;
      const auto data = input.at(member.data, static_cast<size_t>(member.bytes));
      if (!data) return false;
      if (field.how == WdsField::How::kInteger) {
        const Result<int64_t> number = wds_integer(*data, choices_.classes);
        if (number) out = *number;
      } else {
        Buffer unused;
        FieldData value;
        bool found = false;
        if (wds_json(*data, field, unused, value, found) && found) out = value.scalar;
      }
      return false;
    });
    return out;
  }

  Choices choices_;
  std::vector<size_t> own_;  // of each field the buffer of its own
  size_t buffers_ = 1;
};

// --- Opening -------------------------------------------------------------------------------------

// Some headers of the arrays of a field.
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
    each_member(input, extent, [&](const TarMember& member, const WdsName& name) {
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
    bad_wds_field("no component is in at least half of the samples",
                  "name those that are meant: fields=[\"image=jpg;png\"]");
  }
  return choice;
}

// Adds the field that folders make, where samples are single pictures in folders.
void add_folder_label(const WdsCounts& counts, std::optional<ClassList> given, Choices& choices) {
  const bool pictures_alone = choices.fields.size() == 1 && choices.fields[0].field.encoded &&
                              counts.in_folders == counts.samples;
  if (!pictures_alone) return;
  std::optional<WdsFolders> folders = class_folders(counts.folders, given ? &*given : nullptr);
  if (!folders) return;
  if (!given) {
    choices.classes = ClassList::found(folders->classes);
  } else {
    std::vector<std::string> unknown;
    for (const std::string& name : folders->classes) {
      if (!given->number(name)) unknown.push_back(name);
    }
    given->refuse_unknown(unknown, "in " + choices.path);
    choices.classes = std::move(*given);
  }
  choices.folders = std::move(*folders);
  choices.fields.push_back(
      {.field = {.name = "label", .kind = FieldKind::kLabel, .dtype = DType::kInt64},
       .how = WdsField::How::kFolder,
       .extensions = {},
       .json_path = {}});
}

void refuse_other_packings(const std::vector<std::string>& paths) {
  for (const std::string& path : paths) {
    if (!has_one_of(path, kOtherSuffixes)) continue;
    throw Exception(Error{.code = &kOtherPacking,
                          .what = "archives packed in this way are not read",
                          .where = {.file = path},
                          .hint = "unpack it, or pack it with zstd or gzip"});
  }
}

[[noreturn]] void no_samples(const ContainerIndex& index, const FileSet& files,
                             const std::string& path) {
  if (!index.damage.empty()) {
    const Damage& damage = index.damage[0];
    const ErrorCode* code = Registry<ErrorCode>::find(damage.code);
    throw Exception(Error{.code = code ? code : &kNoSamples,
                          .what = damage.what,
                          .where = {.file = files.shown(index.records[damage.record].file),
                                    .offset = static_cast<int64_t>(damage.offset)},
                          .hint = damage.hint});
  }
  raise(kNoSamples, "there is no sample in " + path,
        "names look like \"folder/0001.jpg\"; `tar tf` lists them");
}

std::string joined_text(const std::vector<std::string>& parts, size_t most) {
  std::string out;
  for (size_t i = 0; i < std::min(parts.size(), most); ++i) out += (i ? ", " : "") + parts[i];
  if (parts.size() > most) out += " and " + grouped(int64_t(parts.size() - most)) + " more";
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
  const std::string kind = "webdataset 1" + indexes_text(indexes);
  ContainerIndex index = index_of(kind, *files, scan_of_wds(unpacked, indexes), progress);
  const WdsCounts counts = counts_of(index.tallies);
  if (counts.samples == 0) no_samples(index, *files, path);

  Choices choices;
  choices.path = path;
  const std::string& missing = arguments.text("missing");
  choices.missing = missing == "skip"    ? Missing::kSkip
                    : missing == "empty" ? Missing::kEmpty
                                         : Missing::kError;
  WdsChoice choice = fields_of(arguments, counts);
  choices.fields = std::move(choice.fields);
  std::optional<ClassList> given = classes_argument(arguments);
  const bool labeled =
      std::any_of(choices.fields.begin(), choices.fields.end(),
                  [](const WdsField& field) { return field.field.kind == FieldKind::kLabel; });
  if (labeled) {
    if (given) choices.classes = std::move(*given);
  } else {
    const bool named = given.has_value();
    if (arguments.is_none("fields")) add_folder_label(counts, std::move(given), choices);
    if (named && choices.classes.size() == 0) {
      bad_wds_field("classes= is given, and there is no label",
                    "labels are a cls component, or the folders of pictures");
    }
  }

  const int64_t lacking = counts.samples - complete_samples(choices.fields, counts);
  if (choices.missing == Missing::kSkip && lacking > 0) {
    const int64_t before = index.records.size();
    index = index_of(kind + " with " + components_text(choices.fields), *files,
                     scan_of_wds(unpacked, indexes, &choices.fields), progress);
    choices.notes.push_back(grouped(before - index.records.size()) +
                            " samples without all components left out");
  }
  for (WdsField& field : choices.fields) {
    if (field.how == WdsField::How::kArray) {
      describe_wds_array(arrays_of(field, *files, index), field.field);
    }
  }
  if (!choice.left_out.empty()) {
    choices.notes.push_back("not fields: " + joined_text(choice.left_out, 4));
  }
  if (counts.links > 0) {
    choices.notes.push_back(counted(counts.links, "link") + " left out");
  }
  if (counts.unused_indexes > 0) {
    choices.notes.push_back(counted(counts.unused_indexes, "index file") +
                            " not used: " + counts.why_unused);
  }
  return std::make_shared<WebDataset>(std::move(files), std::move(index), std::move(choices));
}

bool is_webdataset(const std::string& path) {
  struct stat status{};
  if (::stat(path.c_str(), &status) != 0) return false;
  if (S_ISDIR(status.st_mode)) return is_shard_folder(path, kSuffixes);
  if (!S_ISREG(status.st_mode)) return false;
  return has_one_of(path, kSuffixes) || has_one_of(path, kOtherSuffixes) ||
         begins_like(path, is_tar_header);
}

const FormatRecord kWebDataset{
    .name = "webdataset",
    .doc =
        "Tar archives (v7, ustar, GNU, PAX), many of them, as they are or packed with gzip or "
        "Zstandard. Members in a row whose names are equal up to the first dot are one record, "
        "as WebDataset has it; their extensions are the fields: pictures (image), cls (label), "
        "txt (text), json, npy, others as bytes. Pictures alone, in folders, get their folder as "
        "label. Nothing is unpickled.",
    .example = "hr.open(\"train-{0000..0146}.tar\")",
    .params = {{.name = "fields",
                .type = ParamType::kStrings,
                .doc = "Components by extension, alternatives separated by a semicolon, named or "
                       "not: [\"image=jpg;png\", \"label=cls\", \"mask=seg.png\"]. Without it: all "
                       "that at least half of the samples have."},
               {.name = "missing",
                .type = ParamType::kString,
                .doc =
                    "A sample that lacks a field: \"error\" makes it a bad record, \"skip\" leaves "
                    "it out, \"empty\" puts in no text, no bytes, -1 or NaN (pictures and arrays "
                    "stay errors).",
                .fallback = std::string("error"),
                .choices = {"error", "skip", "empty"}},
               {.name = "json_fields",
                .type = ParamType::kStrings,
                .doc = "Values of the JSON component as fields of their own, with their types "
                       "(int64, float32, float64, text): [\"width:int64\", "
                       "\"year=meta.year:int64\"]."},
               {.name = "index",
                .type = ParamType::kString,
                .doc = "Index files of wds2idx, one for each archive: a path, pattern or folder. "
                       "None: those beside the archives are used where they fit, or the archives "
                       "are looked through."},
               classes_param()},
    .recognizes = is_webdataset,
    .open = open_webdataset,
    .shards = true};
const Register<FormatRecord> registered(kWebDataset);

}  // namespace
}  // namespace headrace
