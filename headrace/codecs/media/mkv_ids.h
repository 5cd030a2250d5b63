// SPDX-License-Identifier: Apache-2.0
// Ids of the Matroska elements (RFC 9559) that Headrace reads.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string_view>

namespace headrace {

inline constexpr std::string_view kMkvName = "Matroska";

namespace mkv {
enum : uint32_t {
  kHeader = 0x1A45DFA3,
  kDocType = 0x4282,
  kSegment = 0x18538067,
  kInfo = 0x1549A966,
  kTimestampScale = 0x2AD7B1,
  kTracks = 0x1654AE6B,
  kTrack = 0xAE,
  kTrackNumber = 0xD7,
  kTrackType = 0x83,
  kFlagEnabled = 0xB9,
  kCodecId = 0x86,
  kCodecPrivate = 0x63A2,
  kCodecDelay = 0x56AA,
  kDefaultDuration = 0x23E383,
  kTrackTimestampScale = 0x23314F,
  kContentEncodings = 0x6D80,
  kContentEncoding = 0x6240,
  kContentEncodingType = 0x5033,
  kAudio = 0xE1,
  kSamplingFrequency = 0xB5,
  kChannels = 0x9F,
  kBitDepth = 0x6264,
  kVideo = 0xE0,
  kPixelWidth = 0xB0,
  kPixelHeight = 0xBA,
  kAlphaMode = 0x53C0,
  kColor = 0x55B0,
  kMatrixCoefficients = 0x55B1,
  kRange = 0x55B9,
  kTransferCharacteristics = 0x55BA,
  kProjection = 0x7670,
  kPoseYaw = 0x7673,
  kPosePitch = 0x7674,
  kPoseRoll = 0x7675,
  kCluster = 0x1F43B675,
  kTimestamp = 0xE7,
  kSimpleBlock = 0xA3,
  kBlockGroup = 0xA0,
  kBlock = 0xA1,
  kBlockDuration = 0x9B,
  kReferenceBlock = 0xFB,
  kDiscardPadding = 0x75A2,
  kEncryptedBlock = 0xAF,
};
}  // namespace mkv

inline bool begins_like_mkv(std::span<const uint8_t> first_bytes) {
  constexpr uint8_t kMagic[] = {0x1A, 0x45, 0xDF, 0xA3};  // mkv::kHeader
  return first_bytes.size() >= 4 && std::equal(kMagic, kMagic + 4, first_bytes.begin());
}

}  // namespace headrace
