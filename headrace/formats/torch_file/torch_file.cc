// SPDX-License-Identifier: Apache-2.0
// torch.save files that contain tensors: a zip archive with a pickle, which describes them, and
// their storages, which are read in place.
#include <algorithm>
#include <array>
#include <memory>
#include <set>
#include <utility>

#include "headrace/base/registry.h"
#include "headrace/base/tensor.h"
#include "headrace/base/text.h"
#include "headrace/formats/arrays/array_columns.h"
#include "headrace/formats/arrays/array_errors.h"
#include "headrace/formats/arrays/zip_directory.h"
#include "headrace/formats/format.h"
#include "headrace/formats/torch_file/torch_pickle.h"

namespace headrace {
namespace {

constexpr uint64_t kMaxPickleBytes = uint64_t{64} << 20;

struct Archive {
  std::shared_ptr<const File> file;  // shared by the columns inside it
  std::vector<ZipMember> members;
  std::string folder;  // of its data.pkl, "archive/"

  const ZipMember* find(const std::string& name) const {
    const auto found = std::ranges::find(members, folder + name, &ZipMember::name);
    return found == members.end() ? nullptr : &*found;
  }
};

bool is_pickle_of_archive(std::string_view member) {
  return member == "data.pkl" || member.ends_with("/data.pkl");
}

Archive open_archive(const std::string& path) {
  Result<File> file = File::open(path);
  if (!file) throw Exception(std::move(file.error()));
  Result<std::vector<ZipMember>> members = read_zip_directory(*file);
  if (!members) throw Exception(std::move(members.error()));
  Archive out{.file = std::make_shared<const File>(std::move(*file)),
              .members = std::move(*members),
              .folder = {}};
  const auto pickle = std::ranges::find_if(out.members, is_pickle_of_archive, &ZipMember::name);
  if (pickle == out.members.end()) {
    throw Exception(unsupported_array(path, "a zip archive without a data.pkl",
                                      "torch.save writes a data.pkl; name the file .npz if it "
                                      "contains NumPy arrays"));
  }
  out.folder = pickle->name.substr(0, pickle->name.size() - std::string_view("data.pkl").size());
  return out;
}

Buffer bytes_of(const Archive& archive, const ZipMember& member) {
  if (member.bytes > kMaxPickleBytes) {
    throw Exception(unsupported_array(archive.file->path(),
                                      "a pickle of " + std::to_string(member.bytes) + " bytes",
                                      "save only tensors: torch.save({\"image\": images}, path)"));
  }
  Buffer out;
  if (Result<void> read = read_zip_member(*archive.file, member, out); !read) {
    throw Exception(std::move(read.error()));
  }
  return out;
}

bool is_big_endian(const Archive& archive) {
  const ZipMember* const member = archive.find("byteorder");
  if (!member || member->bytes > 16)
    return false;  // older files have no byte order, and are
                   // little-endian
  const Buffer bytes = bytes_of(archive, *member);
  return text_from_bytes(bytes.bytes()) == "big";
}

FileArray array_of(const Archive& archive, const TorchTensor& tensor, bool big_endian) {
  const std::string& path = archive.file->path();
  const std::string it = "tensor '" + tensor.name.substr(0, 80) + "'";
  const ZipMember* const storage = archive.find("data/" + tensor.storage);
  const auto axes = tensor.sizes.size();
  uint64_t elements = 0;
  if (!storage || tensor.strides.size() != axes || tensor.offset < 0 ||
      !product_of(tensor.sizes, uint64_t{1} << 60, elements)) {
    throw Exception(damaged_array(path, it + " has no storage, or invalid sizes"));
  }
  if (axes == 0) {
    throw Exception(
        unsupported_array(path, it + " is a single value", "exclude it with fields=[...]"));
  }
  int64_t dense = 1;  // elements per record
  for (size_t axis = elements > 0 ? axes : 0; axis-- > 1;) {
    if (tensor.sizes[axis] != 1 && tensor.strides[axis] != dense) dense = -1;
    if (dense < 0) break;
    dense *= tensor.sizes[axis];
  }
  const int64_t step = tensor.sizes[0] == 1 ? dense : tensor.strides[0];
  if (storage->deflated || dense < 0 || (elements > 0 && step < dense)) {
    throw Exception(unsupported_array(path, it + " is not stored in order in the file",
                                      "save tensor.contiguous()"));
  }
  const uint64_t item = size_of(tensor.dtype), most = storage->bytes / item;
  const auto first = static_cast<uint64_t>(tensor.offset);
  uint64_t end = 0;  // of its last record
  const bool fits =
      elements == 0 ||
      (!__builtin_mul_overflow(static_cast<uint64_t>(tensor.sizes[0] - 1),
                               static_cast<uint64_t>(step), &end) &&
       !__builtin_add_overflow(end, first, &end) &&
       !__builtin_add_overflow(end, static_cast<uint64_t>(dense), &end) && end <= most);
  if (!fits) throw Exception(damaged_array(path, it + " ends after its storage"));
  FileArray out{
      .parts = {{archive.file, storage->offset + (elements ? first * item : 0), tensor.sizes[0]}},
      .dtype = tensor.dtype,
      .shape = Shape(tensor.sizes.begin() + 1, tensor.sizes.end()),
      .big_endian = big_endian};
  if (elements > 0 && step != dense) out.stride = static_cast<uint64_t>(step) * item;
  return out;
}

// A tuple of two is data and targets, as stored by torchvision's datasets.
std::string name_of_tensor(const TorchTensor& tensor, size_t count) {
  if (tensor.name.empty()) return "x";
  if (count == 2 && tensor.name == "0") return "x";
  return count == 2 && tensor.name == "1" ? "y" : tensor.name;
}

SourcePtr open_torch_file(const std::string& path, const Arguments& arguments, const Progress&) {
  const Archive archive = open_archive(path);
  const auto pickle = std::ranges::find_if(archive.members, is_pickle_of_archive, &ZipMember::name);
  const Buffer bytes = bytes_of(archive, *pickle);
  Result<TorchContents> read = read_torch_pickle(bytes.bytes(), path);
  if (!read) throw Exception(std::move(read.error()));
  const std::vector<TorchTensor>& tensors = read->tensors;
  if (!read->others.empty() && arguments.is_none("fields")) {
    throw Exception(unsupported_array(path,
                                      "'" + read->others[0].substr(0, 80) + "' is not a tensor",
                                      "select tensors with fields=[...]"));
  }
  std::vector<std::string> names;
  for (const TorchTensor& tensor : tensors) names.push_back(name_of_tensor(tensor, tensors.size()));
  const std::set<std::string_view> different(names.begin(), names.end());
  if (different.size() != names.size()) {
    throw Exception(damaged_array(path, "a name that appears twice"));
  }
  const bool big_endian = is_big_endian(archive);
  std::vector<NamedArray> arrays;
  for (const ArrayChoice& choice : choose_arrays(names, arguments)) {
    const auto at = size_t(std::ranges::find(names, choice.name) - names.begin());
    arrays.push_back({choice, array_of(archive, tensors[at], big_endian)});
  }
  return records(columns_from_arrays(std::move(arrays), arguments), "torch file " + path);
}

// A zip archive with a data.pkl. torch.save writes that first, so the archive's first header is
// enough; the directory, at its end, is only read for others.
bool is_torch_archive(const std::string& path) {
  if (has_suffix(path, ".npz") || !begins_as_zip(path)) return false;
  if (is_pickle_of_archive(first_zip_name(path))) return true;
  const Result<File> file = File::open(path);
  if (!file) return false;
  const Result<std::vector<ZipMember>> members = read_zip_directory(*file);
  return members && std::ranges::any_of(*members, is_pickle_of_archive, &ZipMember::name);
}

const FormatRecord kTorchFile{
    .name = "torch_file",
    .doc =
        "Tensors in a torch.save file (.pt, .pth) as fields: a dictionary of tensors, a tuple "
        "(data, target) or one tensor; the first axis indexes the records. Only tensors are read "
        "from its pickle, which is never executed; storages are read in place, by position.",
    .example = "hr.open(\"train.pt\", fields=[\"image\", \"label\"])",
    .params = {array_fields_param(), channels_param()},
    .recognizes = is_torch_archive,
    .open = open_torch_file};
const Register<FormatRecord> registered_torch_file_format(kTorchFile);

}  // namespace
}  // namespace headrace
