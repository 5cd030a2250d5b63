// SPDX-License-Identifier: Apache-2.0
#include "headrace/codecs/video/av1.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <random>
#include <string>
#include <vector>

#include "headrace/base/bytes_test_join.h"
#include "headrace/codecs/video/ffmpeg_test_tool.h"
#include "headrace/codecs/video/video_file.h"
#include "headrace/codecs/video/video_test_streams.h"

namespace headrace {
namespace {

using bytes_test::Bytes;
using bytes_test::operator+;

// The sequence header of a stream made by SVT-AV1: 64 x 48, order hints of 7 bits, with screen
// content and integer motion specified per frame. Then frame headers as bits.
Bytes unit(int type, const std::string& bits, int flags = 2) {
  Bytes out{static_cast<uint8_t>(type << 3 | flags)};
  if (flags & 4) out.push_back(0x20);
  const size_t bytes = (bits.size() + 7) / 8;
  if (flags & 2) out.push_back(static_cast<uint8_t>(bytes));
  const size_t at = out.size();
  out.resize(at + bytes);
  for (size_t i = 0; i < bits.size(); ++i) {
    if (bits[i] == '1') out[at + i / 8] |= static_cast<uint8_t>(0x80 >> i % 8);
  }
  return out;
}

// An inter frame: not existing, type 01, shown, not resilient, CDFs updated, no screen content,
// default size, order hint, primary reference, refreshed slots.
std::string frame_bits(const std::string& places, const std::string& type = "01",
                       const std::string& shown = "1") {
  return "0" + type + shown + (shown == "1" ? "" : "1") + "0" + "0" + "0" + "0" + "0000101" +
         "000" + places + "1111111111111111";
}
const Av1Sequence kSequence{
    .chooses_screen_content = true, .chooses_integer_motion = true, .order_hint_bits = 7};

TEST(Av1Packet, IsNotNeededIfItsFramesAreNotReferences) {
  EXPECT_TRUE(is_droppable(kSequence, unit(6, frame_bits("00000000"))));
  EXPECT_TRUE(is_droppable(kSequence, unit(2, "") + unit(6, frame_bits("00000000"))));
  EXPECT_TRUE(is_droppable(kSequence, unit(3, frame_bits("00000000")) + unit(4, "1")));
  for (size_t place = 0; place < 8; ++place) {
    std::string places(8, '0');
    places[place] = '1';
    EXPECT_FALSE(is_droppable(kSequence, unit(6, frame_bits(places)))) << place;
    EXPECT_FALSE(is_droppable(
        kSequence, unit(6, frame_bits(places, "01", "0")) + unit(6, frame_bits("00000000"))));
  }
}

TEST(Av1Packet, IsNeededIfReferencesAreUnknown) {
  EXPECT_FALSE(is_droppable(kSequence, unit(6, frame_bits("00000000", "00"))));  // a key frame
  EXPECT_FALSE(is_droppable(kSequence, unit(6, frame_bits("00000000", "11"))));  // a switch frame
  EXPECT_FALSE(is_droppable(kSequence, unit(3, "1000")));                        // one shown again
  // in a spatial or temporal layer
  EXPECT_FALSE(is_droppable(kSequence, unit(6, frame_bits("00000000"), 6)));
  EXPECT_FALSE(is_droppable(kSequence, unit(6, "0011")));  // truncated
  EXPECT_FALSE(is_droppable(kSequence, {}));
  EXPECT_FALSE(is_droppable(kSequence, unit(2, "")));
  EXPECT_FALSE(is_droppable(kSequence, unit(1, "0") + unit(6, frame_bits("00000000"))));
  EXPECT_FALSE(is_droppable(kSequence, unit(6, frame_bits("00000000")) + Bytes{0x32, 0xFF}));
}

TEST(Av1Sequence, IsReadFromParametersAndPackets) {
  const video_test::Stream stream = video_test::read_stream("av1");
  const std::optional<Av1Sequence> said = av1_sequence_of(stream.track.parameters);
  const Bytes first(stream.file.begin(), stream.file.begin() + stream.track.packets[0].size);
  ASSERT_TRUE(said);
  EXPECT_EQ(said->order_hint_bits, 7);
  EXPECT_TRUE(has_av1_sequence(first));
  const std::optional<Av1Sequence> found = av1_sequence_in(first);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->order_hint_bits, said->order_hint_bits);
  EXPECT_FALSE(has_av1_sequence(unit(6, frame_bits("00000000"))));
  EXPECT_FALSE(av1_sequence_of({}));
}

TEST(Av1Packet, OfAnyBytesIsParsedSafely) {
  const video_test::Stream stream = video_test::read_stream("av1");
  std::mt19937 random(1);
  for (int round = 0; round < 20000; ++round) {
    const MediaPacket& packet = stream.track.packets[random() % stream.track.packets.size()];
    Bytes bytes(stream.file.begin() + packet.offset,
                stream.file.begin() + packet.offset + packet.size);
    for (int i = 0; i < 3; ++i)
      bytes[random() % std::min<size_t>(bytes.size(), 24)] = uint8_t(random());
    bytes.resize(random() % (bytes.size() + 1));
    const std::optional<Av1Sequence> sequence = av1_sequence_in(bytes);
    (void)is_droppable(sequence.value_or(kSequence), bytes);
    (void)av1_sequence_of(bytes);
  }
}

// FFmpeg's header parser on each packet: whether none of its frames is stored in a slot.
std::vector<bool> traced(const std::filesystem::path& file) {
  std::vector<bool> out;
  bool any = false, all = true;
  const auto end = [&](bool begun) {
    if (begun) out.push_back(any && all);
    any = false;
    all = true;
  };
  bool begun = false;
  for (const std::string& line :
       video_test::lines_of("ffmpeg -nostdin -loglevel trace -i '" + file.string() +
                            "' -c copy -bsf:v trace_headers -f null - 2>&1 | grep trace_headers")) {
    const auto says = [&](const char* word) { return line.find(word) != line.npos; };
    if (says("Packet:")) {
      end(begun);
      begun = true;
    } else if (says("Sequence Header")) {
      all = false;
    } else if (says(" refresh_frame_flags ")) {
      any = true;
      all = all && says("= 0\n");
    } else if (says(" show_existing_frame ")) {
      all = all && says("= 0\n");
    }
  }
  end(begun);
  return out;
}

TEST(Av1Packet, IsNeededAccordingToFfmpegsParser) {
  if (!video_test::has_ffmpeg()) GTEST_SKIP() << "no ffmpeg: apt-get install ffmpeg";
  const auto folder = std::filesystem::temp_directory_path() / ("av1_" + std::to_string(getpid()));
  std::filesystem::create_directories(folder);
  size_t packets = 0, dropped = 0;
  for (const char* const how :
       {"-c:v libsvtav1 -preset 10 -g 24", "-c:v libsvtav1 -preset 12 -g 60 -svtav1-params tune=0",
        "-c:v libaom-av1 -cpu-used 8 -g 24 -b:v 100k",
        "-c:v libaom-av1 -cpu-used 8 -usage realtime -g 24 -b:v 100k -error-resilience 1"}) {
    const auto file = folder / "made.mp4";
    const std::string command =
        "ffmpeg -v quiet -nostdin -y -f lavfi -i testsrc2=size=96x64:rate=25:duration=2 -pix_fmt "
        "yuv420p " +
        std::string(how) + " '" + file.string() + "'";
    if (std::system(command.c_str()) != 0) continue;
    SCOPED_TRACE(how);
    const Bytes bytes = video_test::bytes_of(file);
    const Result<VideoTrack> track = read_video(bytes);
    ASSERT_TRUE(track) << track.error().message();
    const std::vector<bool> expected = traced(file);
    ASSERT_EQ(expected.size(), track->packets.size());
    const std::optional<Av1Sequence> sequence = av1_sequence_of(track->parameters);
    ASSERT_TRUE(sequence);
    for (size_t i = 0; i < expected.size(); ++i) {
      const MediaPacket& packet = track->packets[i];
      const auto all = std::span(bytes).subspan(size_t(packet.offset), packet.size);
      EXPECT_EQ(is_droppable(*sequence, all), expected[i]) << i;
      dropped += expected[i];
    }
    packets += expected.size();
  }
  std::filesystem::remove_all(folder);
  if (packets == 0) GTEST_SKIP() << "ffmpeg has no encoder of AV1";
  EXPECT_GT(dropped, packets / 10);
}

}  // namespace
}  // namespace headrace
