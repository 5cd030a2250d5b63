// SPDX-License-Identifier: Apache-2.0
// NumPy's .npz: a zip archive of .npy files, each a field. Uncompressed members are read in place;
// compressed ones are decompressed into memory when the source is opened.
#include <algorithm>
#include <memory>

#include "headrace/base/registry.h"
#include "headrace/base/text.h"
#include "headrace/formats/arrays/array_columns.h"
#include "headrace/formats/arrays/array_errors.h"
#include "headrace/formats/arrays/zip_directory.h"
#include "headrace/formats/format.h"
#include "headrace/formats/numpy/npy_array.h"
#include "headrace/formats/open_budget.h"
#include "headrace/storage/inflate.h"

namespace headrace {
namespace {

constexpr std::string_view kSuffix = ".npy";
constexpr uint64_t kMaxTrailing = 4096;  // bytes after an array, which NumPy ignores

bool is_npz(const std::string& path) { return has_suffix(path, ".npz") && begins_as_zip(path); }

std::shared_ptr<const File> opened(const std::string& path) {
  Result<File> file = File::open(path);
  if (!file) throw Exception(std::move(file.error()));
  return std::make_shared<const File>(std::move(*file));
}

// What a compressed member declares, checked before it is unpacked: its header is decompressed
// alone.
void check_declared(const File& file, const ZipMember& member) {
  const ReadBytes read = [&](uint64_t offset, std::span<uint8_t> out) -> Result<void> {
    Buffer begin(static_cast<size_t>(offset) + out.size());
    if (Result<void> got = read_zip_begin(file, member, {begin.data(), begin.size()}); !got) {
      return got;
    }
    std::copy_n(begin.data() + offset, out.size(), out.data());
    return {};
  };
  Result<NpyHeader> header = read_npy_header(read, member.bytes, file.path());
  if (header && member.bytes - header->data_offset - header->data_bytes > kMaxTrailing) {
    header = damaged_array(file.path(), "it unpacks to " + std::to_string(member.bytes) +
                                            " bytes, but its header describes an array of " +
                                            std::to_string(header->data_bytes));
  }
  if (header) return;
  header.error().where.file = file.path();
  header.error().where.member = member.name;
  throw Exception(std::move(header.error()));
}

std::vector<NpyValues> values_of(const std::shared_ptr<const File>& file, const ZipMember& member) {
  NpyPlace place{.part = {.file = file, .offset = member.offset},
                 .size = member.bytes,
                 .path = file->path(),
                 .member = member.name};
  if (member.deflated) {
    const auto memory = std::make_shared<Buffer>();
    if (Result<void> read = read_zip_member(*file, member, *memory); !read) {
      throw Exception(std::move(read.error()));
    }
    place.part = {.file = nullptr, .offset = 0, .count = 0, .memory = memory};
  }
  return read_npy_array(place);
}

void add_arrays(const ArrayChoice& choice, std::vector<NpyValues> values,
                std::vector<NamedArray>& out) {
  for (NpyValues& each : values) {
    NamedArray& array = out.emplace_back(NamedArray{.choice = choice, .values = TextColumn{}});
    if (!each.member.empty()) array.choice = {choice.name + "_" + each.member, {}};
    if (auto* texts = std::get_if<1>(&each.values)) {
      array.values = TextColumn{std::move(*texts)};
    } else {
      array.values = std::get<FileArray>(std::move(each.values));
    }
  }
}

SourcePtr open_npz(const std::string& path, const Arguments& arguments, const Progress& progress) {
  const std::shared_ptr<const File> file = opened(path);
  Result<std::vector<ZipMember>> members = read_zip_directory(*file);
  if (!members) throw Exception(std::move(members.error()));
  std::vector<std::string> names;
  for (ZipMember& member : *members) {
    if (!has_suffix(member.name, kSuffix)) continue;
    names.push_back(member.name.substr(0, member.name.size() - kSuffix.size()));
  }
  if (names.empty()) {
    throw Exception(unsupported_array(path, "there is no array in this archive",
                                      "write one with np.savez(path, image=images, label=labels)"));
  }
  std::vector<NamedArray> arrays;
  OpenBudget budget(path, file->size(), &progress);
  const std::vector<ArrayChoice> choices = choose_arrays(names, arguments);
  for (size_t i = 0; i < choices.size(); ++i) {
    if (progress) progress(static_cast<int64_t>(i), static_cast<int64_t>(choices.size()));
    const auto member = std::find_if(members->begin(), members->end(), [&](const ZipMember& each) {
      return each.name.size() == choices[i].name.size() + kSuffix.size() &&
             each.name.starts_with(choices[i].name) && has_suffix(each.name, kSuffix);
    });
    if (member->deflated) {
      check_declared(*file, *member);
      const uint64_t most = InflateLimits().most(member->stored);
      budget.spend(std::min(member->bytes, most), "unpacking '" + choices[i].name + "'");
    }
    add_arrays(choices[i], values_of(file, *member), arrays);
  }
  return records(columns_from_arrays(std::move(arrays), arguments), "npz " + path);
}

const FormatRecord kNpz{
    .name = "npz",
    .doc =
        "NumPy's archive of arrays (.npz): each array is a field, and its first axis indexes the "
        "records. Arrays written by np.savez are read in place; those of np.savez_compressed are "
        "decompressed into memory when the file is opened, up to a limit. Python objects are "
        "rejected.",
    .example = "hr.open(\"mnist.npz\", fields=[\"image=x_train\", \"label=y_train\"])",
    .params = {array_fields_param(), channels_param()},
    .recognizes = is_npz,
    .open = open_npz};
const Register<FormatRecord> registered_npz_format(kNpz);

}  // namespace
}  // namespace headrace
