// SPDX-License-Identifier: Apache-2.0
// Runs ffmpeg and ffprobe, if installed, as the reference for containers and frames.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

namespace headrace::video_test {

inline bool has_ffmpeg() {
  return std::system("ffmpeg -version >/dev/null 2>&1 && ffprobe -version >/dev/null 2>&1") == 0;
}

inline std::vector<std::string> lines_of(const std::string& command) {
  std::vector<std::string> out;
  FILE* const pipe = popen(command.c_str(), "r");
  char line[512];
  while (pipe && std::fgets(line, sizeof line, pipe)) out.emplace_back(line);
  if (pipe) pclose(pipe);
  return out;
}

inline std::vector<uint8_t> bytes_of(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

// The CRC-32 of each frame of a sequential decode.
inline std::vector<uint32_t> ffmpeg_hashes(const std::filesystem::path& file) {
  std::vector<uint32_t> out;
  for (const std::string& line :
       lines_of("ffmpeg -v quiet -nostdin -noautorotate -flags unaligned -i '" + file.string() +
                "' -map 0:v:0 -vsync passthrough -f framehash -hash crc32 -")) {
    const size_t hash = line.rfind(',');
    if (line[0] != '0' || hash == line.npos) continue;
    out.push_back(static_cast<uint32_t>(std::strtoul(line.c_str() + hash + 1, nullptr, 16)));
  }
  return out;
}

struct ProbedPacket {
  int64_t pts = 0, size = 0, offset = 0;  // Matroska: offset of the containing block
  bool key = false, discarded = false;
};
inline std::vector<ProbedPacket> probed_packets(const std::filesystem::path& file) {
  std::vector<ProbedPacket> out;
  for (const std::string& line :
       lines_of("ffprobe -v quiet -select_streams v:0 -show_entries packet=pts,size,pos,flags -of "
                "csv=p=0 '" +
                file.string() + "'")) {
    ProbedPacket packet;
    long long pts = 0, size = 0, offset = 0;
    char flags[3] = {};
    if (std::sscanf(line.c_str(), "%lld,%lld,%lld,%2s", &pts, &size, &offset, flags) != 4) continue;
    out.push_back({pts, size, offset, flags[0] == 'K', flags[1] == 'D'});
  }
  return out;
}

}  // namespace headrace::video_test
