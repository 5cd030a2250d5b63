// SPDX-License-Identifier: Apache-2.0
// A picture whose bytes were read but not decoded: operations on it are recorded, and executed when
// it is used. Value type; copies share the bytes.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <utility>

#include "headrace/base/buffer.h"
#include "headrace/image/recipe.h"
#include "headrace/image/render.h"

namespace headrace {

// Bytes of the files of all deferred pictures in the process. Plans do not include them when a
// record reserves its memory, so code that accepts pictures stays within kMostDeferredBytes: beyond
// that they are decoded immediately.
inline std::atomic<size_t> deferred_bytes{0};
inline constexpr size_t kMostDeferredBytes = size_t{64} << 20;

class DeferredFile {
 public:
  explicit DeferredFile(Buffer bytes) : bytes_(std::move(bytes)) {
    deferred_bytes += bytes_.size();
  }
  DeferredFile(const DeferredFile&) = delete;
  DeferredFile& operator=(const DeferredFile&) = delete;
  ~DeferredFile() { deferred_bytes -= bytes_.size(); }
  const Buffer& bytes() const { return bytes_; }

 private:
  const Buffer bytes_;
};

struct DeferredPicture {
  // shared: with pictures that are made of this one. The recipe borrows them.
  std::shared_ptr<const Buffer> bytes;
  Recipe recipe;
};

// Reads the header. Errors are the picture's: Renderer::open().
inline Result<DeferredPicture> defer(Buffer bytes, ColorMode color, Renderer& renderer) {
  auto file = std::make_shared<const DeferredFile>(std::move(bytes));
  DeferredPicture out{.bytes = {file, &file->bytes()}, .recipe = {}};
  Result<EncodedPicture> opened = renderer.open(out.bytes->bytes(), {});
  if (!opened) return std::move(opened.error());
  opened->color = color;
  out.recipe = Recipe(*opened);
  return out;
}

}  // namespace headrace
