// SPDX-License-Identifier: Apache-2.0
// GIF, by giflib: the first frame on its canvas. As in Pillow, pixels outside of the frame have the
// transparent index if there is one, otherwise index 0.
#include <gif_lib.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <cstring>
#include <optional>

#include "headrace/base/registry.h"
#include "headrace/base/text.h"
#include "headrace/codecs/codec.h"
#include "headrace/codecs/image/stored_rows.h"
#include "headrace/codecs/run_time_library.h"

namespace headrace {
namespace {

constexpr std::string_view kGifName = "GIF";

struct GifLibrary {
  RunTimeLibrary library{"libgif.so.7", "libgif7"};
  decltype(&DGifOpen) open = nullptr;
  decltype(&DGifCloseFile) close = nullptr;
  decltype(&DGifGetRecordType) record = nullptr;
  decltype(&DGifGetImageDesc) image = nullptr;
  decltype(&DGifGetLine) line = nullptr;
  decltype(&DGifGetExtension) extension = nullptr;
  decltype(&DGifGetExtensionNext) extension_next = nullptr;

  GifLibrary() {
    library.find(open, "DGifOpen");
    library.find(close, "DGifCloseFile");
    library.find(record, "DGifGetRecordType");
    library.find(image, "DGifGetImageDesc");
    library.find(line, "DGifGetLine");
    library.find(extension, "DGifGetExtension");
    library.find(extension_next, "DGifGetExtensionNext");
  }
};

const GifLibrary& gif_library() {
  static const GifLibrary library;
  return library;
}

// Reads one image in memory by giflib, up to the pixels of its first frame.
class GifSession {
 public:
  explicit GifSession(std::span<const uint8_t> bytes) : bytes_(bytes) {
    file_ = gif_library().open(this, on_read, &error_);
  }
  ~GifSession() {
    int ignored = 0;
    if (file_) gif_library().close(file_, &ignored);
  }
  GifSession(const GifSession&) = delete;
  GifSession& operator=(const GifSession&) = delete;

  Result<void> find_frame() {
    const GifLibrary& gif = gif_library();
    GifRecordType type = UNDEFINED_RECORD_TYPE;
    while (file_ && gif.record(file_, &type) == GIF_OK) {
      if (type == TERMINATE_RECORD_TYPE) return corrupt_image(kGifName, "it has no frame");
      if (type == IMAGE_DESC_RECORD_TYPE) {
        if (gif.image(file_) != GIF_OK) break;
        const GifImageDesc& frame = file_->Image;
        if (frame.Width <= 0 || frame.Height <= 0 || frame.Left < 0 || frame.Top < 0) {
          return corrupt_image(kGifName, "its first frame has no size");
        }
        return {};
      }
      if (type == EXTENSION_RECORD_TYPE && !read_extension()) break;
    }
    return error();
  }
  bool read_line(uint8_t* out, int width) {
    return gif_library().line(file_, out, width) == GIF_OK;
  }
  Error error() const {
    if (ended_) return truncated_image(kGifName, bytes_.size());
    return corrupt_image(kGifName,
                         "giflib's error " + std::to_string(file_ ? file_->Error : error_));
  }

  // REQUIRES: find_frame() found one.
  const GifImageDesc& frame() const { return file_->Image; }
  int width() const { return std::max(int(file_->SWidth), frame().Left + frame().Width); }
  int height() const { return std::max(int(file_->SHeight), frame().Top + frame().Height); }
  uint8_t background() const { return transparent_.value_or(0); }
  std::optional<uint8_t> transparent() const { return transparent_; }  // index
  const ColorMapObject* colors() const {
    return frame().ColorMap ? frame().ColorMap : file_->SColorMap;
  }

 private:
  bool read_extension() {
    const GifLibrary& gif = gif_library();
    int code = 0;
    GifByteType* block = nullptr;
    if (gif.extension(file_, &code, &block) != GIF_OK) return false;
    while (block) {
      if (code == GRAPHICS_EXT_FUNC_CODE && block[0] >= 4) {
        transparent_.reset();
        if (block[1] & 1) transparent_ = block[4];
      }
      if (gif.extension_next(file_, &block) != GIF_OK) return false;
    }
    return true;
  }

  static int on_read(GifFileType* file, GifByteType* out, int size) {
    auto& self = *static_cast<GifSession*>(file->UserData);
    const size_t count = std::min(size_t(std::max(size, 0)), self.bytes_.size() - self.position_);
    std::memcpy(out, self.bytes_.data() + self.position_, count);
    self.position_ += count;
    if (int(count) < size) self.ended_ = true;
    return int(count);
  }

  std::span<const uint8_t> bytes_;
  size_t position_ = 0;
  bool ended_ = false;
  std::optional<uint8_t> transparent_;
  int error_ = 0;
  GifFileType* file_ = nullptr;
};

class GifDecoder : public ImageDecoder {
 public:
  Result<ImageHeader> read_header(std::span<const uint8_t> bytes) override {
    if (!gif_library().library.is_open()) return gif_library().library.missing();
    GifSession session(bytes);
    if (Result<void> found = session.find_frame(); !found) return std::move(found.error());
    ImageHeader header;
    header.width = session.width();
    header.height = session.height();
    header.palette = true;
    header.alpha = session.transparent().has_value();
    const size_t frame = size_t(session.frame().Width) * size_t(session.frame().Height);
    header.working_bytes = frame + size_t(header.width) + (size_t{256} << 10);
    return header;
  }

  void decode(std::span<DecodeJob> jobs) override {
    for (DecodeJob& job : jobs) job.result = decode_one(job);
  }

 private:
  Result<void> decode_one(const DecodeJob& job) {
    if (!gif_library().library.is_open()) return gif_library().library.missing();
    GifSession session(job.bytes);
    if (Result<void> found = session.find_frame(); !found) return found;
    assert(is_inside(job.window, session.width(), session.height()));
    take_palette(session.colors(), session.transparent());
    const GifImageDesc& frame = session.frame();
    const Window& window = job.window;
    const int wanted = job.strict ? frame.Height : window.y + window.height - frame.Top;
    if (!read_frame(session, std::clamp(wanted, 0, int(frame.Height)))) return session.error();
    const Window shown = common(window, {frame.Left, frame.Top, frame.Width, frame.Height});
    row_.resize(size_t(window.width));
    for (int y = 0; y < window.height; ++y) {
      const int row = window.y + y;
      std::memset(row_.data(), session.background(), row_.size());
      if (row >= shown.y && row < shown.y + shown.height) {
        std::memcpy(
            row_.data() + (shown.x - window.x),
            frame_.data() + size_t(row - frame.Top) * size_t(frame.Width) + (shown.x - frame.Left),
            size_t(shown.width));
      }
      stored_.deliver(job, StoredColor::kPalette, row_.data(), 0, y, 1);
    }
    return {};
  }

  // Reads at least the frame's first `rows` rows.
  bool read_frame(GifSession& session, int rows) {
    const GifImageDesc& frame = session.frame();
    const size_t width = size_t(frame.Width);
    frame_.resize(width * size_t(frame.Height));
    const auto read = [&](int first, int step, int past) {
      for (int y = first; y < past; y += step) {
        if (!session.read_line(frame_.data() + size_t(y) * width, frame.Width)) return false;
      }
      return true;
    };
    if (rows == 0) return true;
    if (!frame.Interlace) return read(0, 1, rows);
    const int all = frame.Height;
    return read(0, 8, all) && read(4, 8, all) && read(2, 4, all) && read(1, 2, all);
  }

  // Without a palette, indices are gray levels.
  void take_palette(const ColorMapObject* colors, std::optional<uint8_t> transparent) {
    std::array<std::array<uint8_t, 3>, 256> palette;
    size_t count = palette.size();
    if (colors) {
      count = std::min(count, size_t(std::max(colors->ColorCount, 0)));
      for (size_t i = 0; i < count; ++i) {
        const GifColorType& color = colors->Colors[i];
        palette[i] = {color.Red, color.Green, color.Blue};
      }
    } else {
      for (size_t i = 0; i < count; ++i) palette[i].fill(uint8_t(i));
    }
    std::array<uint8_t, 256> alpha;
    alpha.fill(255);
    if (transparent) alpha[*transparent] = 0;
    stored_.set_palette(std::span(palette).first(count), alpha);
  }

  StoredRows stored_;
  Buffer frame_, row_;
};

const CodecRecord kGif{
    .name = "gif",
    .doc = "GIF: the first frame on its canvas.",
    .oracle = "Pillow 13's GIF plugin and convert(), byte for byte",
    .suffixes = {".gif"},
    .sniff =
        [](std::span<const uint8_t> first_bytes) {
          return has_text(first_bytes, "GIF87a") || has_text(first_bytes, "GIF89a");
        },
    .make = []() -> std::unique_ptr<ImageDecoder> { return std::make_unique<GifDecoder>(); },
    .library = []() -> const RunTimeLibrary& { return gif_library().library; },
};
const Register<CodecRecord> registered_gif_codec(kGif);

}  // namespace
}  // namespace headrace
