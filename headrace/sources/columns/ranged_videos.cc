// SPDX-License-Identifier: Apache-2.0
#include "headrace/sources/columns/ranged_videos.h"

#include <unistd.h>

#include <algorithm>
#include <exception>
#include <functional>
#include <optional>
#include <utility>

#include "headrace/base/mutex.h"
#include "headrace/base/per_process.h"
#include "headrace/codecs/video/frame_plan.h"
#include "headrace/codecs/video/frame_ranges.h"
#include "headrace/codecs/video/frame_times.h"
#include "headrace/codecs/video/recent_tracks.h"
#include "headrace/codecs/video/video_file.h"
#include "headrace/storage/async_storage.h"
#include "headrace/storage/burst_threads.h"
#include "headrace/storage/held_file.h"
#include "headrace/storage/read_deadline.h"
#include "headrace/storage/scanned_file.h"
#include "headrace/storage/staged_reads.h"

namespace headrace {
namespace {

constexpr size_t kTablesAtOnce = 16;
constexpr uint32_t kMaxFirst = 1 << 20;  // bytes of packet 0 to be kept

struct TableThreads : BurstThreads {
  TableThreads() : BurstThreads(kTablesAtOnce) {}
};

// Reads single boxes as they are requested; files that turn out to have many (fragments, Matroska)
// in large pieces, one after the other.
class TableFile final : public OpenFile {
 public:
  explicit TableFile(File file) : file_(std::move(file)) {}
  uint64_t size() const override { return file_.size(); }
  Result<FileIdentity> identity() const override { return file_.identity(); }
  std::optional<FileIdentity> known() const override { return file_.piece(0, 0).known; }
  Result<void> read(uint64_t offset, std::span<uint8_t> out) const override {
    if (++reads_ <= kFew) return file_.read(offset, out);
    if (!scanned_) {
      const std::optional<FileIdentity> same = known();
      Result<std::unique_ptr<OpenFile>> again =
          storage_of(file_.path()).open(file_.path(), same ? &*same : nullptr);
      if (!again) return std::move(again.error());
      scanned_ = scanned_file(file_.path(), std::move(*again));
    }
    return scanned_->read(offset, out);
  }
  Result<void> read(uint64_t offset, std::span<const std::span<uint8_t>> parts) const override {
    for (const std::span<uint8_t>& part : parts) {
      if (Result<void> done = read(offset, part); !done) return done;
      offset += part.size();
    }
    return {};
  }

 private:
  static constexpr int kFew = 16;
  const File file_;
  // State of the reading thread.
  mutable int reads_ = 0;
  mutable std::unique_ptr<OpenFile> scanned_;
};

// Whether reading the table again would fail as well.
bool lasts(const Error& error) {
  return is_bad_record(error) && error.code->kind != ErrorKind::kResource;
}

// Reads what plans inspect of packet 0, and all of it if decoders are fed the packet.
Result<std::shared_ptr<const Buffer>> read_first_packet(const VideoTrack& track,
                                                        const ByteRanges& file) {
  const MediaPacket& packet = track.packets[0];
  auto first = std::make_shared<Buffer>();
  for (uint32_t most : {kFirstBytes, kMaxFirst}) {
    first->resize(std::min(packet.size, most));
    Result<void> read =
        file.read(static_cast<uint64_t>(packet.offset), {first->data(), first->size()});
    if (!read) return std::move(read.error());
    if (first->size() == packet.size || !needs_first_packet(track, first->bytes())) break;
  }
  return std::shared_ptr<const Buffer>(std::move(first));
}

using SharedTrack = std::shared_ptr<const VideoTrack>;

struct Table {
  SharedTrack track;
  FileIdentity identity;
};

Result<Table> read_table(const std::string& path, const FileIdentity* known) {
  Result<File> opened = File::open(path, known);
  if (!opened) return std::move(opened.error());
  const Result<FileIdentity> identity = opened->identity();
  if (!identity) return identity.error();
  const ByteRanges file(std::make_shared<const File>(
      File::around(path, std::make_unique<TableFile>(std::move(*opened)))));
  Result<VideoTrack> track = read_video(file);
  if (!track) return std::move(track.error());
  if (inspects_first_packet(track->codec) && !track->packets.empty()) {
    Result<std::shared_ptr<const Buffer>> first = read_first_packet(*track, file);
    if (!first) return std::move(first.error());
    track->first_packet = std::move(*first);
  }
  return Table{std::make_shared<const VideoTrack>(std::move(*track)), *identity};
}

std::vector<PacketRange> ranges_of(const VideoTrack& track, std::span<const double> seconds) {
  if (track.frames.empty()) return {};
  std::vector<uint32_t> frames;
  for (const double each : seconds) {
    frames.push_back(static_cast<uint32_t>(nearest_frame(track, each)));
  }
  return ranges_of_frames(track, frames);
}

}  // namespace

struct RangedVideos::State {
  explicit State(size_t count) : files(count) {}

  // A table that is being read. shared: by those who wait for it, since it may not be kept.
  struct Reading {
    const pid_t process = getpid();  // its thread does not exist in a forked one
    std::optional<Result<SharedTrack>> track;
  };
  struct VideoFile {
    std::optional<FileIdentity> identity;
    std::optional<Error> error;
    std::shared_ptr<Reading> reading;
    bool is_being_read() const { return reading && reading->process == getpid(); }
  };

  // From memory; null if it is not there.
  SharedTrack find(size_t number, const std::string& path) REQUIRES_LOCK(mutex) {
    const VideoFile& file = files[number];
    return file.identity ? RecentTracks::of_process().find(path, *file.identity) : nullptr;
  }

  // Reads the table, and ends the file's `reading`.
  static std::function<void()> reader(const std::shared_ptr<State>& self, size_t number,
                                      const std::string& path,
                                      const std::optional<FileIdentity>& known) {
    return [self, number, path, known] {
      Result<Table> table = Table();
      try {
        table = read_table(path, known ? &*known : nullptr);
      } catch (const Exception& failed) {
        table = failed.error();
      } catch (const std::exception&) {
        table = too_large_error(path, 0, "its table needs more than the remaining memory");
      }
      self->end(number, path, std::move(table));
    };
  }
  void end(size_t number, const std::string& path, Result<Table> table) EXCLUDES_LOCK(mutex) {
    if (table) RecentTracks::of_process().add(path, table->identity, table->track);
    MutexLock lock(mutex);
    VideoFile& file = files[number];
    if (table) {
      file.identity = table->identity;
      file.reading->track = table->track;
    } else {
      file.error = table.error();
      file.reading->track = std::move(table.error());
    }
    file.reading.reset();
    --under_way;
    changed.notify_all();
  }

  Mutex mutex;
  Condition changed;
  std::vector<VideoFile> files GUARDED_BY(mutex);
  size_t under_way GUARDED_BY(mutex) = 0;
};

RangedVideos::RangedVideos(size_t files) : state_(std::make_shared<State>(files)) {}

bool RangedVideos::prepare(size_t number, const std::string& path, bool wait) const {
  if (wait) return (void)table(number, path, /*takes_error=*/false), true;
  std::optional<FileIdentity> known;
  {
    MutexLock lock(state_->mutex);
    State::VideoFile& file = state_->files[number];
    if (file.error || state_->find(number, path)) return true;
    if (file.is_being_read() || state_->under_way >= kTablesAtOnce) return false;
    file.reading = std::make_shared<State::Reading>();
    ++state_->under_way;
    known = file.identity;
  }
  TableThreads& threads = of_this_process<TableThreads>();
  if (!threads.try_call(State::reader(state_, number, path, known))) {
    // Those that need it try again, and may read it themselves.
    state_->end(number, path, too_large_error(path, 0, "no thread can be started to read it"));
    MutexLock lock(state_->mutex);
    state_->files[number].error.reset();
  }
  return false;
}

// Waits for it. `takes_error`: an error that may be temporary is returned once.
Result<std::shared_ptr<const VideoTrack>> RangedVideos::table(size_t number,
                                                              const std::string& path,
                                                              bool takes_error) const {
  std::shared_ptr<State::Reading> reading;
  std::optional<FileIdentity> known;
  bool begins = false;
  {
    MutexLock lock(state_->mutex);
    State::VideoFile& file = state_->files[number];
    if (SharedTrack track = state_->find(number, path)) return track;
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
  if (begins) of_this_process<TableThreads>().call(State::reader(state_, number, path, known));
  MutexLock lock(state_->mutex);
  while (!reading->track) {
    if (ReadWait::is_over()) return ReadWait::error(path, -1);
    ReadWait::wait(state_->changed, state_->mutex);
  }
  if (!*reading->track) return reading->track->error();
  return **reading->track;
}

void RangedVideos::add_pieces(size_t number, const std::string& path,
                              std::span<const double> seconds, std::vector<FilePiece>& out) const {
  SharedTrack track;
  std::optional<FileIdentity> identity;
  {
    MutexLock lock(state_->mutex);
    track = state_->find(number, path);
    identity = state_->files[number].identity;
  }
  if (!track) return;
  for (const PacketRange& range : ranges_of(*track, seconds)) {
    out.push_back({.path = path,
                   .offset = range.offset,
                   .bytes = range.bytes,
                   .known = identity,
                   .shared = true});
  }
}

Result<RangedVideo> RangedVideos::read(size_t number, const std::string& path,
                                       std::span<const double> seconds, uint64_t max_bytes) const {
  const Result<SharedTrack> track = table(number, path, /*takes_error=*/true);
  if (!track) return track.error();
  std::optional<FileIdentity> identity;
  {
    MutexLock lock(state_->mutex);
    identity = state_->files[number].identity;
  }
  std::vector<HeldRange> held;
  std::vector<AsyncRead> missing;
  uint64_t bytes = 0;
  for (const PacketRange& range : ranges_of(**track, seconds)) {
    bytes += range.bytes;
    if (bytes > max_bytes) return above_cap_error(path, bytes, max_bytes);
    if (auto memory = StagedReads::share(path, range.offset, range.bytes, &*identity)) {
      held.push_back({range.offset, std::move(memory)});
    } else {
      missing.push_back({.piece = {path, range.offset, range.bytes, identity}});
    }
  }
  for (AsyncRead& read : read_and_wait(storage_of(path), std::move(missing))) {
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
  return RangedVideo{std::make_shared<const File>(held_file(std::move(*file), std::move(held))),
                     *track};
}

}  // namespace headrace
