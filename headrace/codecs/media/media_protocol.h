// SPDX-License-Identifier: Apache-2.0
// The protocol between the engine and headrace-av, the program that decodes videos for it.
//
// Requests and replies are messages of a socket, one plain struct each. Bytes do not travel in
// them, but are in two anonymous files that both have mapped: what is to be decoded in one, which
// the engine alone writes, and what was decoded in the other, which the engine only reads. The
// engine asks and the program answers: kOpen with kOpened, kDecode with any number of kFrame and
// then kDecoded, or with kFailed. After a kFrame the program waits for kContinue or kStop, and
// until then leaves the frame as it is; kStop is answered with kDecoded. A kDecode whose packets do
// not begin with a restart goes on where the one before ended. The first message of all is the
// program's kReady.
//
// Sounds (AAC) are simpler: kOpenSound is answered with kOpened, kDecodeSound with kSamples, of all
// its packets.
//
// The program believes the engine. The engine believes nothing that the program says.
#pragma once

#include <array>
#include <cstdint>

namespace headrace::media {

// Version of both sides; they are built together, so another number is another build's program.
inline constexpr uint32_t kVersion = 3;

// The program's descriptors. Its arguments are the engine's process id and `confined` or `trusted`.
inline constexpr int kSocket = 3, kPacketMemory = 4, kFrameMemory = 5;
inline constexpr const char* kConfined = "confined";
inline constexpr const char* kTrusted = "trusted";

enum class RequestKind : uint32_t {
  kOpen = 1,
  kDecode,
  kContinue,
  kStop,
  kOpenSound,
  kDecodeSound
};

struct Request {
  RequestKind kind{};
  // How large the two files are; they only grow.
  uint64_t packet_bytes = 0, frame_bytes = 0;
  // kOpen. The decoder's parameters lie at the beginning of the packets' memory.
  uint32_t codec = 0;  // VideoCodec
  uint32_t parameter_bytes = 0;
  int32_t x264_build = -1;  // build of x264 that made an H.264 stream, if known
  uint32_t reserved = 0;
  int64_t max_pixels = 0;  // of a frame with all that codecs put around it
  // kDecode. That many Packets lie at the beginning of the packets' memory.
  uint32_t packets = 0;
  uint32_t last = 0;    // give afterwards also what is held back
  int32_t reorder = 0;  // frames that must be held back, for those that come later and are shown
                        // before them
};

enum PacketFlags : uint32_t {
  kRestart = 1,  // give what is held back, then forget all packets before
  kKept = 2,     // its frame is wanted
  kLeading =
      4,       // it is shown before the packet of the last restart, and may need what is not there
  kAhead = 8,  // behind all whose frames are wanted: it makes the decoder give what it holds back,
               // and what is wrong with it is not this request's affair
  kOpenStart = 16,  // of H.264, beside kRestart: it and those that follow may name pictures that
                    // are not there, though none is made from them
};

struct Packet {
  uint64_t offset = 0;  // in the packets' memory
  uint32_t size = 0;
  uint32_t number = 0;  // in the track
  uint32_t flags = 0;
  uint32_t reserved = 0;
};

enum class ReplyKind : uint32_t { kReady = 1, kOpened, kFrame, kDecoded, kFailed, kSamples };

enum class Failure : uint32_t {
  kNone,
  kNotConfined,  // the system does not let it lock itself in
  kNoDecoder,    // libavcodec is there, and cannot decode this
  kParameters,   // the decoder's parameters are invalid
  kDamage,       // a packet, or what came out of it
  kFormat,       // planes that are not among those of a Frame
  kMemory,       // more than it may have
  kRequest,      // one that makes no sense
};

struct Frame {
  uint32_t number = 0;  // of its packet
  int32_t width = 0, height = 0;
  int32_t planes = 0;
  int32_t chroma_x = 0, chroma_y = 0;
  int32_t bits = 0;
  uint32_t interlaced = 0;                       // 1: its even and its odd rows are two fields
  uint32_t matrix = 0, range = 0, transfer = 0;  // ColorMatrix, ColorRange, ColorTransfer
  std::array<uint64_t, 3> offset{};              // in the frames' memory
  std::array<int64_t, 3> stride{};
};

// For as many packets as were sent, each with so many frames: float32 at the beginning of the
// frames' memory, packet after packet, in each channel after channel.
struct Samples {
  uint32_t packets = 0, frames = 0, channels = 0, rate = 0;
};

struct Reply {
  ReplyKind kind{};
  Failure failure{};
  uint32_t version = 0;  // kReady
  // kFailed: of the packet, kNoPacket where it is none's fault. kDecoded: how many packets it was
  // fed, behind which it can go on; kNoPacket where it cannot, as it was told that none follow.
  uint32_t number = 0;
  uint64_t address_space = 0;   // kReady: bytes that it has mapped
  Frame frame{};                // kFrame
  Samples samples{};            // kSamples
  std::array<char, 32> name{};  // kFailed: of the format of pixels, or the library's own words
};

inline constexpr uint32_t kNoPacket = 0xFFFFFFFF;

// Bytes after a row's end that may be read.
inline constexpr int kReadBeyond = 64;

}  // namespace headrace::media
