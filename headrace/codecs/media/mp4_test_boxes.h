// SPDX-License-Identifier: Apache-2.0
// Writes small MP4 files for tests: a track is described by a struct, and each box can be replaced.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "headrace/base/bytes_test_join.h"

namespace headrace::mp4_test {

using bytes_test::Bytes;
using bytes_test::operator+;

inline void put(Bytes& out, uint64_t value, int bytes) {
  while (bytes-- > 0) out.push_back(static_cast<uint8_t>(value >> 8 * bytes));
}
inline Bytes numbers(const std::vector<uint32_t>& values) {
  Bytes out;
  for (const uint32_t value : values) put(out, value, 4);
  return out;
}
inline Bytes text(std::string_view letters) { return {letters.begin(), letters.end()}; }
inline Bytes box(std::string_view type, const Bytes& content) {
  Bytes out;
  put(out, content.size() + 8, 4);
  return out + text(type) + content;
}

struct Sample {
  Bytes content;
  uint32_t duration = 10;
  int32_t delay = 0;
  bool key = false;
};

// One video track.
struct Movie {
  std::vector<Sample> samples;
  uint32_t movie_rate = 1000, media_rate = 300;
  std::vector<uint32_t> matrix{0x10000, 0, 0, 0, 0x10000, 0, 0, 0, 0x40000000};
  std::string handler = "vide", entry = "avc1";
  Bytes entry_boxes = box("avcC", {1, 100, 0, 30, 0xFF, 0xE0, 0});
  Bytes elst;  // the content of the box; no box if empty
  uint32_t samples_per_chunk = 2;
  bool wide_chunks = false;  // co64
  bool moov_first = true;
  uint32_t track_flags = 3;
  // Replaces the content of these boxes; if empty, the box is left out.
  std::map<std::string, Bytes> instead;
  Bytes more_tables, more_of_moov;  // boxes after the others

  Bytes file() const {
    Bytes ftyp = box("ftyp", text("isom") + numbers({0}) + text("isom"));
    Bytes data;
    for (const Sample& sample : samples) data = data + sample.content;
    const Bytes mdat = box("mdat", data);
    if (!moov_first) return ftyp + mdat + moov(ftyp.size() + 8);
    const size_t moov_bytes = moov(0).size();
    return ftyp + moov(ftyp.size() + moov_bytes + 8) + mdat;
  }

  Bytes named(const std::string& type, Bytes content) const {
    const auto found = instead.find(type);
    if (found == instead.end()) return box(type, content);
    return found->second.empty() ? Bytes{} : box(type, found->second);
  }

  Bytes stsd() const {
    Bytes visual(24, 0);
    visual[7] = 1;  // the first data reference
    put(visual, 64, 2);
    put(visual, 48, 2);
    visual.resize(78, 0);
    return numbers({0, 1}) + box(entry, visual + entry_boxes);
  }

  Bytes stbl(size_t first_chunk) const {
    const auto count = static_cast<uint32_t>(samples.size());
    Bytes stts = numbers({0, count}), ctts = stts, stsz = numbers({0, 0, count});
    std::vector<uint32_t> keys, chunks;
    size_t at = first_chunk;
    for (uint32_t i = 0; i < count; ++i) {
      const Sample& sample = samples[i];
      stts = stts + numbers({1, sample.duration});
      ctts = ctts + numbers({1, static_cast<uint32_t>(sample.delay)});
      stsz = stsz + numbers({static_cast<uint32_t>(sample.content.size())});
      if (sample.key) keys.push_back(i + 1);
      if (i % samples_per_chunk == 0) chunks.push_back(static_cast<uint32_t>(at));
      at += sample.content.size();
    }
    Bytes stss = numbers({0, static_cast<uint32_t>(keys.size())}) + numbers(keys);
    Bytes stco = numbers({0, static_cast<uint32_t>(chunks.size())});
    for (const uint32_t chunk : chunks) put(stco, chunk, wide_chunks ? 8 : 4);
    const Bytes stsc = count == 0 ? numbers({0, 0}) : numbers({0, 1, 1, samples_per_chunk, 1});
    return named("stsd", stsd()) + named("stts", stts) + named("ctts", ctts) + named("stss", stss) +
           named("stsc", stsc) + named("stsz", stsz) + named(wide_chunks ? "co64" : "stco", stco) +
           more_tables;
  }

  Bytes trak(size_t first_chunk) const {
    const Bytes tkhd = numbers({track_flags, 0, 0, 1, 0, 0, 0, 0, 0, 0}) + numbers(matrix) +
                       numbers({64 << 16, 48 << 16});
    const Bytes mdhd = numbers({0, 0, 0, media_rate, 0, 0});
    const Bytes hdlr = numbers({0, 0}) + text(handler) + numbers({0, 0, 0}) + Bytes{0};
    const Bytes dinf = box("dref", numbers({0, 1}) + box("url ", numbers({1})));
    const Bytes minf = box("minf", named("dinf", dinf) + named("stbl", stbl(first_chunk)));
    return named("tkhd", tkhd) + (elst.empty() ? Bytes{} : box("edts", box("elst", elst))) +
           box("mdia", named("mdhd", mdhd) + named("hdlr", hdlr) + minf);
  }

  Bytes moov(size_t first_chunk) const {
    const Bytes mvhd = numbers({0, 0, 0, movie_rate, 0, 0x10000, 0, 0, 0}) +
                       numbers({0x10000, 0, 0, 0, 0x10000, 0, 0, 0, 0x40000000}) +
                       numbers({0, 0, 0, 0, 0, 0, 2});
    return box("moov", named("mvhd", mvhd) + box("trak", trak(first_chunk)) + more_of_moov);
  }
};

// Packets of i + 1 bytes with the value i; the first is a key frame.
inline Movie counting_movie(int packets) {
  Movie movie;
  for (int i = 0; i < packets; ++i) {
    movie.samples.push_back(
        {.content = Bytes(static_cast<size_t>(i + 1), static_cast<uint8_t>(i)), .key = i == 0});
  }
  return movie;
}

}  // namespace headrace::mp4_test
