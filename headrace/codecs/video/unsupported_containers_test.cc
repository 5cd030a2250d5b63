// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <string_view>
#include <vector>

#include "headrace/codecs/video/video_file.h"

namespace headrace {
namespace {

Error error_of(std::string_view content) {
  std::vector<uint8_t> bytes(content.begin(), content.end());
  bytes.resize(200);
  const Result<VideoTrack> track = read_video(bytes);
  EXPECT_FALSE(track);
  return track ? Error{} : track.error();
}

TEST(UnsupportedContainer, IsRejectedByNameWithAHint) {
  const Error error = error_of("FLV\1\5");
  EXPECT_EQ(error.code->id, "HR0363");
  EXPECT_NE(error.what.find("Flash"), std::string_view::npos);
  EXPECT_NE(error.hint.find("-c copy"), std::string_view::npos);
  EXPECT_EQ(error_of({"\0\0\1\xBA", 4}).code->id, "HR0363");
}

// A file that refers to other files is never taken for a video.
TEST(ListOfFiles, IsNotAVideo) {
  for (const std::string_view text :
       {"#EXTM3U\n#EXT-X-VERSION:3\nhttp://a/b.ts\n", "ffconcat version 1.0\nfile '/etc/passwd'\n",
        "<?xml version=\"1.0\"?><MPD>", "RIFF\1\1\1\1WAVEfmt ", ""}) {
    EXPECT_EQ(error_of(text).code->id, "HR0360") << text;
  }
}

}  // namespace
}  // namespace headrace
