// SPDX-License-Identifier: Apache-2.0
// Videos: files from which a step takes frames. Note [Clips are pictures] in
// pipeline/plan_clips.cc describes them from then on.
#include <memory>
#include <string>
#include <utility>

#include "headrace/base/registry.h"
#include "headrace/codecs/video/recent_tracks.h"
#include "headrace/codecs/video/video_file.h"
#include "headrace/codecs/video/video_index.h"
#include "headrace/fields/begin.h"
#include "headrace/fields/kind.h"
#include "headrace/fields/media.h"
#include "headrace/fields/numbers.h"
#include "headrace/fields/record.h"
#include "headrace/storage/file.h"

namespace headrace {
namespace {

const ErrorCode kNoFrames{
    "HR0374", ErrorKind::kData, "video without frames",
    "The file has a video track without a single visible packet. It may have been truncated while "
    "being written."};

const ErrorCode kLargeFrames{
    "HR0375", ErrorKind::kData, "video frames too large",
    "The container declares frames with more pixels than max_pixels= allows. Nothing was "
    "allocated. Raise max_pixels= if such videos are intended."};

bool take_video(Field& field) {
  if (!is_stored_bytes(field)) return false;
  field.encoded = true;
  field.dtype = DType::kUInt8;
  field.shape = {-1, 3, -1, -1};
  field.kind = FieldKind::kVideo;
  return true;
}

// From the cached index, or from the file; then the index is cached.
Result<VideoTrack> track_of(const RowIndexSlot& kept, const ByteRanges& file) {
  if (!kept.known.empty()) {
    Result<VideoTrack> track = track_from_video_index(kept.known, file.size());
    if (track) return track;
  }
  Result<VideoTrack> track = read_video(file);
  if (track && kept.store && has_video_index(*track)) {
    kept.store->learned(kept.image, video_index_of(*track));
  }
  return track;
}

using SharedTrack = std::shared_ptr<const VideoTrack>;

// For an open file, also from the tables that this process has already read.
Result<SharedTrack> shared_track_of(const FieldData& data, const ByteRanges& file) {
  const File* const open = data.file && data.bytes.empty() ? data.file.get() : nullptr;
  const Result<FileIdentity> identity = open ? open->identity() : FileIdentity{};
  const bool is_known = open && identity;
  const bool is_learning = data.row_index.store && data.row_index.known.empty();
  if (is_known && !is_learning) {
    if (SharedTrack track = RecentTracks::of_process().find(open->path(), *identity)) return track;
  }
  Result<VideoTrack> read = track_of(data.row_index, file);
  if (!read) return std::move(read.error());
  SharedTrack track = std::make_shared<const VideoTrack>(std::move(*read));
  if (is_known) RecentTracks::of_process().add(open->path(), *identity, track);
  return track;
}

Result<void> begin_video(const BeginContext& from, FieldValue& value) {
  value.video = {};
  value.bytes = from.data.bytes;
  const ByteRanges file = byte_ranges_of(from.data);
  const Result<SharedTrack> read =
      from.data.track ? from.data.track : shared_track_of(from.data, file);
  if (!read) {
    Error error = read.error();
    // A record may have several videos, but its key refers to only one of them.
    if (from.data.file) {
      error.note += (error.note.empty() ? "" : "; ") + std::string("\"") + from.state.name +
                    "\" is " + from.data.file->path();
    }
    return error;
  }
  const SharedTrack& track = *read;
  if (track->frames.empty()) {
    return Error{.code = &kNoFrames, .what = "\"" + from.state.name + "\" has no frame"};
  }
  const int64_t pixels = int64_t{track->width} * track->height;
  if (pixels > from.options.limits.max_pixels) {
    return Error{.code = &kLargeFrames,
                 .what = "\"" + from.state.name + "\" is " + std::to_string(track->width) + " x " +
                         std::to_string(track->height)};
  }
  value.video = {track, file, from.options.video};
  value.video.decoding.max_pixels = from.options.limits.max_pixels;
  return {};
}

const KindRecord kVideo{
    .name = "video",
    .doc =
        "A video file. A transform (such as RandomVideoClips) takes clips from it, (T, C, H, W), "
        "and later geometric, color and dtype transforms treat the frames as images, all frames of "
        "a record alike.",
    .kind = FieldKind::kVideo,
    .spatial = true,
    .media = "video",
    .take = take_video,
    .by_range = true,
    .begin = begin_video};
const Register<KindRecord> registered_video(kVideo);

const MediaRecord kVideos{.name = "video",
                          .kind = FieldKind::kVideo,
                          .noun = "video",
                          .order = 2,
                          .without_library = "MP4",
                          .usual = {"mp4"},
                          .formats = registered_formats<VideoContainer>,
                          .format_of =
                              [](std::span<const uint8_t> bytes) {
                                const VideoContainer* const container = video_container_of(bytes);
                                return container ? container->name : std::string_view();
                              },
                          .begins = begins_like_video,
                          .check = [](const ByteRanges& file, Renderer&) -> Result<void> {
                            const Result<VideoTrack> track = read_video(file);
                            return track ? Result<void>() : track.error();
                          },
                          .index = [](const ByteRanges& file) -> Result<std::vector<uint8_t>> {
                            const Result<VideoTrack> track = read_video(file);
                            if (!track) return track.error();
                            return has_video_index(*track) ? video_index_of(*track)
                                                           : std::vector<uint8_t>();
                          }};
const Register<MediaRecord> registered_videos(kVideos);

}  // namespace
}  // namespace headrace
