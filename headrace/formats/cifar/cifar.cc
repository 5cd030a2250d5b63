// SPDX-License-Identifier: Apache-2.0
// The binary version of CIFAR-10 and CIFAR-100: per record one label byte (CIFAR-100: two) and 3072
// bytes of pixels, red, green and blue, each 32 x 32.
#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "headrace/base/registry.h"
#include "headrace/base/text.h"
#include "headrace/formats/arrays/array_errors.h"
#include "headrace/formats/arrays/binary_file.h"
#include "headrace/formats/folder/folder_listing.h"
#include "headrace/formats/format.h"
#include "headrace/sources/columns/columns.h"
#include "headrace/sources/readable_text.h"
#include "headrace/storage/file.h"

namespace headrace {
namespace {

constexpr uint64_t kPixels = 3 * 32 * 32;

// CIFAR-100 has a coarse label before the fine one.
struct Version {
  bool fine_and_coarse = false;
  uint64_t labels() const { return fine_and_coarse ? 2 : 1; }
  uint64_t stride() const { return labels() + kPixels; }
};

std::string name_of_path(const std::string& path) { return path.substr(path.rfind('/') + 1); }
std::string folder_of(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : path.substr(0, std::max<size_t>(slash, 1));
}

std::string without_gz(std::string name) {
  if (name.ends_with(".gz")) name.resize(name.size() - 3);
  return name;
}

// Standard file names: data_batch_1.bin, test_batch.bin; train.bin, test.bin.
bool is_batch(const std::string& path, Version& version) {
  const std::string name = without_gz(name_of_path(path));
  const bool ten =
      (name.starts_with("data_batch_") && name.ends_with(".bin")) || name == "test_batch.bin";
  version.fine_and_coarse = name == "train.bin" || name == "test.bin";
  if (!ten && !version.fine_and_coarse) return false;
  std::array<uint8_t, 2> begin{};
  if (peek_binary(path, begin) < 2) return false;
  return version.fine_and_coarse ? begin[0] < 20 && begin[1] < 100 : begin[0] < 10;
}

// A file of this name in the folder, plain or gzipped; empty: none.
std::string found(const std::string& folder, const std::string& name) {
  for (const std::string& path : {joined(folder, name), joined(folder, name + ".gz")}) {
    if (is_file(path)) return path;
  }
  return {};
}

struct Batches {
  std::vector<std::string> train, test;
};

Batches batches_in(const std::string& folder) {
  Batches out;
  Version version;
  const auto add = [&](const std::string& name, std::vector<std::string>& files) {
    const std::string path = found(folder, name);
    if (!path.empty() && is_batch(path, version)) files.push_back(path);
  };
  for (int i = 1; i <= 5; ++i) add("data_batch_" + std::to_string(i) + ".bin", out.train);
  add("test_batch.bin", out.test);
  if (!out.train.empty() || !out.test.empty()) return out;
  add("train.bin", out.train);
  add("test.bin", out.test);
  return out;
}

bool is_cifar(const std::string& path) {
  Version version;
  if (!is_folder(path)) return is_batch(path, version);
  const Batches batches = batches_in(path);
  return !batches.train.empty() || !batches.test.empty();
}

// One name per line; none if there is no such file.
std::vector<std::string> names_in(const std::string& path) {
  std::vector<std::string> out;
  if (!is_file(path)) return out;
  Buffer bytes;
  if (Result<void> read = read_file(path, bytes, {.max_bytes = 65536}); !read) {
    throw Exception(std::move(read.error()));
  }
  std::string line;
  for (const uint8_t byte : bytes.bytes()) {
    if (byte == '\r') continue;
    if (byte != '\n') {
      line += static_cast<char>(byte);
    } else if (!line.empty()) {
      out.push_back(std::move(line));
      line.clear();
    }
  }
  if (!line.empty()) out.push_back(std::move(line));
  return out;
}

std::vector<FilePart> parts_of(const std::vector<std::string>& files, const Version& version) {
  std::vector<FilePart> parts;
  for (const std::string& file : files) {
    FilePart part = open_binary(file);
    if (part.size() % version.stride() != 0) {
      throw Exception(damaged_array(file, std::to_string(part.size()) +
                                              " bytes are not a whole number of records of " +
                                              std::to_string(version.stride())));
    }
    part.count = static_cast<int64_t>(part.size() / version.stride());
    parts.push_back(std::move(part));
  }
  return parts;
}

// A label without a name would be an index out of range in the loss.
void check_labels(const Source& source, const std::string& field, const std::string& path,
                  size_t most) {
  const std::vector<int64_t> labels = source.integer_column(field);
  for (size_t i = 0; i < labels.size(); ++i) {
    if (labels[i] < static_cast<int64_t>(most)) continue;
    Error error = damaged_array(path, "'" + field + "' is " + std::to_string(labels[i]) +
                                          ", but there are " + std::to_string(most) + " classes");
    error.where.record = static_cast<int64_t>(i);
    throw Exception(std::move(error));
  }
}

SourcePtr source_of(const std::string& path, const std::vector<std::string>& files) {
  Version version;
  is_batch(files[0], version);
  const std::string folder = folder_of(files[0]);
  const bool both = version.fine_and_coarse;
  const std::vector<FilePart> parts = parts_of(files, version);
  const auto array = [&](uint64_t offset, Shape shape) {
    FileArray out{.parts = parts, .shape = std::move(shape), .stride = version.stride()};
    for (FilePart& part : out.parts) part.offset += offset;
    return out;
  };
  std::vector<Column> columns;
  columns.push_back({"image", array(version.labels(), {3, 32, 32}), FieldKind::kImage});
  columns.push_back({"label", array(both ? 1 : 0, {}), FieldKind::kLabel,
                     names_in(joined(folder, both ? "fine_label_names.txt" : "batches.meta.txt"))});
  if (both) {
    columns.push_back({"coarse_label", array(0, {}), FieldKind::kLabel,
                       names_in(joined(folder, "coarse_label_names.txt"))});
  }
  SourcePtr source = records(std::move(columns), "cifar " + path);
  check_labels(*source, "label", path, both ? 100 : 10);
  if (both) check_labels(*source, "coarse_label", path, 20);
  return source;
}

SourcePtr open_cifar(const std::string& path, const Arguments& arguments, const Progress&) {
  if (!is_folder(path)) return source_of(path, {path});
  const Batches batches = batches_in(path);
  const bool both = !batches.train.empty() && !batches.test.empty();
  if (both && arguments.is_none("split")) {
    throw Exception(several_parts(path, "it contains both the training set and the test set",
                                  "name one: split=\"train\" or split=\"test\""));
  }
  const bool train =
      arguments.is_none("split") ? !batches.train.empty() : arguments.text("split") == "train";
  const std::vector<std::string>& files = train ? batches.train : batches.test;
  if (files.empty()) {
    throw Exception(several_parts(path, "it contains no file of that split",
                                  "copy the whole folder, as extracted from the archive"));
  }
  return source_of(path, files);
}

const FormatRecord kCifar{
    .name = "cifar",
    .doc =
        "The binary version of CIFAR-10 (data_batch_1.bin, ...) and CIFAR-100 (train.bin, "
        "test.bin), a file or the folder, gzipped or not. Fields: image, label, and for CIFAR-100 "
        "coarse_label; class names come from the text files next to it.",
    .example = "hr.open(\"cifar-10-batches-bin\", split=\"train\")",
    .params = {{.name = "split",
                .type = ParamType::kString,
                .doc = "For a folder: the training set (all batches in order) or the test set.",
                .choices = {"train", "test"}}},
    .recognizes = is_cifar,
    .open = open_cifar};
const Register<FormatRecord> registered_cifar_format(kCifar);

}  // namespace
}  // namespace headrace
