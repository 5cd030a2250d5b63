// SPDX-License-Identifier: Apache-2.0
#include "headrace/codecs/image/jpeg/writer.h"

#include <csetjmp>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "jpeglib.h"

namespace headrace {
namespace {

const ErrorCode kNotWritten{
    "HR0389", ErrorKind::kData, "image too large for JPEG",
    "libjpeg-turbo cannot write the image as a JPEG: an edge is longer than 65,500 pixels, or "
    "there is not enough memory. Crop or resize it first."};

// libjpeg's compressor and its output. Errors longjmp here, so code that calls libjpeg owns nothing
// (Note [Why libjpeg is called through guarded()] in decode/session.h).
class Writer {
 public:
  Writer() {
    cinfo_.err = jpeg_std_error(&errors_.manager);
    errors_.manager.error_exit = [](j_common_ptr cinfo) {
      auto* const errors = reinterpret_cast<Errors*>(cinfo->err);
      cinfo->err->format_message(cinfo, errors->message);
      std::longjmp(errors->back, 1);
    };
    errors_.manager.output_message = [](j_common_ptr) {};
    jpeg_create_compress(&cinfo_);
  }
  ~Writer() {
    jpeg_destroy_compress(&cinfo_);
    std::free(bytes_);
  }
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;

  // False if the library failed. `row` is a buffer for one row of interleaved samples.
  bool write(const PlanarBytes& image, int quality, uint8_t* row) {
    if (setjmp(errors_.back) != 0) return false;
    jpeg_mem_dest(&cinfo_, &bytes_, &size_);
    cinfo_.image_width = static_cast<JDIMENSION>(image.width);
    cinfo_.image_height = static_cast<JDIMENSION>(image.height);
    cinfo_.input_components = image.channels;
    cinfo_.in_color_space = image.channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
    jpeg_set_defaults(&cinfo_);
    jpeg_set_quality(&cinfo_, quality, TRUE);
    jpeg_start_compress(&cinfo_, TRUE);
    while (cinfo_.next_scanline < cinfo_.image_height) {
      const size_t first = size_t(cinfo_.next_scanline) * size_t(image.width);
      for (int c = 0; c < image.channels; ++c) {
        const uint8_t* const from = image.plane[c] + first;
        for (int x = 0; x < image.width; ++x) row[x * image.channels + c] = from[x];
      }
      jpeg_write_scanlines(&cinfo_, &row, 1);
    }
    jpeg_finish_compress(&cinfo_);
    return true;
  }

  std::vector<uint8_t> bytes() const { return {bytes_, bytes_ + size_}; }
  const char* message() const { return errors_.message; }

 private:
  struct Errors {
    jpeg_error_mgr manager = {};  // must be first: libjpeg has a pointer to it
    std::jmp_buf back;
    char message[JMSG_LENGTH_MAX] = {};
  };
  jpeg_compress_struct cinfo_ = {};
  Errors errors_;
  unsigned char* bytes_ = nullptr;
  unsigned long size_ = 0;
};

}  // namespace

Result<std::vector<uint8_t>> jpeg_from_planes(const PlanarBytes& image, int quality) {
  std::vector<uint8_t> row(size_t(image.width) * size_t(image.channels));
  Writer writer;
  if (writer.write(image, quality, row.data())) return writer.bytes();
  return Error{.code = &kNotWritten,
               .what = std::to_string(image.height) + " x " + std::to_string(image.width) +
                       " pixels (height x width): " + writer.message()};
}

}  // namespace headrace
