// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cstring>

#include "headrace/base/text.h"
#include "headrace/formats/arrays/array_errors.h"
#include "headrace/formats/numpy/npy_files.h"
#include "headrace/formats/tokens/tokens.h"
#include "headrace/sources/columns/array_elements.h"
#include "headrace/sources/readable_text.h"
#include "headrace/storage/file.h"

namespace headrace {
namespace {

const ErrorCode kUnlikelyDtype{
    "HR1440", ErrorKind::kConfig, "tokens do not look like uint16",
    "A file of raw tokens does not declare a dtype, so it is read as uint16 unless dtype= is "
    "given. As uint16, every second token of this file would be 0 or close to 0, which suggests "
    "32-bit or 64-bit tokens. Pass the dtype with which the file was written, even if it is "
    "uint16."};

const ErrorCode kOtherDtype{
    "HR1441", ErrorKind::kConfig, "dtype differs from the file's header",
    "The header of a .npy, of llm.c's .bin or of Megatron's .idx declares the dtype of its tokens, "
    "but dtype= differs from it. Omit dtype=, which is for files without a header."};

constexpr size_t kLlmHeader = 1024;  // 256 int32 numbers: magic, version, tokens, zeros
struct LlmKind {
  int32_t magic, version;
  DType dtype;
};
constexpr std::array<LlmKind, 2> kLlmKinds{
    {{20240520, 1, DType::kUInt16}, {20240801, 7, DType::kUInt32}}};

// Whether a file, which is read next, has this signature. Throws if the storage fails: the bytes
// after the first ones must not be taken for tokens then.
bool begins_with(const std::string& path, std::string_view bytes) {
  std::array<uint8_t, 16> first;
  const Result<size_t> read = read_prefix(path, std::span(first).first(bytes.size()));
  if (!read) throw Exception(read.error());
  return *read == bytes.size() && std::memcmp(first.data(), bytes.data(), *read) == 0;
}

// The beginning of a file, in one read, for everything that inspects it.
std::vector<uint8_t> begin_of(const std::string& path) {
  std::vector<uint8_t> bytes(size_t{1} << 14);
  const Result<size_t> read = read_prefix(path, bytes);
  if (!read) throw Exception(read.error());
  bytes.resize(*read);
  return bytes;
}

std::optional<TokenFile> llm_file(const std::string& path, uint64_t size,
                                  std::span<const uint8_t> begin) {
  std::array<int32_t, 3> header{};
  if (size < kLlmHeader || begin.size() < sizeof header) return {};
  std::memcpy(header.data(), begin.data(), sizeof header);
  for (const LlmKind& kind : kLlmKinds) {
    if (header[0] != kind.magic || header[1] != kind.version) continue;
    const uint64_t after = size - kLlmHeader, item = size_of(kind.dtype);
    const auto said = static_cast<int64_t>(header[2]);
    if (said < 0 || static_cast<uint64_t>(said) * item != after) {
      throw Exception(damaged_array(path,
                                    "its header declares " + std::to_string(said) +
                                        " tokens, which does not match the " +
                                        std::to_string(after) + " bytes after it",
                                    8));
    }
    return TokenFile{.path = path, .dtype = kind.dtype, .offset = kLlmHeader, .tokens = said};
  }
  return {};
}

std::string with_ending(const std::string& path, std::string_view ending) {
  return path.substr(0, path.size() - 4) + std::string(ending);
}

// Object stores answer 403 for a missing object if the caller may not list the bucket.
bool exists_or_throws(const std::string& path) {
  const Result<FileIdentity> found = identity_of(path);
  if (found) return true;
  const Error& error = found.error();
  if (error.code->id == "HR0201" || error.code->id == "HR0231") return false;
  throw Exception(error);
}

// Megatron's .idx for a .bin, or the path itself if it is one; empty: none.
std::string index_of(const std::string& path) {
  if (!has_suffix(path, ".bin") && !has_suffix(path, ".idx")) return {};
  if (without_query(path).size() < path.size()) return {};  // its query is for this file alone
  const std::string index = with_ending(path, ".idx");
  if (index == path) return is_file(path) ? index : "";
  if (!exists_or_throws(index) || is_folder(index)) return {};
  return begins_with(index, kMegatronMagic) ? index : "";
}

uint64_t size_of_file(const std::string& path) {
  const Result<FileIdentity> identity = identity_of(path);
  if (!identity) throw Exception(identity.error());
  return identity->size;
}

TokenFile megatron_file(const std::string& index) {
  TokenFile out{.path = with_ending(index, ".bin")};
  MegatronIndex read = read_megatron_index(index, size_of_file(out.path));
  out.dtype = read.dtype;
  out.tokens = read.tokens;
  out.document_ends = std::move(read.document_ends);
  return out;
}

TokenFile npy_file(const std::string& path) {
  const NpyHeader header = npy_header_of(path);
  if (header.shape.size() != 1 || !header.members.empty() ||
      header.type.kind != NpyType::Kind::kNumber || !is_integer(header.type.dtype)) {
    throw Exception(unsupported_array(
        path,
        "it has shape " + tuple_text(header.shape) +
            ", but tokens must be a one-dimensional array of integers",
        "np.save(path, tokens.reshape(-1)); hr.npy(path) reads arrays of any shape"));
  }
  return {.path = path,
          .dtype = header.type.dtype,
          .big_endian = header.type.big_endian,
          .offset = header.data_offset,
          .tokens = header.shape[0]};
}

// Wider tokens read as uint16: the halves after the low ones are 0, or small for ids above 65,535.
struct Halves {
  bool wider = false, all_zero = false, of_64_bits = false;
};

Halves halves_of(std::span<const uint8_t> begin) {
  constexpr uint32_t kSmall = 16;        // as the upper half: ids below 2^20
  uint32_t low = 0, high = 0, last = 0;  // the largest ones; of 64 bits the upper 32
  for (size_t i = 0; i + 4 <= begin.size(); i += 4) {
    const uint32_t even = begin[i] | begin[i + 1] << 8, odd = begin[i + 2] | begin[i + 3] << 8;
    low = std::max(low, even);
    high = std::max(high, odd);
    if (i % 8 == 4) last = std::max({last, even, odd});
  }
  Halves out;
  out.all_zero = high == 0;
  out.wider = begin.size() >= 32 && (high == 0 ? low > 0 : high < kSmall && low >= kSmall);
  out.of_64_bits = out.wider && last == 0;
  return out;
}

TokenFile raw_file(const std::string& path, uint64_t size, std::span<const uint8_t> begin,
                   std::optional<DType> dtype) {
  TokenFile out{.path = path, .dtype = dtype.value_or(DType::kUInt16)};
  const size_t item = size_of(out.dtype);
  if (size % item != 0) {
    throw Exception(damaged_array(path,
                                  "it has " + std::to_string(size) +
                                      " bytes, which is not a multiple of " + std::to_string(item) +
                                      ", the size of a token of " + std::string(name_of(out.dtype)),
                                  -1, "pass dtype=, or rewrite the file"));
  }
  const Halves halves = !dtype && size % 4 == 0 ? halves_of(begin) : Halves{};
  if (halves.of_64_bits && size % 8 == 0) {
    raise(kUnlikelyDtype, path + ": of every four tokens the last two are 0",
          "dtype=\"int64\", or \"uint64\", if these are 64 bits wide; dtype=\"uint16\" if not");
  }
  if (halves.wider) {
    raise(kUnlikelyDtype, path + ": every second token is " + (halves.all_zero ? "0" : "below 16"),
          "dtype=\"uint32\", or \"int32\", if these are 32 bits wide; dtype=\"uint16\" if not");
  }
  out.tokens = static_cast<int64_t>(size / item);
  return out;
}

TokenFile given_dtype(TokenFile known, std::optional<DType> dtype) {
  if (!dtype || *dtype == known.dtype) return known;
  raise(kOtherDtype,
        known.path + " has " + std::string(name_of(known.dtype)) + " tokens, not " +
            std::string(name_of(*dtype)),
        "omit dtype=");
}

}  // namespace

bool is_token_file(const std::string& path) {
  if (is_folder(path)) return false;
  if (has_suffix(path, ".idx") && !file_begins_with(path, kMegatronMagic)) return false;
  if (!index_of(path).empty()) return true;
  std::array<uint8_t, 8> begin{};
  const Result<size_t> read = read_prefix(path, begin);
  if (!read || *read < begin.size() || !has_suffix(path, ".bin")) return false;
  std::array<int32_t, 2> words{};
  std::memcpy(words.data(), begin.data(), sizeof words);
  return std::ranges::any_of(kLlmKinds, [&](const LlmKind& kind) {
    return kind.magic == words[0] && kind.version == words[1];
  });
}

TokenFile open_token_file(const std::string& path, std::optional<DType> dtype) {
  if (const std::string index = index_of(path); !index.empty()) {
    return given_dtype(megatron_file(index), dtype);
  }
  const std::vector<uint8_t> begin = begin_of(path);
  if (std::string_view(reinterpret_cast<const char*>(begin.data()), begin.size())
          .starts_with(kNpyMagic)) {
    return given_dtype(npy_file(path), dtype);
  }
  const uint64_t size = size_of_file(path);
  if (std::optional<TokenFile> known = llm_file(path, size, begin)) {
    return given_dtype(std::move(*known), dtype);
  }
  return raw_file(path, size, begin, dtype);
}

}  // namespace headrace
