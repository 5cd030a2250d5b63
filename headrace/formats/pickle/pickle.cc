// SPDX-License-Identifier: Apache-2.0
// Pickles, recognized in order to be rejected: loading one runs arbitrary code.
#include <algorithm>
#include <array>
#include <cstring>
#include <string>

#include "headrace/base/registry.h"
#include "headrace/base/text.h"
#include "headrace/formats/arrays/binary_file.h"
#include "headrace/formats/arrays/zip_directory.h"
#include "headrace/formats/folder/folder_listing.h"
#include "headrace/formats/format.h"
#include "headrace/sources/source.h"
#include "headrace/storage/file.h"

namespace headrace {
namespace {

const ErrorCode kPickle{
    "HR0429", ErrorKind::kUnsupported, "pickles are not opened",
    "A pickle is a program that rebuilds Python objects. Loading one can run arbitrary code, and "
    "no check can distinguish a harmless pickle from a malicious one, so Headrace never loads "
    "pickles. Convert a trusted file once, into arrays (.npz, safetensors) or images in a folder; "
    "the message shows how. torch.load(..., weights_only=True) rejects most harmful content."};

enum class Kind { kNone, kTorch, kPickle, kJoblib, kCifar };

// Protocol 2 to 5 and a possible first opcode.
bool begins_as_pickle(std::span<const uint8_t> begin) {
  if (begin.size() < 3 || begin[0] != 0x80 || begin[1] < 2 || begin[1] > 5) return false;
  if (begin[1] >= 4 && begin[2] == 0x95) return true;
  constexpr std::string_view kFirst = "]}()cXKMJNGTU\x88\x89\x8a\x8b\x8c\x8e";
  return kFirst.find(static_cast<char>(begin[2])) != std::string_view::npos;
}

// Recognizes files that torch wrote before it used zip archives: a magic long integer.
bool is_old_torch(std::span<const uint8_t> begin) {
  constexpr std::array<uint8_t, 14> kMark = {0x80, 0x02, 0x8a, 0x0a, 0x6c, 0xfc, 0x9c,
                                             0x46, 0xf9, 0x20, 0x6a, 0xa8, 0x50, 0x19};
  return begin.size() >= kMark.size() && std::equal(kMark.begin(), kMark.end(), begin.begin());
}

bool begins_so(const std::string& path) {
  std::array<uint8_t, 16> begin{};
  const size_t count = peek_binary(path, begin);
  return begins_as_pickle(std::span<const uint8_t>(begin).first(count));
}

// CIFAR's Python version: batches.meta or meta next to the batches, all pickles.
bool is_cifar_folder(const std::string& path) {
  const auto pickled = [&](const char* name) {
    const std::string file = joined(path, name);
    return is_file(file) && begins_so(file);
  };
  return (pickled("batches.meta") && pickled("data_batch_1")) ||
         (pickled("meta") && pickled("train"));
}

Kind kind_of(const std::string& path) {
  if (is_folder(path)) return is_cifar_folder(path) ? Kind::kCifar : Kind::kNone;
  std::array<uint8_t, 16> bytes{};
  const size_t count = peek_binary(path, bytes);
  const auto begin = std::span<const uint8_t>(bytes).first(count);
  if (begins_as_zip(path)) return Kind::kNone;  // handled by torch_file, which does not unpickle
  if (is_old_torch(begin)) return Kind::kTorch;
  if (has_suffix(path, ".pth") || has_suffix(path, ".pt")) return Kind::kTorch;
  if (has_suffix(path, ".joblib")) return Kind::kJoblib;
  const std::string name = path.substr(path.rfind('/') + 1);
  if (begins_as_pickle(begin)) {
    const bool batch = name.starts_with("data_batch_") || name == "test_batch";
    return batch ? Kind::kCifar : Kind::kPickle;
  }
  for (const std::string_view suffix : {".pkl", ".pickle", ".pkl.gz", ".pickle.gz"}) {
    if (has_suffix(path, suffix)) return Kind::kPickle;
  }
  return Kind::kNone;
}

bool is_pickle(const std::string& path) { return kind_of(path) != Kind::kNone; }

std::string way_out(Kind kind) {
  switch (kind) {
    case Kind::kTorch:
      return "if you trust it and it contains only tensors, torch.save(torch.load(path, "
             "weights_only=True), \"data.pt\") writes a supported file";
    case Kind::kCifar:
      return "download the binary version (cifar-10-binary.tar.gz, cifar-100-binary.tar.gz) and "
             "open its folder";
    case Kind::kJoblib:
      return "if you trust it: data = joblib.load(path); np.savez(\"data.npz\", image=data[...])";
    default:
      return "if you trust it: data = pickle.load(open(path, \"rb\")); np.savez(\"data.npz\", "
             "image=data[...], label=data[...])";
  }
}

SourcePtr refuse(const std::string& path, const Arguments&, const Progress&) {
  const Kind kind = kind_of(path);
  std::string what = kind == Kind::kTorch ? "this is a torch.save file in the old format, a pickle"
                     : kind == Kind::kCifar ? "this is CIFAR's Python version, which is pickled"
                                            : "this is a pickle";
  throw Exception(Error{.code = &kPickle,
                        .what = what + ", and loading it could run arbitrary code",
                        .where = Where{.file = path},
                        .hint = way_out(kind)});
}

const FormatRecord kPickleRecord{
    .name = "pickle",
    .doc =
        "Pickles (.pkl, torch files from before 1.6, CIFAR's Python version, joblib): rejected, "
        "with advice on how to convert them. Loading a pickle can run arbitrary code.",
    .example = "hr.open(\"data.npz\")  # after np.savez(\"data.npz\", image=images, label=labels)",
    .params = {},
    .recognizes = is_pickle,
    .open = refuse};
const Register<FormatRecord> registered_pickle_format(kPickleRecord);

}  // namespace
}  // namespace headrace
