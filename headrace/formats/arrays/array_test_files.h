// SPDX-License-Identifier: Apache-2.0
// For tests of array formats: writes files according to their specifications, and reads sources.
#pragma once

#include <gtest/gtest.h>
#include <zlib.h>

#include <functional>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "headrace/formats/format.h"
#include "headrace/sources/source_test_reads.h"

namespace headrace {

using Bytes = std::vector<uint8_t>;

// As numpy.lib.format writes it: the header is padded to a multiple of 64 bytes and ends with a
// newline.
inline std::string npy(const std::string& dictionary, const std::string& data, int major = 1) {
  std::string header = dictionary;
  const size_t begin = major == 1 ? 10 : 12;
  while ((begin + header.size() + 1) % 64 != 0) header += ' ';
  header += '\n';
  std::string out = "\x93NUMPY";
  out += static_cast<char>(major);
  out += '\0';
  for (size_t i = 0; i < begin - 8; ++i) out += static_cast<char>(header.size() >> 8 * i);
  return out + header + data;
}
inline std::string npy_of(const std::string& descr, const std::string& shape,
                          const std::string& data, const std::string& fortran = "False") {
  return npy(
      "{'descr': '" + descr + "', 'fortran_order': " + fortran + ", 'shape': " + shape + ", }",
      data);
}
inline std::string counting(size_t bytes) {
  std::string out(bytes, 0);
  std::iota(out.begin(), out.end(), 0);
  return out;
}

inline std::string deflated(const std::string& text, int window_bits) {
  z_stream stream{};
  deflateInit2(&stream, 6, Z_DEFLATED, window_bits, 8, Z_DEFAULT_STRATEGY);
  std::string out(deflateBound(&stream, text.size()) + 64, 0);
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  ::deflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}
inline std::string gzipped(const std::string& text) { return deflated(text, 31); }

// A zip archive according to PKWARE's APPNOTE, as zipfile.ZipFile writes it.
struct ZipWriter {
  bool zip64 = false;  // sizes and offsets in extra fields
  std::string out = {}, directory = {};
  int members = 0;

  static void number(std::string& to, uint64_t value, size_t bytes) {
    for (size_t i = 0; i < bytes; ++i, value >>= 8) to += static_cast<char>(value);
  }
  void add(const std::string& name, const std::string& content, bool deflate = false,
           uint16_t flags = 0, int method = -1) {
    const std::string stored = deflate ? deflated(content, -15) : content;
    const auto* raw = reinterpret_cast<const Bytef*>(content.data());
    const uint64_t crc = ::crc32(0, raw, static_cast<uInt>(content.size())), local = out.size();
    const auto sizes = [&](std::string& to) {
      number(to, 20, 2);
      number(to, flags, 2);
      number(to, method >= 0 ? static_cast<uint64_t>(method) : deflate ? 8 : 0, 2);
      number(to, 0, 4);
      number(to, crc, 4);
      number(to, zip64 ? UINT32_MAX : stored.size(), 4);
      number(to, zip64 ? UINT32_MAX : content.size(), 4);
      number(to, name.size(), 2);
    };
    number(out, 0x04034b50, 4);
    sizes(out);
    number(out, 3, 2);
    out += name + "..." + stored;
    number(directory, 0x02014b50, 4);
    number(directory, 20, 2);
    sizes(directory);
    number(directory, zip64 ? 28 : 0, 2);
    number(directory, 0, 2 + 2 + 2 + 4);
    number(directory, zip64 ? UINT32_MAX : local, 4);
    directory += name;
    if (zip64) {
      number(directory, 1, 2);
      number(directory, 24, 2);
      for (const uint64_t value : {uint64_t{content.size()}, uint64_t{stored.size()}, local}) {
        number(directory, value, 8);
      }
    }
    ++members;
  }
  std::string finish(const std::string& comment = {}) const {
    std::string file = out + directory;
    if (zip64) {
      const uint64_t end = file.size();
      number(file, 0x06064b50, 4);
      number(file, 44, 8);
      number(file, 45, 2 + 2);
      number(file, 0, 4 + 4);
      number(file, static_cast<uint64_t>(members), 8);
      number(file, static_cast<uint64_t>(members), 8);
      number(file, directory.size(), 8);
      number(file, out.size(), 8);
      number(file, 0x07064b50, 4);
      number(file, 0, 4);
      number(file, end, 8);
      number(file, 1, 4);
    }
    number(file, 0x06054b50, 4);
    number(file, 0, 2 + 2);
    const uint64_t count = zip64 ? UINT16_MAX : static_cast<uint64_t>(members);
    number(file, count, 2);
    number(file, count, 2);
    number(file, zip64 ? UINT32_MAX : directory.size(), 4);
    number(file, zip64 ? UINT32_MAX : out.size(), 4);
    number(file, comment.size(), 2);
    return file + comment;
  }
};

inline Bytes bytes_of(const Source& source, int64_t index, size_t field = 0) {
  const RecordData record = read_record(source, index);
  EXPECT_TRUE(record.result) << (record.result ? "" : record.result.error().message());
  return {record.fields[field].bytes.begin(), record.fields[field].bytes.end()};
}

// Opens the file with the given format and reads up to 30 records; any exception other than ours
// ends the test.
inline void use_damaged(const std::string& path, const std::string& format) {
  try {
    const SourcePtr source = open_source(path, {{"format", format}});
    for (int64_t i = 0; i < std::min<int64_t>(source->size(), 30); ++i) read_record(*source, i);
  } catch (const Exception&) {
  }
}

// Calls `use` with the file truncated at every 1/64, and with each bit of the first bytes flipped.
inline void for_each_damage(const std::string& sound, size_t first_bytes,
                            const std::function<void(const std::string&)>& use) {
  for (size_t part = 0; part < 64; ++part) use(sound.substr(0, sound.size() * part / 64));
  for (size_t bit = 0; bit < std::min(first_bytes, sound.size()) * 8; ++bit) {
    std::string changed = sound;
    changed[bit / 8] = static_cast<char>(changed[bit / 8] ^ (1 << bit % 8));
    use(changed);
  }
}

}  // namespace headrace
