// SPDX-License-Identifier: Apache-2.0
#include "frame_memory.h"

#include <sys/mman.h>

#include <algorithm>

extern "C" {
#include <libavutil/imgutils.h>
#include <libavutil/pixdesc.h>
}

namespace headrace::media {
namespace {

constexpr size_t kPage = 4096, kAligned = 64;
// Padding after a plane: as in libavcodec's own buffers, since the engine may read it.
constexpr size_t kPlanePadding = 16 + kAligned + kReadPadding;

size_t rounded_up(size_t bytes, size_t to) { return (bytes + to - 1) / to * to; }

}  // namespace

bool FrameMemory::resize(size_t bytes) {
  blocks_.clear();
  end_ = 0;
  if (bytes == bytes_) return true;
  if (data_) munmap(data_, bytes_);
  void* const data = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file_, 0);
  data_ = data == MAP_FAILED ? nullptr : static_cast<uint8_t*>(data);
  bytes_ = data_ ? bytes : 0;
  return data_ != nullptr;
}

void FrameMemory::drop(void* block, uint8_t*) { static_cast<Block*>(block)->used = false; }

AVBufferRef* FrameMemory::allocate(size_t bytes) {
  bytes = rounded_up(bytes, kPage);
  auto found = std::ranges::find_if(
      blocks_, [&](const auto& block) { return !block->used && block->bytes == bytes; });
  if (found == blocks_.end()) {
    if (bytes > bytes_ - end_) {
      // Blocks of another size, left over from before a stream changed its frame size.
      if (std::ranges::any_of(blocks_, [](const auto& block) { return block->used; }) ||
          bytes > bytes_)
        return nullptr;
      resize(bytes_);
    }
    blocks_.push_back(std::make_unique<Block>(end_, bytes, false));
    end_ += bytes;
    found = blocks_.end() - 1;
  }
  Block* const block = found->get();
  AVBufferRef* const buffer = av_buffer_create(data_ + block->offset, bytes, drop, block, 0);
  block->used = buffer != nullptr;
  return buffer;
}

std::optional<uint64_t> FrameMemory::offset(const uint8_t* plane) const {
  if (plane < data_ || plane >= data_ + bytes_) return std::nullopt;
  return static_cast<uint64_t>(plane - data_);
}

int FrameMemory::give_planes(AVCodecContext* context, AVFrame* frame) {
  const auto format = static_cast<AVPixelFormat>(frame->format);
  int width = frame->width, height = frame->height;
  int aligned[AV_NUM_DATA_POINTERS] = {};
  avcodec_align_dimensions2(context, &width, &height, aligned);
  int lines[4] = {};
  for (bool good = false; !good; width += width & ~(width - 1)) {
    if (const int error = av_image_fill_linesizes(lines, format, width); error < 0) return error;
    good = std::ranges::all_of(
        lines, [](int bytes) { return static_cast<size_t>(bytes) % kAligned == 0; });
  }
  const ptrdiff_t strides[4] = {lines[0], lines[1], lines[2], lines[3]};
  size_t sizes[4] = {};
  if (const int error = av_image_fill_plane_sizes(sizes, format, height, strides); error < 0) {
    return error;
  }
  size_t total = 0, starts[4] = {};
  for (int plane = 0; plane < 4; ++plane) {
    starts[plane] = total;
    if (sizes[plane]) total += rounded_up(sizes[plane] + kPlanePadding, kAligned);
  }
  AVBufferRef* const buffer = allocate(total);
  if (!buffer) return AVERROR(ENOMEM);
  frame->buf[0] = buffer;
  for (int plane = 0; plane < 4; ++plane) {
    frame->data[plane] = sizes[plane] ? buffer->data + starts[plane] : nullptr;
    frame->linesize[plane] = lines[plane];
  }
  frame->extended_data = frame->data;
  return 0;
}

int get_frame_buffer(AVCodecContext* context, AVFrame* frame, int flags) {
  const AVPixFmtDescriptor* const format =
      av_pix_fmt_desc_get(static_cast<AVPixelFormat>(frame->format));
  const bool is_planes =
      format && !(format->flags & (AV_PIX_FMT_FLAG_PAL | AV_PIX_FMT_FLAG_HWACCEL));
  if (context->codec_type != AVMEDIA_TYPE_VIDEO || !is_planes) {
    return avcodec_default_get_buffer2(context, frame, flags);
  }
  return static_cast<FrameMemory*>(context->opaque)->give_planes(context, frame);
}

}  // namespace headrace::media
