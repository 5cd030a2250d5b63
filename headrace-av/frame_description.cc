// SPDX-License-Identifier: Apache-2.0
#include "frame_description.h"

extern "C" {
#include <libavutil/pixdesc.h>
}

#include "headrace/codecs/video/video_track.h"

namespace headrace::media {
namespace {

// The supported formats, which do not include alpha channels, palettes, packed samples or other
// subsampling.
bool is_known(AVPixelFormat format) {
  switch (format) {
    case AV_PIX_FMT_GRAY8:
    case AV_PIX_FMT_GRAY10LE:
    case AV_PIX_FMT_GRAY12LE:
    case AV_PIX_FMT_YUV420P:
    case AV_PIX_FMT_YUV422P:
    case AV_PIX_FMT_YUV444P:
    case AV_PIX_FMT_YUVJ420P:
    case AV_PIX_FMT_YUVJ422P:
    case AV_PIX_FMT_YUVJ444P:
    case AV_PIX_FMT_YUV420P10LE:
    case AV_PIX_FMT_YUV422P10LE:
    case AV_PIX_FMT_YUV444P10LE:
    case AV_PIX_FMT_YUV420P12LE:
    case AV_PIX_FMT_YUV422P12LE:
    case AV_PIX_FMT_YUV444P12LE:
    case AV_PIX_FMT_GBRP:
    case AV_PIX_FMT_GBRP10LE:
    case AV_PIX_FMT_GBRP12LE:
      return true;
    default:
      return false;
  }
}

// Deprecated formats whose name implies full range.
bool is_full_range_format(AVPixelFormat format) {
  return format == AV_PIX_FMT_YUVJ420P || format == AV_PIX_FMT_YUVJ422P ||
         format == AV_PIX_FMT_YUVJ444P;
}

ColorMatrix matrix_of(AVColorSpace from, bool is_rgb) {
  if (is_rgb) return ColorMatrix::kIdentity;
  switch (from) {
    case AVCOL_SPC_UNSPECIFIED:
    case AVCOL_SPC_RESERVED:
      return ColorMatrix::kUnspecified;
    case AVCOL_SPC_BT709:
      return ColorMatrix::kBT709;
    case AVCOL_SPC_FCC:
      return ColorMatrix::kFCC;
    case AVCOL_SPC_BT470BG:
    case AVCOL_SPC_SMPTE170M:
      return ColorMatrix::kBT601;
    case AVCOL_SPC_SMPTE240M:
      return ColorMatrix::kSMPTE240M;
    case AVCOL_SPC_BT2020_NCL:
      return ColorMatrix::kBT2020;
    default:
      return ColorMatrix::kOther;
  }
}

ColorRange range_of(const AVFrame& frame) {
  if (is_full_range_format(static_cast<AVPixelFormat>(frame.format))) return ColorRange::kFull;
  switch (frame.color_range) {
    case AVCOL_RANGE_MPEG:
      return ColorRange::kLimited;
    case AVCOL_RANGE_JPEG:
      return ColorRange::kFull;
    default:
      return ColorRange::kUnspecified;
  }
}

ColorTransfer transfer_of(const AVFrame& frame) {
  switch (frame.color_trc) {
    case AVCOL_TRC_UNSPECIFIED:
    case AVCOL_TRC_RESERVED0:
    case AVCOL_TRC_RESERVED:
      return ColorTransfer::kUnspecified;
    case AVCOL_TRC_SMPTE2084:
      return ColorTransfer::kPQ;
    case AVCOL_TRC_ARIB_STD_B67:
      return ColorTransfer::kHLG;
    default:
      return ColorTransfer::kStandard;
  }
}

// HEVC pictures are whole frames or single fields, never two fields.
bool holds_fields(const AVFrame& frame, AVCodecID codec) {
#ifdef AV_FRAME_FLAG_INTERLACED
  const bool is_interlaced = frame.flags & AV_FRAME_FLAG_INTERLACED;
#else
  const bool is_interlaced = frame.interlaced_frame;
#endif
  return is_interlaced && codec != AV_CODEC_ID_HEVC;
}

}  // namespace

bool describe(const AVFrame& from, AVCodecID codec, Frame& to) {
  const auto format = static_cast<AVPixelFormat>(from.format);
  if (!is_known(format)) return false;
  const AVPixFmtDescriptor* const planes = av_pix_fmt_desc_get(format);
  to.width = from.width;
  to.height = from.height;
  to.planes = planes->nb_components;
  to.chroma_x = planes->log2_chroma_w;
  to.chroma_y = planes->log2_chroma_h;
  to.bits = planes->comp[0].depth;
  to.interlaced = holds_fields(from, codec);
  to.matrix =
      static_cast<uint32_t>(matrix_of(from.colorspace, planes->flags & AV_PIX_FMT_FLAG_RGB));
  to.range = static_cast<uint32_t>(range_of(from));
  to.transfer = static_cast<uint32_t>(transfer_of(from));
  return true;
}

}  // namespace headrace::media
