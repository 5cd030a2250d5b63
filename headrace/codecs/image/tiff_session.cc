// SPDX-License-Identifier: Apache-2.0
#include "headrace/codecs/image/tiff_session.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <memory>
#include <span>

#include "headrace/base/buffer.h"
#include "headrace/storage/unpacker.h"

namespace headrace {
namespace {

Packing packing_of(uint16_t compression) {
  switch (compression) {
    case COMPRESSION_ADOBE_DEFLATE:
    case COMPRESSION_DEFLATE:
      return Packing::kZlib;
    case COMPRESSION_ZSTD:
      return Packing::kZstd;
    default:
      return Packing::kNone;
  }
}

}  // namespace

TiffLibrary::TiffLibrary() {
  library.find(open, "TIFFClientOpenExt");
  library.find(options, "TIFFOpenOptionsAlloc");
  library.find(free_options, "TIFFOpenOptionsFree");
  library.find(set_memory, "TIFFOpenOptionsSetMaxSingleMemAlloc");
  library.find(set_errors, "TIFFOpenOptionsSetErrorHandlerExtR");
  library.find(set_warnings, "TIFFOpenOptionsSetWarningHandlerExtR");
  library.find(close, "TIFFClose");
  library.find(set_directory, "TIFFSetDirectory");
  library.find(directories, "TIFFNumberOfDirectories");
  library.find(get, "TIFFGetField");
  library.find(get_defaulted, "TIFFGetFieldDefaulted");
  library.find(set, "TIFFSetField");
  library.find(is_tiled, "TIFFIsTiled");
  library.find(has_codec, "TIFFIsCODECConfigured");
  library.find(read_strip, "TIFFReadEncodedStrip");
  library.find(read_tile, "TIFFReadEncodedTile");
  library.find(read_raw_strip, "TIFFReadRawStrip");
  library.find(read_raw_tile, "TIFFReadRawTile");
  library.find(stored_bytes, "TIFFGetStrileByteCount");
}

const TiffLibrary& tiff_library() {
  static const TiffLibrary library;
  return library;
}

TiffSession::TiffSession(std::span<const uint8_t> bytes) : bytes_(bytes) {
  // Pixels go to our own memory; libtiff only keeps lists from the file and the codecs' tables.
  constexpr size_t kMaxBytes = size_t{64} << 20, kMaxFramesPerFileByte = 16;
  const TiffLibrary& tiff = tiff_library();
  TIFFOpenOptions* const options = tiff.options();
  if (!options) return;
  tiff.set_memory(options, tmsize_t(kMaxBytes + kMaxFramesPerFileByte * bytes.size()));
  tiff.set_errors(options, on_error, this);
  tiff.set_warnings(options, on_warning, this);
  file_ = tiff.open("picture", "rm", this, on_read, on_write, on_seek, on_close, on_size, on_map,
                    on_unmap, options);
  tiff.free_options(options);
}

// A tag that cannot be read is ignored with a warning: harmless for notes, but a different image
// if the tag defines the meaning of samples.
int TiffSession::on_warning(TIFF*, void* self, const char*, const char* format, va_list values) {
  std::array<char, 160> text;
  std::vsnprintf(text.data(), text.size(), format, values);
  const std::string_view told = text.data();
  for (std::string_view tag : {"ColorMap", "ExtraSamples", "BitsPerSample", "SampleFormat"}) {
    if (told.find(tag) == told.npos || told.find("ignored") == told.npos) continue;
    static_cast<TiffSession*>(self)->lost_ = told;
  }
  return 1;
}

TiffSession::~TiffSession() {
  if (file_) tiff_library().close(file_);
}

int TiffSession::on_error(TIFF*, void* self, const char*, const char* format, va_list values) {
  std::string& error = static_cast<TiffSession*>(self)->error_;
  if (!error.empty()) return 1;
  std::array<char, 160> text;
  std::vsnprintf(text.data(), text.size(), format, values);
  error = text.data();
  return 1;
}

tmsize_t TiffSession::on_read(thandle_t handle, void* out, tmsize_t size) {
  auto& self = *static_cast<TiffSession*>(handle);
  if (size <= 0 || self.position_ >= self.bytes_.size()) return 0;
  const size_t count = std::min(size_t(size), self.bytes_.size() - size_t(self.position_));
  std::memcpy(out, self.bytes_.data() + self.position_, count);
  self.position_ += count;
  return tmsize_t(count);
}

toff_t TiffSession::on_seek(thandle_t handle, toff_t offset, int whence) {
  auto& self = *static_cast<TiffSession*>(handle);
  if (whence == SEEK_CUR) offset += self.position_;
  if (whence == SEEK_END) offset += self.bytes_.size();
  return self.position_ = offset;
}

toff_t TiffSession::on_size(thandle_t handle) {
  return static_cast<TiffSession*>(handle)->bytes_.size();
}

std::string wrong_checksum(const TiffSession& session, uint32_t number) {
  const TiffLibrary& tiff = tiff_library();
  TIFF* const file = session.file();
  uint16_t compression = COMPRESSION_NONE, order = FILLORDER_MSB2LSB;
  tiff.get_defaulted(file, TIFFTAG_COMPRESSION, &compression);
  tiff.get_defaulted(file, TIFFTAG_FILLORDER, &order);
  const Packing packing = packing_of(compression);
  if (packing == Packing::kNone || order != FILLORDER_MSB2LSB) return {};
  const uint64_t bytes = tiff.stored_bytes(file, number);
  if (bytes == 0 || bytes > session.bytes().size()) return "a strip or tile ends early";
  Buffer stored(size_t{bytes});
  const auto read = tiff.is_tiled(file) ? tiff.read_raw_tile : tiff.read_raw_strip;
  if (read(file, number, stored.data(), tmsize_t(bytes)) != tmsize_t(bytes)) {
    return "a strip or tile ends early";
  }
  const std::unique_ptr<Unpacker> unpacker = Unpacker::make(packing);
  std::span<const uint8_t> rest = stored.bytes();
  std::array<uint8_t, 16384> out;  // the output is discarded
  while (true) {
    const Unpacker::Step step = unpacker->run(rest, out);
    if (!step.result) return "the checksum of a strip or tile is wrong";
    if (step.ended) return {};
    rest = rest.subspan(step.consumed);
    if (rest.empty() && step.produced < out.size()) return "a strip or tile lacks its checksum";
  }
}

}  // namespace headrace
