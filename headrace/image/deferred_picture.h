// SPDX-License-Identifier: Apache-2.0
// A picture whose bytes were read but not decoded: operations on it are recorded, and executed when
// its pixels are needed. A value type; copies share the bytes.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <utility>

#include "headrace/base/buffer.h"
#include "headrace/image/recipe.h"
#include "headrace/image/render.h"

namespace headrace {

// Total encoded bytes of all deferred pictures in the process. The memory that a plan reserves for
// a record does not include them, so code that receives pictures keeps the total within
// kMaxDeferredBytes: pictures beyond that are decoded immediately.
inline std::atomic<size_t> deferred_bytes{0};
inline constexpr size_t kMaxDeferredBytes = size_t{64} << 20;

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
  // Shared with pictures that are made from this one. The recipe borrows the bytes.
  std::shared_ptr<const Buffer> bytes;
  Recipe recipe;
};

// Reads the header. Returns the errors of Renderer::open().
inline Result<DeferredPicture> defer(Buffer bytes, ColorMode color, Renderer& renderer) {
  auto file = std::make_shared<const DeferredFile>(std::move(bytes));
  DeferredPicture out{.bytes = {file, &file->bytes()}, .recipe = {}};
  Result<EncodedImage> opened = renderer.open(out.bytes->bytes(), {});
  if (!opened) return std::move(opened.error());
  opened->color = color;
  out.recipe = Recipe(*opened);
  return out;
}

}  // namespace headrace
