// SPDX-License-Identifier: Apache-2.0
#include "headrace/codecs/audio/vorbis_packets.h"

#include <vorbis/codec.h>

#include <string>

#include "headrace/codecs/audio/audio_codec.h"
#include "headrace/codecs/run_time_library.h"

namespace headrace {
namespace {

constexpr size_t kHeaders = 3;

struct VorbisCore {
  RunTimeLibrary library{"libvorbis.so.0", "libvorbis0a"};
  decltype(&vorbis_info_init) init_info = nullptr;
  decltype(&vorbis_info_clear) clear_info = nullptr;
  decltype(&vorbis_comment_init) init_comment = nullptr;
  decltype(&vorbis_comment_clear) clear_comment = nullptr;
  decltype(&vorbis_synthesis_headerin) header_in = nullptr;
  decltype(&vorbis_packet_blocksize) block_size = nullptr;

  VorbisCore() {
    library.find(init_info, "vorbis_info_init");
    library.find(clear_info, "vorbis_info_clear");
    library.find(init_comment, "vorbis_comment_init");
    library.find(clear_comment, "vorbis_comment_clear");
    library.find(header_in, "vorbis_synthesis_headerin");
    library.find(block_size, "vorbis_packet_blocksize");
  }
};

const VorbisCore& vorbis_core() {
  static const VorbisCore core;
  return core;
}

ogg_packet packet_of(std::span<const uint8_t> bytes, size_t number) {
  ogg_packet out{};
  out.packet = const_cast<unsigned char*>(bytes.data());  // the library only reads it
  out.bytes = static_cast<long>(bytes.size());
  out.b_o_s = number == 0;
  out.packetno = static_cast<ogg_int64_t>(number);
  return out;
}

struct VorbisInfo {
  const VorbisCore& core = vorbis_core();
  vorbis_info info{};
  vorbis_comment comment{};

  VorbisInfo() {
    core.init_info(&info);
    core.init_comment(&comment);
  }
  ~VorbisInfo() {
    core.clear_comment(&comment);
    core.clear_info(&info);
  }
  VorbisInfo(const VorbisInfo&) = delete;
  VorbisInfo& operator=(const VorbisInfo&) = delete;
};

Error corrupt_vorbis(std::string what) { return corrupt_audio("Vorbis", std::move(what)); }

}  // namespace

Result<std::vector<std::span<const uint8_t>>> vorbis_headers(std::span<const uint8_t> parameters) {
  size_t sizes[kHeaders] = {}, at = 1;
  if (parameters.empty() || parameters[0] != kHeaders - 1) {
    return corrupt_vorbis("its decoder parameters are not three packets");
  }
  for (size_t i = 0; i + 1 < kHeaders; ++i) {
    uint8_t more = 255;
    while (more == 255 && at < parameters.size()) sizes[i] += more = parameters[at++];
  }
  if (sizes[0] + sizes[1] >= parameters.size() - at) {
    return corrupt_vorbis("its decoder's parameters are truncated");
  }
  sizes[2] = parameters.size() - at - sizes[0] - sizes[1];
  std::vector<std::span<const uint8_t>> out;
  for (const size_t size : sizes) {
    out.push_back(parameters.subspan(at, size));
    at += size;
  }
  return out;
}

Result<std::vector<int64_t>> vorbis_positions(std::span<const std::span<const uint8_t>> headers,
                                              std::span<const std::span<const uint8_t>> packets) {
  const VorbisCore& core = vorbis_core();
  if (!core.library.is_open()) return core.library.missing();
  VorbisInfo vorbis;
  for (size_t i = 0; i < headers.size(); ++i) {
    ogg_packet packet = packet_of(headers[i], i);
    if (core.header_in(&vorbis.info, &vorbis.comment, &packet) != 0) {
      return corrupt_vorbis("its decoder's parameters are damaged");
    }
  }
  std::vector<int64_t> out;
  int64_t position = 0;
  long before = 0;  // half of a block overlaps with half of the previous one
  for (size_t i = 0; i < packets.size(); ++i) {
    ogg_packet packet = packet_of(packets[i], i + kHeaders);
    const long size = core.block_size(&vorbis.info, &packet);
    if (size <= 0)
      return corrupt_vorbis("packet " + std::to_string(i) + " of it is not an audio packet");
    if (before > 0) position += before / 4 + size / 4;
    before = size;
    out.push_back(position);
  }
  return out;
}

}  // namespace headrace
