// SPDX-License-Identifier: Apache-2.0
#include "headrace/codecs/audio/opus_packets.h"

#include <algorithm>
#include <optional>
#include <span>

#include "headrace/codecs/audio/ogg_pages.h"
#include "headrace/codecs/image/byte_order.h"

namespace headrace {
namespace {

// Visits packets in order, up to the window.
class SilkRuns {
 public:
  explicit SilkRuns(int64_t begin) : begin_(begin) {}

  // False: stop. `packet`: its first bytes.
  bool add(std::span<const uint8_t> packet) {
    constexpr int kHeaders = 2;
    if (packets_++ == 0) read_head(packet);
    if (packets_ <= kHeaders || packet.empty()) return true;
    if (position_ >= begin_) return false;
    const int64_t end = position_ + opus_duration(packet);
    const bool silk = opus_uses_silk(packet) || has_several_;
    if (silk && !run_) run_ = position_;
    if (!silk) run_.reset();
    if (silk && !needed_ && end > begin_ - kOpusPreroll) needed_ = run_;
    position_ = end;
    return true;
  }

  int64_t start() const {
    int64_t from = begin_ - kOpusPreroll;
    if (needed_ && begin_ - *needed_ <= kFarthestSilk) {
      from = std::min(from, *needed_ - kOpusPreroll);
    } else if (needed_) {
      from = begin_ - kSilkPreroll;
    }
    return std::max<int64_t>(from, 0);
  }

 private:
  void read_head(std::span<const uint8_t> head) {  // RFC 7845, 5.1
    constexpr size_t kSkip = 10, kFamily = 18, kStreams = 19;
    if (head.size() >= kSkip + 2) position_ = -int64_t{little_u16(head, kSkip)};
    // Their packets are nested, and each of them may be SILK.
    has_several_ = head.size() > kStreams && head[kFamily] != 0 && head[kStreams] > 1;
  }

  const int64_t begin_;
  int64_t position_ = 0;  // where the next packet begins
  int64_t packets_ = 0;
  bool has_several_ = false;             // streams
  std::optional<int64_t> run_, needed_;  // starts of runs of SILK packets
};

}  // namespace

Result<int64_t> opus_start(const ByteRanges& file, int64_t begin) {
  constexpr size_t kPageHeader = 27, kMaxPage = kPageHeader + 255 + 255 * 255;
  constexpr uint8_t kWholeSegment = 255;
  if (begin <= kOpusPreroll) return 0;
  SilkRuns runs(begin);
  bool inside = false;  // from a packet that began in the previous page
  for (uint64_t at = 0; at < file.size();) {
    const Result<std::span<const uint8_t>> there = file.at(at, kMaxPage);
    if (!there) return there.error();
    const size_t size = ogg_page_bytes(*there);
    if (size == 0) break;
    const std::span<const uint8_t> table = there->subspan(kPageHeader, (*there)[kPageHeader - 1]);
    std::span<const uint8_t> content = there->first(size).subspan(kPageHeader + table.size());
    for (size_t i = 0; i < table.size();) {
      size_t bytes = 0;
      bool ends = false;
      for (; i < table.size() && !ends; ++i) {
        bytes += table[i];
        ends = table[i] < kWholeSegment;
      }
      if (!inside && !runs.add(content.first(bytes))) return runs.start();
      content = content.subspan(bytes);
      inside = !ends;
    }
    at += size;
  }
  return runs.start();
}

}  // namespace headrace
