// SPDX-License-Identifier: Apache-2.0
// The protocol between the engine and headrace-av, the program that decodes videos for it.
//
// Requests and replies are messages on a socket, one plain struct each. Data is not in the
// messages, but in two anonymous files that both processes map: one has the data to decode, and
// only the engine writes it; the other has the decoded data, and the engine only reads it. The
// engine sends requests and the program answers: kOpen with kOpened, kDecode with any number of
// kFrame and then kDecoded, or with kFailed. After a kFrame the program waits for kContinue or
// kStop, and does not modify the frame until then; kStop is answered with kDecoded. A kDecode whose
// packets do not begin with a restart continues where the previous one ended. The very first
// message is the program's kReady.
//
// Audio (AAC) is simpler: kOpenAudio is answered with kOpened, kDecodeAudio with kSamples for all
// its packets.
//
// The program trusts the engine. The engine trusts nothing that the program sends.
#pragma once

#include <array>
#include <cstdint>

namespace headrace::media {

// Version of both sides; they are built together, so a different number means a program of another
// build.
inline constexpr uint32_t kVersion = 3;

// The program's file descriptors. Its arguments are the engine's process id and `confined` or
// `trusted`.
inline constexpr int kSocket = 3, kPacketMemory = 4, kFrameMemory = 5;
inline constexpr const char* kSandboxed = "confined";
inline constexpr const char* kUnsandboxed = "trusted";

enum class RequestKind : uint32_t {
  kOpen = 1,
  kDecode,
  kContinue,
  kStop,
  kOpenAudio,
  kDecodeAudio
};

struct Request {
  RequestKind kind{};
  // Sizes of the two files; they only grow.
  uint64_t packet_bytes = 0, frame_bytes = 0;
  // kOpen. The decoder's parameters are at the start of the packets' memory.
  uint32_t codec = 0;  // VideoCodec
  uint32_t parameter_bytes = 0;
  int32_t x264_build = -1;  // x264 build that made an H.264 stream, if known
  uint32_t reserved = 0;
  int64_t max_pixels = 0;  // size of a frame including the codecs' padding
  // kDecode. That many Packets are at the start of the packets' memory.
  uint32_t packets = 0;
  uint32_t last = 0;    // afterwards also output frames that are held back
  int32_t reorder = 0;  // number of frames to hold back, because later packets are shown before
                        // them
};

enum PacketFlags : uint32_t {
  kRestart = 1,     // output held-back frames, then forget all earlier packets
  kKept = 2,        // its frame is requested
  kLeading = 4,     // shown before the packet of the last restart, so its references may be missing
  kAhead = 8,       // follows all packets whose frames are requested, to make the decoder output
                    // held-back frames; errors in this packet are ignored
  kOpenStart = 16,  // H.264, with kRestart: this packet and later ones may refer to missing
                    // pictures, although none depends on them
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
  kNoSandbox,   // the sandbox is unavailable
  kNoDecoder,   // libavcodec is available, but cannot decode this
  kParameters,  // the decoder's parameters are invalid
  kDamage,      // a packet, or a decoded frame
  kFormat,      // planes that a Frame does not support
  kMemory,      // exceeds its memory limit
  kRequest,     // invalid request
};

struct Frame {
  uint32_t number = 0;  // its packet's number
  int32_t width = 0, height = 0;
  int32_t planes = 0;
  int32_t chroma_x = 0, chroma_y = 0;
  int32_t bits = 0;
  uint32_t interlaced = 0;                       // 1: even and odd rows are two fields
  uint32_t matrix = 0, range = 0, transfer = 0;  // ColorMatrix, ColorRange, ColorTransfer
  std::array<uint64_t, 3> offset{};              // in the frames' memory
  std::array<int64_t, 3> stride{};
};

// For all packets sent, each with this many frames: float32 at the start of the frames' memory, by
// packet, then by channel.
struct Samples {
  uint32_t packets = 0, frames = 0, channels = 0, rate = 0;
};

struct Reply {
  ReplyKind kind{};
  Failure failure{};
  uint32_t version = 0;  // kReady
  // kFailed: the number of the packet that failed; kNoPacket if none is to blame. kDecoded: after
  // how many packets decoding can continue; kNoPacket if it cannot, because the end of the stream
  // was signaled.
  uint32_t number = 0;
  uint64_t address_space = 0;   // kReady: bytes that it has mapped
  Frame frame{};                // kFrame
  Samples samples{};            // kSamples
  std::array<char, 32> name{};  // kFailed: name of the pixel format, or the library's own message
};

inline constexpr uint32_t kNoPacket = 0xFFFFFFFF;

// Readable bytes after a row's end.
inline constexpr int kReadPadding = 64;

}  // namespace headrace::media
