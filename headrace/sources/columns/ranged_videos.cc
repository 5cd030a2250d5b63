// SPDX-License-Identifier: Apache-2.0
#include "headrace/sources/columns/ranged_videos.h"

#include <unistd.h>

#include <algorithm>
#include <exception>
#include <functional>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "headrace/base/mutex.h"
#include "headrace/base/per_process.h"
#include "headrace/codecs/video/frame_ranges.h"
#include "headrace/codecs/video/recent_tracks.h"
#include "headrace/sources/columns/mostly_held_file.h"
#include "headrace/sources/columns/video_table.h"
#include "headrace/storage/async_storage.h"
#include "headrace/storage/burst_threads.h"
#include "headrace/storage/held_file.h"
#include "headrace/storage/read_deadline.h"
#include "headrace/storage/staged_reads.h"

namespace headrace {
namespace {

constexpr size_t kTablesAtOnce = 16;
constexpr std::string_view kReplaced = "HR0208", kNoRanges = "HR0222";
constexpr size_t kMaxKnown = 1 << 16;  // of these files; facts about more are read again

struct TableThreads : BurstThreads {
  TableThreads() : BurstThreads(kTablesAtOnce) {}
};

// Whether reading the table again would fail as well.
bool lasts(const Error& error) {
  return is_bad_record(error) && error.code->kind != ErrorKind::kResource;
}

using SharedTrack = std::shared_ptr<const VideoTrack>;

struct ChosenRanges {
  std::vector<PacketRange> ranges = {};
  VideoReading reading = VideoReading::kByRange;
};

ChosenRanges choose_ranges(const VideoTrack& track, const ChooseFrames& choose,
                           const FileIdentity& identity, RangedVideos::Files files) {
  if (track.frames.empty()) return {};
  const std::optional<std::vector<uint32_t>> frames = choose(track);
  if (!frames) return {.reading = VideoReading::kNoTable};
  ChosenRanges out{.ranges = ranges_of_frames(track, *frames)};
  if (files == RangedVideos::Files::kShared) return out;
  uint64_t bytes = 0;
  for (const PacketRange& range : out.ranges) bytes += range.bytes;
  if (bytes > identity.size / 2) return {.reading = VideoReading::kCheaper};
  return out;
}

}  // namespace

struct RangedVideos::State {
  explicit State(Files which) : which_files(which) {}

  // A table that is being read. shared: by those who wait for it, since it may not be kept.
  struct Reading {
    const pid_t process = getpid();  // its thread does not exist in a forked one
    std::optional<Result<SharedTrack>> track;
  };
  struct VideoFile {
    std::optional<FileIdentity> identity;
    std::unique_ptr<Error> error;
    VideoReading whole = VideoReading::kUnknown;  // kCheaper, kNoTable: it is always read whole
    std::shared_ptr<Reading> reading;
    bool is_whole() const { return whole != VideoReading::kUnknown; }
    bool is_being_read() const { return reading && reading->process == getpid(); }
  };

  VideoFile& file(const std::string& path) REQUIRES_LOCK(mutex) {
    if (which_files == Files::kSeparate && files.size() >= kMaxKnown) {
      std::erase_if(files, [](const auto& each) { return !each.second.is_being_read(); });
    }
    return files[path];
  }
  // From memory; null if it is not there.
  static SharedTrack find(const std::string& path, const VideoFile& file) {
    return file.identity ? RecentTracks::of_process().find(path, *file.identity) : nullptr;
  }

  // Reads the table, and ends the file's `reading`.
  static std::function<void()> reader(const std::shared_ptr<State>& self, const std::string& path,
                                      const std::optional<FileIdentity>& known) {
    return [self, path, known] {
      const bool separate = self->which_files == Files::kSeparate;
      Result<VideoTable> table = VideoTable();
      try {
        table = read_video_table(path, known ? &*known : nullptr, separate);
        // The version was that of a listing: there is a newer one, of which nothing has been read.
        if (!known && !table && table.error().code->id == kReplaced) {
          table = read_video_table(path, nullptr, separate);
        }
      } catch (const Exception& failed) {
        table = failed.error();
      } catch (const std::exception&) {
        table = too_large_error(path, 0, "its table needs more than the remaining memory");
      }
      self->end(path, std::move(table));
    };
  }
  void end(const std::string& path, Result<VideoTable> table) EXCLUDES_LOCK(mutex) {
    if (table && table->track) {
      RecentTracks::of_process().add(path, table->identity, table->track);
    }
    MutexLock lock(mutex);
    VideoFile& file = files[path];
    if (!table && which_files == Files::kSeparate && table.error().code->id != kReplaced) {
      file.whole = VideoReading::kNoTable;  // reading it whole reports what is wrong with it
      file.reading->track = SharedTrack();
    } else if (table) {
      if (!table->track) file.whole = VideoReading::kCheaper;
      file.identity = table->identity;
      file.reading->track = table->track;
    } else {
      file.error = std::make_unique<Error>(table.error());
      file.reading->track = std::move(table.error());
    }
    file.reading.reset();
    --under_way;
    changed.notify_all();
  }

  const Files which_files;
  Mutex mutex;
  Condition changed;
  std::unordered_map<std::string, VideoFile> files GUARDED_BY(mutex);
  size_t under_way GUARDED_BY(mutex) = 0;
};

RangedVideos::RangedVideos(Files files) : state_(std::make_shared<State>(files)) {}

bool RangedVideos::prepare(const std::string& path, bool wait) const {
  if (wait) return (void)table(path, /*takes_error=*/false), true;
  std::optional<FileIdentity> known;
  {
    MutexLock lock(state_->mutex);
    State::VideoFile& file = state_->file(path);
    if (file.error || file.is_whole() || State::find(path, file)) return true;
    if (file.is_being_read() || state_->under_way >= kTablesAtOnce) return false;
    file.reading = std::make_shared<State::Reading>();
    ++state_->under_way;
    known = file.identity;
  }
  TableThreads& threads = of_this_process<TableThreads>();
  if (!threads.try_call(State::reader(state_, path, known))) {
    // Those that need it try again, and may read it themselves.
    state_->end(path, too_large_error(path, 0, "no thread can be started to read it"));
    MutexLock lock(state_->mutex);
    State::VideoFile& file = state_->file(path);
    file.error.reset();
    file.whole = VideoReading::kUnknown;
  }
  return false;
}

// Waits for it; null if the whole file is read instead. `takes_error`: an error that may be
// temporary is returned once.
Result<std::shared_ptr<const VideoTrack>> RangedVideos::table(const std::string& path,
                                                              bool takes_error) const {
  std::shared_ptr<State::Reading> reading;
  std::optional<FileIdentity> known;
  bool begins = false;
  {
    MutexLock lock(state_->mutex);
    State::VideoFile& file = state_->file(path);
    if (file.is_whole()) return SharedTrack();
    if (SharedTrack track = State::find(path, file)) return track;
    if (file.error) {
      Error error = *file.error;
      if (takes_error && !lasts(error)) file.error.reset();
      return error;
    }
    begins = !file.is_being_read();
    if (begins) {
      file.reading = std::make_shared<State::Reading>();
      ++state_->under_way;
    }
    reading = file.reading;
    known = file.identity;
  }
  if (begins) of_this_process<TableThreads>().call(State::reader(state_, path, known));
  MutexLock lock(state_->mutex);
  while (!reading->track) {
    if (ReadWait::is_over()) return ReadWait::error(path, -1);
    ReadWait::wait(state_->changed, state_->mutex);
  }
  if (!*reading->track) return reading->track->error();
  return **reading->track;
}

VideoReading RangedVideos::add_pieces(const std::string& path, const ChooseFrames& choose,
                                      std::vector<FilePiece>& out) const {
  SharedTrack track;
  std::optional<FileIdentity> identity;
  {
    MutexLock lock(state_->mutex);
    const State::VideoFile& file = state_->file(path);
    if (file.is_whole()) return file.whole;
    track = State::find(path, file);
    identity = file.identity;
  }
  if (!track) return VideoReading::kUnknown;
  const ChosenRanges chosen = choose_ranges(*track, choose, *identity, state_->which_files);
  for (const PacketRange& range : chosen.ranges) {
    out.push_back({.path = path,
                   .offset = range.offset,
                   .bytes = range.bytes,
                   .known = identity,
                   .shared = true});
  }
  return chosen.reading;
}

Result<RangedVideo> RangedVideos::read(const std::string& path, const ChooseFrames& choose,
                                       uint64_t max_bytes) const {
  const Result<SharedTrack> track = table(path, /*takes_error=*/true);
  if (!track) return track.error();
  std::optional<FileIdentity> identity;
  {
    MutexLock lock(state_->mutex);
    const State::VideoFile& file = state_->file(path);
    if (!*track)
      return RangedVideo{.reading = file.is_whole() ? file.whole : VideoReading::kNoTable};
    identity = file.identity;
  }
  if (!identity) return RangedVideo{.reading = VideoReading::kNoTable};  // forgotten meanwhile
  const ChosenRanges chosen = choose_ranges(**track, choose, *identity, state_->which_files);
  if (chosen.reading != VideoReading::kByRange) return RangedVideo{.reading = chosen.reading};
  std::vector<HeldRange> held;
  std::vector<AsyncRead> missing;
  uint64_t bytes = 0;
  for (const PacketRange& range : chosen.ranges) {
    bytes += range.bytes;
    if (bytes > max_bytes) return above_cap_error(path, bytes, max_bytes);
    if (auto memory = StagedReads::share(path, range.offset, range.bytes, &*identity)) {
      held.push_back({range.offset, std::move(memory)});
    } else {
      missing.push_back({.piece = {path, range.offset, range.bytes, identity}});
    }
  }
  // Separate files are read whole from now on.
  const auto tell = [state = state_, path] {
    MutexLock lock(state->mutex);
    state->file(path).whole = VideoReading::kNoTable;
  };
  const bool separate = state_->which_files == Files::kSeparate;
  for (AsyncRead& read : read_and_wait(storage_of(path), std::move(missing))) {
    if (!read.result && separate && read.result.error().code->id == kNoRanges) {
      tell();  // some servers support ranges only of objects in their cache
      return RangedVideo{.reading = VideoReading::kNoTable};
    }
    if (!read.result) return std::move(read.result.error());
    held.push_back({read.piece.offset, std::make_shared<const Buffer>(std::move(read.bytes))});
  }
  const bool has_first = std::ranges::any_of(held, [&](const HeldRange& range) {
    return range.offset == static_cast<uint64_t>((*track)->packets[0].offset);
  });
  if ((*track)->first_packet && !has_first) {
    held.push_back({static_cast<uint64_t>((*track)->packets[0].offset), (*track)->first_packet});
  }
  Result<File> file = File::open(path, &*identity);
  if (!file) return std::move(file.error());
  if (separate) {
    file = mostly_held_file(std::move(*file), *identity, max_bytes, tell);
  }
  return RangedVideo{
      .file = std::make_shared<const File>(held_file(std::move(*file), std::move(held))),
      .track = *track};
}

}  // namespace headrace
