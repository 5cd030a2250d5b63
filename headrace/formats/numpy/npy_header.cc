// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <charconv>
#include <limits>

#include "headrace/base/byte_stream.h"
#include "headrace/formats/arrays/array_errors.h"
#include "headrace/formats/numpy/npy_array.h"
#include "headrace/sources/readable_text.h"

namespace headrace {
namespace {

constexpr size_t kMaxHeader = size_t{1} << 20;  // NumPy's own limit is 10,000 bytes
constexpr size_t kMaxMembers = 4096, kMaxDimensions = 64;

// A Python literal, as far as headers use it. After the first error everything is empty, and good()
// is false.
class Literal {
 public:
  explicit Literal(std::string_view text) : text_(text) {}
  bool good() const { return good_; }
  size_t at() const { return at_; }
  bool at_end() {
    blanks();
    return at_ == text_.size();
  }
  bool next_is(char c) {
    blanks();
    return good_ && at_ < text_.size() && text_[at_] == c;
  }
  bool take(char c) {
    if (!next_is(c)) return false;
    ++at_;
    return true;
  }
  void expect(char c) {
    if (!take(c)) fail();
  }
  void fail() { good_ = false; }

  // 'text' or "text", as written by repr().
  std::string string() {
    std::string out;
    if (next_is('u') || next_is('b')) ++at_;  // of Python 2
    const char quote = next_is('"') ? '"' : '\'';
    expect(quote);
    while (good_ && !(at_ < text_.size() && text_[at_] == quote)) {
      if (at_ >= text_.size()) return fail(), out;
      if (text_[at_] == '\\') {  // a name with escapes cannot be a field name
        if (++at_ >= text_.size()) return fail(), out;
        out += '_';
        ++at_;
        continue;
      }
      out += text_[at_++];
    }
    expect(quote);
    return out;
  }
  int64_t number() {
    blanks();
    int64_t value = 0;
    const char* begin = text_.data() + at_;
    const auto [end, error] = std::from_chars(begin, text_.data() + text_.size(), value);
    if (error != std::errc()) return fail(), 0;
    at_ += static_cast<size_t>(end - begin);
    if (at_ < text_.size() && text_[at_] == 'L') ++at_;  // Python 2's long
    return value;
  }
  bool boolean() {
    blanks();
    for (const std::string_view word : {"True", "False"}) {
      if (!text_.substr(at_).starts_with(word)) continue;
      at_ += word.size();
      return word == "True";
    }
    return fail(), false;
  }
  // (3, 4), (3,), () or 3.
  Shape shape() {
    Shape out;
    if (!next_is('(')) return {number()};
    expect('(');
    while (good_ && !take(')')) {
      out.push_back(number());
      if (out.size() > kMaxDimensions) fail();
      if (!take(',') && !next_is(')')) fail();
    }
    return out;
  }

 private:
  void blanks() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n')) ++at_;
  }
  std::string_view text_;
  size_t at_ = 0;
  bool good_ = true;
};

std::optional<DType> number_type(char kind, uint64_t bytes) {
  struct Known {
    char kind;
    uint64_t bytes;
    DType dtype;
  };
  static constexpr Known kKnown[] = {
      {'u', 1, DType::kUInt8},   {'u', 2, DType::kUInt16},  {'u', 4, DType::kUInt32},
      {'u', 8, DType::kUInt64},  {'i', 1, DType::kInt8},    {'i', 2, DType::kInt16},
      {'i', 4, DType::kInt32},   {'i', 8, DType::kInt64},   {'f', 2, DType::kFloat16},
      {'f', 4, DType::kFloat32}, {'f', 8, DType::kFloat64}, {'b', 1, DType::kBool},
  };
  for (const Known& known : kKnown) {
    if (known.kind == kind && known.bytes == bytes) return known.dtype;
  }
  return {};
}

Error not_read(const std::string& path, const std::string& descr, char kind) {
  std::string what = "its elements are of type '" + descr + "'";
  switch (kind) {
    case 'O':
      return unsupported_array(path, "it contains Python objects (dtype object), which are pickled",
                               "loading a pickle runs code; convert a file that you trust to a "
                               "plain array: np.save(path, np.stack(np.load(path, "
                               "allow_pickle=True)), allow_pickle=False)");
    case 'c':
      return unsupported_array(path, what + ", complex numbers",
                               "np.save(path, np.stack([a.real, a.imag], axis=-1))");
    case 'M':
    case 'm':
      return unsupported_array(path, what + ", dates or times",
                               "np.save(path, a.astype(\"int64\"))");
    case 'V':
      return unsupported_array(
          path, what + ", raw bytes (a void type)",
          "give them a type: np.save(path, a.view(\"uint8\")); store bfloat16 in safetensors");
    default:
      return unsupported_array(path, what, "np.save(path, a.astype(\"float64\"))");
  }
}

// '<f4', '|u1', '>U10'.
Result<NpyType> type_from(const std::string& descr, const std::string& path) {
  std::string_view rest = descr;
  NpyType type;
  if (!rest.empty() && std::string_view("<>|=").find(rest[0]) != std::string_view::npos) {
    type.big_endian = rest[0] == '>';
    rest.remove_prefix(1);
  }
  const char kind = rest.empty() ? '\0' : rest[0];
  if (kind == 'O') return not_read(path, descr, kind);
  uint64_t bytes = 0;
  const char* end = rest.data() + rest.size();
  const auto parsed = rest.size() < 2 ? std::from_chars_result{end, std::errc::invalid_argument}
                                      : std::from_chars(rest.data() + 1, end, bytes);
  if (parsed.ec != std::errc() || (parsed.ptr != end && kind != 'M' && kind != 'm')) {
    return damaged_array(path, "\"" + descr.substr(0, 40) + "\" is not a NumPy type");
  }
  type.bytes = bytes;
  if (kind == 'S' || kind == 'a' || kind == 'U') {
    if (bytes > (uint64_t{1} << 28)) return not_read(path, descr, kind);
    type.kind = kind == 'U' ? NpyType::Kind::kUnicode : NpyType::Kind::kBytes;
    if (kind == 'U') type.bytes = bytes * 4;  // UTF-32
    return type;
  }
  const std::optional<DType> dtype = number_type(kind, bytes);
  if (!dtype) return not_read(path, descr, kind);
  type.dtype = *dtype;
  return type;
}

// [('x', '<f4'), ('box', '<i2', (4,)), ('', '|V2')]
Result<void> read_members(Literal& in, const std::string& path, NpyHeader& header) {
  in.expect('[');
  while (in.good() && !in.take(']')) {
    NpyMember member;
    in.expect('(');
    if (in.take('(')) {  // (title, name)
      in.string();
      in.expect(',');
      member.name = in.string();
      in.expect(')');
    } else {
      member.name = in.string();
    }
    in.expect(',');
    if (in.next_is('[')) {
      return unsupported_array(path, "member '" + member.name + "' is a nested structure",
                               "save its members as separate arrays: np.savez(path, ...)");
    }
    const std::string descr = in.string();
    if (in.take(',') && !in.next_is(')')) member.shape = in.shape();
    in.expect(')');
    if (!in.take(',') && !in.next_is(']')) in.fail();
    if (!in.good() || header.members.size() >= kMaxMembers) break;
    member.offset = header.item_bytes;
    uint64_t bytes = 1;
    const bool padding = descr.find('V') != std::string::npos && member.name.empty();
    if (padding) {
      const char* begin = descr.data() + descr.find('V') + 1;
      if (std::from_chars(begin, descr.data() + descr.size(), bytes).ec != std::errc()) bytes = 0;
    } else {
      Result<NpyType> type = type_from(descr, path);
      if (!type) return std::move(type.error());
      member.type = *type;
      bytes = type->bytes;
    }
    for (const int64_t size : member.shape) {
      if (size < 0 || __builtin_mul_overflow(bytes, static_cast<uint64_t>(size), &bytes)) in.fail();
    }
    if (__builtin_add_overflow(header.item_bytes, bytes, &header.item_bytes)) in.fail();
    if (!padding) header.members.push_back(std::move(member));
  }
  if (!in.good() || header.members.empty()) {
    return damaged_array(path, "an invalid structured type");
  }
  return {};
}

// {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }
Result<void> parse(std::string_view text, uint64_t offset, const std::string& path,
                   NpyHeader& header) {
  Literal in(text);
  const auto damaged = [&](const std::string& what) {
    return damaged_array(path, what, static_cast<int64_t>(offset + in.at()));
  };
  unsigned seen = 0;
  in.expect('{');
  while (in.good() && !in.take('}')) {
    const std::string key = in.string();
    in.expect(':');
    const unsigned bit = key == "descr" ? 1 : key == "fortran_order" ? 2 : key == "shape" ? 4 : 0;
    if (in.good() && (bit == 0 || seen & bit)) {
      return damaged("key '" + key.substr(0, 40) + (bit ? "' twice" : "' in its header"));
    }
    seen |= bit;
    if (bit == 1 && in.next_is('[')) {
      if (Result<void> read = read_members(in, path, header); !read) return read;
    } else if (bit == 1) {
      const std::string descr = in.string();
      if (!in.good()) break;
      Result<NpyType> type = type_from(descr, path);
      if (!type) return std::move(type.error());
      header.type = *type;
      header.item_bytes = type->bytes;
    } else if (bit == 2) {
      header.fortran = in.boolean();
    } else if (bit == 4) {
      if (!in.next_is('(')) in.fail();
      header.shape = in.shape();
    }
    if (!in.take(',') && !in.next_is('}')) in.fail();
  }
  if (!in.good() || !in.at_end()) return damaged("its header is not a dictionary of three entries");
  if (seen != 7) return damaged("its header lacks one of descr, fortran_order and shape");
  return {};
}

}  // namespace

Result<NpyHeader> read_npy_header(const ReadBytes& read, uint64_t size, const std::string& path) {
  std::array<uint8_t, 12> begin{};
  const size_t some = static_cast<size_t>(std::min<uint64_t>(size, begin.size()));
  if (Result<void> got = read(0, {begin.data(), some}); !got) return std::move(got.error());
  ByteReader in(std::span<const uint8_t>(begin.data(), some));
  if (in.text(kNpyMagic.size()) != kNpyMagic) {
    return damaged_array(path, "it lacks the signature of a .npy file", 0);
  }
  const auto major = in.number<uint8_t>();
  const auto minor = in.number<uint8_t>();
  if (!in.good() || major < 1 || major > 3 || minor != 0) {
    return damaged_array(path,
                         "version " + std::to_string(major) + "." + std::to_string(minor) +
                             " of the format does not exist",
                         6);
  }
  const uint64_t length = major == 1 ? in.number<uint16_t>() : in.number<uint32_t>();
  NpyHeader header;
  header.data_offset = (major == 1 ? 10 : 12) + length;
  if (!in.good() || header.data_offset > size || length > kMaxHeader) {
    return damaged_array(
        path,
        "a header of " + std::to_string(length) + " bytes in a file of " + std::to_string(size), 8);
  }
  std::string text(length, '\0');
  const uint64_t offset = header.data_offset - length;
  if (Result<void> got = read(offset, {reinterpret_cast<uint8_t*>(text.data()), text.size()});
      !got) {
    return std::move(got.error());
  }
  if (Result<void> parsed = parse(text, offset, path, header); !parsed) {
    return std::move(parsed.error());
  }
  if (header.item_bytes == 0) {
    return unsupported_array(path, "its elements have zero bytes",
                             "np.save(path, a.astype(\"S1\"))");
  }
  // `extent`: excluding axes of length 0, so that no partial product overflows either.
  uint64_t bytes = header.item_bytes, extent = bytes;
  bool fits = bytes <= static_cast<uint64_t>(std::numeric_limits<int64_t>::max());
  for (const int64_t dimension : header.shape) {
    fits = fits && dimension >= 0 &&
           !__builtin_mul_overflow(extent, static_cast<uint64_t>(std::max<int64_t>(dimension, 1)),
                                   &extent);
    if (fits) bytes *= static_cast<uint64_t>(dimension);
  }
  if (!fits || bytes > size - header.data_offset) {
    return damaged_array(path,
                         "its shape " + tuple_text(header.shape) + " takes " +
                             (fits ? std::to_string(bytes) : std::string("more")) + " bytes, but " +
                             std::to_string(size - header.data_offset) + " follow",
                         static_cast<int64_t>(header.data_offset));
  }
  header.data_bytes = bytes;
  return header;
}

}  // namespace headrace
