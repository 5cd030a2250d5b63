// SPDX-License-Identifier: Apache-2.0
// Single videos: their containers' metadata, and frames.
#include <algorithm>
#include <cstring>
#include <vector>

#include "bindings/bindings.h"
#include "headrace/codecs/video/frame_plan.h"
#include "headrace/codecs/video/video_decoder.h"
#include "headrace/codecs/video/video_file.h"
#include "headrace/ops/video/clip_frames.h"

namespace headrace::python {
namespace {

Buffer buffer_of(const nb::bytes& encoded) {
  Buffer bytes(encoded.size());  // decoders read past the end, for which a Buffer has padding
  std::memcpy(bytes.data(), encoded.c_str(), encoded.size());
  return bytes;
}

VideoTrack track_of(const Buffer& bytes) {
  Result<VideoTrack> track = read_video(bytes.bytes());
  if (!track) throw Exception(track.error());
  return std::move(*track);
}

const char* name_of(VideoCodec codec) {
  switch (codec) {
    case VideoCodec::kH264:
      return "h264";
    case VideoCodec::kHEVC:
      return "hevc";
    case VideoCodec::kVP8:
      return "vp8";
    case VideoCodec::kVP9:
      return "vp9";
    case VideoCodec::kAV1:
      return "av1";
    case VideoCodec::kMPEG4:
      return "mpeg4";
    case VideoCodec::kMJPEG:
      return "mjpeg";
    case VideoCodec::kGIF:
      return "gif";
    case VideoCodec::kWebP:
      return "webp";
  }
  return "";
}

nb::dict video_header(const nb::bytes& encoded) {
  const Buffer bytes = buffer_of(encoded);
  const VideoTrack track = track_of(bytes);
  nb::list times;
  for (const uint32_t packet : track.frames) {
    times.append(track.seconds(track.packets[packet].pts));
  }
  nb::dict out;
  const bool across = track.quarter_turns % 2 != 0;
  out["codec"] = name_of(track.codec);
  out["frames"] = track.frames.size();
  out["width"] = across ? track.height : track.width;
  out["height"] = across ? track.width : track.height;
  out["rotation"] = 90 * track.quarter_turns;
  out["end_seconds"] = track.seconds(track.duration);
  out["times"] = times;
  return out;
}

// Frames by number -> (T, C, H, W) uint8.
Array decode_video(const nb::bytes& encoded, const std::vector<uint32_t>& frames, bool hdr,
                   bool isolate) {
  const Buffer bytes = buffer_of(encoded);
  ReleasedGil no_gil;
  FieldValue video;
  video.video.file = bytes.bytes();
  video.video.track = std::make_shared<const VideoTrack>(track_of(bytes));
  video.video.decoding.isolate = isolate;
  for (const uint32_t frame : frames) {
    if (frame >= video.video.track->frames.size()) {
      throw nb::index_error(
          ("the video has " + std::to_string(video.video.track->frames.size()) + " frames")
              .c_str());
    }
  }
  Record record;
  record.fields.resize(frames.size());
  std::vector<int> pictures(frames.size());
  for (size_t i = 0; i < pictures.size(); ++i) pictures[i] = static_cast<int>(i);
  Renderer renderer;
  Result<void> taken = take_frames(video, frames, hdr, pictures, record, renderer);
  if (!taken) throw Exception(taken.error());
  const Size size = frames.empty() ? Size{} : record.fields[0].picture.size();
  Array out = make_array(DType::kUInt8, {std::ssize(frames), 3, size.height, size.width});
  auto* to = static_cast<uint8_t*>(out.view.data);
  std::vector<RenderTask> tasks(frames.size());
  for (size_t i = 0; i < tasks.size(); ++i) {
    tasks[i].recipe = &record.fields[i].picture;
    tasks[i].target.data = to;
    to += size_t{3} * size_t(size.height) * size_t(size.width);
  }
  renderer.render(tasks);
  for (const RenderTask& task : tasks) {
    if (!task.result) throw Exception(task.result.error());
  }
  return out;
}

// Codecs of headrace-av by name, and why each is unavailable; "" if it is available. Starts the
// program.
nb::tuple media_codecs() {
  nb::list names;
  for (int i = 0; i <= static_cast<int>(VideoCodec::kMJPEG); ++i) {
    names.append(name_of(static_cast<VideoCodec>(i)));
  }
  std::string problem;
  {
    ReleasedGil no_gil;
    const auto decoder = make_video_decoder({});
    if (!decoder) problem = decoder.error().what;
    if (!decoder && !decoder.error().hint.empty()) problem += ": " + decoder.error().hint;
  }
  return nb::make_tuple(names, problem);
}

// How many packets a decoder is fed for these frames.
int64_t video_packets_for(const nb::bytes& encoded, std::vector<uint32_t> frames) {
  const Buffer bytes = buffer_of(encoded);
  ReleasedGil no_gil;
  const VideoTrack track = track_of(bytes);
  std::ranges::sort(frames);
  frames.erase(std::ranges::unique(frames).begin(), frames.end());
  if (!frames.empty() && frames.back() >= track.frames.size()) return 0;
  return std::ssize(plan_frames(track, bytes.bytes(), frames).feeds);
}

}  // namespace

void bind_video(nb::module_& module) {
  module.def(
      "media_codecs", &media_codecs, nb::sig("def media_codecs() -> tuple[list[str], str]"),
      "The video codecs that headrace-av decodes, and why it cannot run here; empty if it can.");
  module.def(
      "video_header", &video_header, nb::arg("encoded"),
      nb::sig("def video_header(encoded: bytes) -> dict[str, Any]"),
      "Metadata from the container of an encoded video: codec, frames, width, height (both after "
      "rotation), rotation in degrees clockwise, end_seconds, and the display time of each frame "
      "in seconds.");
  module.def("decode_video", &decode_video, nb::arg("encoded"), nb::arg("frames"),
             nb::arg("hdr") = false, nb::arg("isolate") = true,
             nb::sig("def decode_video(encoded: bytes, frames: Sequence[int], hdr: bool = False, "
                     "isolate: bool = True) -> Array"),
             "Frames of an encoded video, by number, as a (T, C, H, W) uint8 array.");
  module.def(
      "video_packets_for", &video_packets_for, nb::arg("encoded"), nb::arg("frames"),
      nb::sig("def video_packets_for(encoded: bytes, frames: Sequence[int]) -> int"),
      "How many packets must be decoded for these frames: their own, and those that they depend "
      "on.");
}

}  // namespace headrace::python
