// SPDX-License-Identifier: Apache-2.0
// Decodes windows of JPEG images with libjpeg-turbo, in every kind of file that the library reads.
// Its pixels are the reference for our faster decoders. For one thread.
#pragma once

#include <span>
#include <vector>

#include "headrace/base/buffer.h"
#include "headrace/codecs/codec.h"
#include "headrace/codecs/image/jpeg/decode/session.h"

namespace headrace {

class JpegLibraryDecoder {
 public:
  Result<ImageHeader> read_header(std::span<const uint8_t> bytes);
  // Fills in the job's result and warnings.
  void decode(DecodeJob& job);
  // Only for files without any anomaly: what is stored permanently must be what the encoder wrote.
  Result<std::vector<CoefficientPlane>> coefficients(std::span<const uint8_t> bytes);

 private:
  struct Columns;
  struct Route;
  // Frees libjpeg's memory for an image, however decoding ends.
  struct Closer {
    JpegSession& session;
    ~Closer() { session.close(); }
  };
  static Route route_of(ColorMode mode, int components);
  static Columns columns_of(const Window& window, const jpeg_decompress_struct& cinfo);
  Result<void> decode_window(DecodeJob& job);
  Result<Columns> crop(const Window& window);
  Result<void> deliver(DecodeJob& job, const Route& route, int left);
  Result<void> finish_strictly();
  Result<void> check_rows(const Window& window);
  Result<void> copy_plane(jvirt_barray_ptr blocks, const jpeg_component_info& component,
                          CoefficientPlane& plane);

  JpegSession session_;
  Buffer rows_, converted_;
};

}  // namespace headrace
