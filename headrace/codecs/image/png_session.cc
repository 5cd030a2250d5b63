// SPDX-License-Identifier: Apache-2.0
#include "headrace/codecs/image/png_session.h"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <cstring>

namespace headrace {
namespace {

// Precedes each block that libpng allocates, so that frees can be counted.
struct alignas(std::max_align_t) BlockHead {
  size_t size;
};

template <size_t kSize>
void copy_text(std::array<char, kSize>& out, const char* text) {
  const size_t length = std::min(std::strlen(text), kSize - 1);
  std::memcpy(out.data(), text, length);
  out[length] = '\0';
}

}  // namespace

int PngInfo::stored_channels() const {
  switch (color_type) {
    case PNG_COLOR_TYPE_GRAY_ALPHA:
      return 2;
    case PNG_COLOR_TYPE_RGB:
      return 3;
    case PNG_COLOR_TYPE_RGB_ALPHA:
      return 4;
    default:
      return 1;
  }
}

// libpng's structures, its read buffer and zlib's window take about 60 KiB; in addition it keeps
// two rows of at most 8 bytes per pixel.
size_t PngSession::memory_cap(int64_t width) {
  return (size_t{256} << 10) + 2 * (8 * (size_t(width) + 16) + 128);
}

PngSession::PngSession(std::span<const uint8_t> bytes) : bytes_(bytes) {
  // Before png_ exists, libpng catches its own errors and returns null.
  png_ = png_create_read_struct_2(PNG_LIBPNG_VER_STRING, this, on_error, on_warning, this,
                                  on_allocate, on_free);
  guard([this] {
    png_info_ = png_create_info_struct(png_);
    if (!png_info_) png_error(png_, "out of memory");
    png_set_read_fn(png_, this, on_read);
    png_set_benign_errors(png_, 1);  // recoverable errors are warnings
    // The caller checks the header against its own limits; libpng's would hide those.
    png_set_user_limits(png_, PNG_UINT_31_MAX, PNG_UINT_31_MAX);
    // All chunks that do not affect pixels are skipped without being allocated or inflated. A
    // length limit would only turn a valid image's large profile into a warning.
    png_set_keep_unknown_chunks(png_, PNG_HANDLE_CHUNK_NEVER, nullptr, -1);
    png_set_chunk_malloc_max(png_, 0);
    png_set_chunk_cache_max(png_, 1);
  });
}

PngSession::~PngSession() {
  if (png_) png_destroy_read_struct(&png_, png_info_ ? &png_info_ : nullptr, nullptr);
}

bool PngSession::read_info() {
  return guard([this] {
    png_read_info(png_, png_info_);
    png_uint_32 width = 0, height = 0;
    int interlace = 0;
    png_get_IHDR(png_, png_info_, &width, &height, &info_.depth, &info_.color_type, &interlace,
                 nullptr, nullptr);
    info_.width = int(width);
    info_.height = int(height);
    info_.interlaced = interlace != PNG_INTERLACE_NONE;
    if (info_.palette()) png_get_PLTE(png_, png_info_, &palette_, &palette_size_);
    png_color_16p color = nullptr;
    const bool transparent = png_get_tRNS(png_, png_info_, &alpha_, &alpha_size_, &color) != 0;
    if (!info_.palette() || !transparent) alpha_size_ = 0;
    has_key_ = transparent && !info_.palette();
  });
}

bool PngSession::start_rows(bool wide, bool with_key) {
  memory_limit_ = memory_cap(info_.width);
  info_.wide = wide && info_.depth == 16;
  info_.key_to_alpha = with_key;
  return guard([this] {
    if (info_.key_to_alpha) png_set_tRNS_to_alpha(png_);
    if (info_.palette()) {
      png_set_packing(png_);  // one index per byte
    } else if (info_.depth < 8) {
      png_set_expand_gray_1_2_4_to_8(png_);
    } else if (!info_.wide && !info_.gray16()) {
      png_set_strip_16(png_);  // takes the high byte, like Pillow
    } else if (std::endian::native == std::endian::little) {
      png_set_swap(png_);
    }
    passes_ = png_set_interlace_handling(png_);
    png_read_update_info(png_, png_info_);
    if (png_get_rowbytes(png_, png_info_) != info_.row_bytes()) png_error(png_, "row size");
  });
}

bool PngSession::read_rows(uint8_t* rows, size_t stride, int64_t count) {
  return guard([=, this] {
    for (int64_t i = 0; i < count; ++i) {
      png_read_row(png_, rows ? rows + size_t(i) * stride : nullptr, nullptr);
    }
  });
}

bool PngSession::read_end() {
  return guard([this] { png_read_end(png_, nullptr); });
}

void PngSession::on_error(png_structp png, png_const_charp text) {
  auto& self = *static_cast<PngSession*>(png_get_error_ptr(png));
  copy_text(self.error_, text);
  self.failed_ = true;
  // libpng's constructor runs with a jump buffer of its own.
  if (!self.png_) png_longjmp(png, 1);
  std::longjmp(self.jump_, 1);
}

void PngSession::on_warning(png_structp png, png_const_charp text) {
  auto& self = *static_cast<PngSession*>(png_get_error_ptr(png));
  if (self.warnings_++ == 0) copy_text(self.first_warning_, text);
}

void PngSession::on_read(png_structp png, png_bytep out, size_t length) {
  auto& self = *static_cast<PngSession*>(png_get_io_ptr(png));
  if (length > self.bytes_.size() - self.position_) {
    self.position_ = self.bytes_.size();
    self.truncated_ = true;
    png_error(png, "the data ends too early");
  }
  std::memcpy(out, self.bytes_.data() + self.position_, length);
  self.position_ += length;
}

png_voidp PngSession::on_allocate(png_structp png, png_alloc_size_t size) {
  auto& self = *static_cast<PngSession*>(png_get_mem_ptr(png));
  void* block = nullptr;
  if (size <= self.memory_limit_ - self.memory_) block = std::malloc(sizeof(BlockHead) + size);
  if (!block) {
    self.out_of_memory_ = true;
    return nullptr;
  }
  self.memory_ += size;
  self.peak_memory_ = std::max(self.peak_memory_, self.memory_);
  auto* head = static_cast<BlockHead*>(block);
  head->size = size;
  return head + 1;
}

void PngSession::on_free(png_structp png, png_voidp memory) {
  if (!memory) return;
  auto* head = static_cast<BlockHead*>(memory) - 1;
  static_cast<PngSession*>(png_get_mem_ptr(png))->memory_ -= head->size;
  std::free(head);
}

}  // namespace headrace
