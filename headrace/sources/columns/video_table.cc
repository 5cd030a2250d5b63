// SPDX-License-Identifier: Apache-2.0
#include "headrace/sources/columns/video_table.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "headrace/codecs/video/frame_plan.h"
#include "headrace/codecs/video/video_file.h"
#include "headrace/storage/file.h"
#include "headrace/storage/scanned_file.h"

namespace headrace {
namespace {

constexpr uint32_t kMaxFirst = 1 << 20;  // bytes of packet 0 to be kept
// Separate files up to this size are read whole, since each request takes about as long as this
// many bytes. If a table takes more than this fraction of a larger file, it is not a table.
constexpr uint64_t kSmall = uint64_t{256} << 10, kTableShare = 4;

// Reads single boxes as they are requested; files that turn out to have many (fragments, Matroska)
// in large pieces, one after the other, or if they are separate files not at all.
class TableFile final : public OpenFile {
 public:
  TableFile(File file, bool separate) : file_(std::move(file)), separate_(separate) {}
  using OpenFile::read;
  uint64_t size() const override { return file_.size(); }
  Result<FileIdentity> identity() const override { return file_.identity(); }
  std::optional<FileIdentity> known() const override { return file_.piece(0, 0).known; }
  Result<void> read(uint64_t offset, std::span<uint8_t> out) const override {
    bytes_ += out.size();
    if (separate_ && (reads_ == kFew || bytes_ > kSmall + size() / kTableShare)) {
      return above_cap_error(path(), bytes_, kSmall);  // replaced by reading the whole file
    }
    if (++reads_ <= kFew) return file_.read(offset, out);
    if (!scanned_) {
      const std::optional<FileIdentity> same = known();
      Result<std::unique_ptr<OpenFile>> again =
          storage_of(path()).open(path(), same ? &*same : nullptr);
      if (!again) return std::move(again.error());
      scanned_ = scanned_file(path(), std::move(*again));
    }
    return scanned_->read(offset, out);
  }

 private:
  static constexpr int kFew = 16;
  const std::string& path() const { return file_.path(); }

  const File file_;
  const bool separate_;
  // State of the reading thread.
  mutable int reads_ = 0;
  mutable uint64_t bytes_ = 0;
  mutable std::unique_ptr<OpenFile> scanned_;
};

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

}  // namespace

Result<VideoTable> read_video_table(const std::string& path, const FileIdentity* known,
                                    bool separate) {
  Result<File> opened = File::open(path, known);
  if (!opened) return std::move(opened.error());
  const Result<FileIdentity> identity = opened->identity();
  if (!identity) return identity.error();
  if (separate && identity->size <= kSmall) return VideoTable{nullptr, *identity};
  const ByteRanges file(std::make_shared<const File>(
      File::around(path, std::make_unique<TableFile>(std::move(*opened), separate))));
  if (separate) {
    const Result<std::span<const uint8_t>> first = file.at(0, kVideoSignature);
    if (!first) return first.error();
    const VideoContainer* const container = video_container_of(*first);
    if (!container || !container->has_table) return above_cap_error(path, identity->size, kSmall);
  }
  Result<VideoTrack> track = read_video(file);
  if (!track) return std::move(track.error());
  if (inspects_first_packet(track->codec) && !track->packets.empty()) {
    Result<std::shared_ptr<const Buffer>> first = read_first_packet(*track, file);
    if (!first) return std::move(first.error());
    track->first_packet = std::move(*first);
  }
  return VideoTable{std::make_shared<const VideoTrack>(std::move(*track)), *identity};
}

}  // namespace headrace
