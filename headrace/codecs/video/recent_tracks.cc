// SPDX-License-Identifier: Apache-2.0
#include "headrace/codecs/video/recent_tracks.h"

#include <iterator>
#include <utility>

namespace headrace {

std::shared_ptr<const VideoTrack> RecentTracks::find(const std::string& path,
                                                     const FileIdentity& identity) {
  const MutexLock lock(mutex_);
  const auto found = by_path_.find(path);
  if (found == by_path_.end()) return nullptr;
  const auto kept = found->second;
  if (kept->identity != identity) {
    drop(kept);
    return nullptr;
  }
  kept_.splice(kept_.begin(), kept_, kept);
  return kept->track;
}

void RecentTracks::add(const std::string& path, const FileIdentity& identity,
                       std::shared_ptr<const VideoTrack> track) {
  const size_t bytes = sizeof(Kept) + path.size() + bytes_of(*track);
  if (bytes > budget_bytes_) return;
  const MutexLock lock(mutex_);
  // The track of another thread, which has read the file at the same time.
  if (const auto old = by_path_.find(path); old != by_path_.end()) drop(old->second);
  while (bytes_ + bytes > budget_bytes_) drop(std::prev(kept_.end()));
  bytes_ += bytes;
  kept_.push_front({path, identity, std::move(track), bytes});
  by_path_.emplace(kept_.front().path, kept_.begin());
}

size_t RecentTracks::bytes_of(const VideoTrack& track) {
  return sizeof(VideoTrack) + track.parameters.size() + track.packets.size() * sizeof(MediaPacket) +
         track.frames.size() * sizeof(uint32_t) +
         (track.first_packet ? track.first_packet->capacity() : 0);
}

void RecentTracks::drop(std::list<Kept>::iterator kept) {
  bytes_ -= kept->bytes;
  by_path_.erase(kept->path);
  kept_.erase(kept);
}

RecentTracks& RecentTracks::of_process() {
  // Never destroyed: threads that read tables may use it at exit.
  static RecentTracks* const tracks = new RecentTracks(size_t{64} << 20);
  return *tracks;
}

}  // namespace headrace
