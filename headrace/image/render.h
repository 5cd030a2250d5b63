// SPDX-License-Identifier: Apache-2.0
// Recipe -> pixels, in one fused pass: decode only the window -> orientation -> resample -> pixel
// map -> store. No full-size intermediate: rows go from the decoder through the horizontal pass.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "headrace/image/recipe.h"

namespace headrace {

enum class MemoryFormat : uint8_t { kChannelsFirst, kChannelsLast };

// Where a picture goes: dense (C, H, W) or (H, W, C) of the recipe's size, channels and dtype.
struct RenderTarget {
  void* data = nullptr;
  MemoryFormat format = MemoryFormat::kChannelsFirst;
};

// Seconds spent by stage; counters of one thread.
struct StageSeconds {
  double read = 0, entropy = 0, transform = 0, resample = 0, store = 0, host = 0;
};

struct RenderTask {
  const Recipe* recipe = nullptr;
  RenderTarget target;
  Result<void> result;
  int warnings = 0;
};

// What one thread keeps between pictures: decoders, resample tables, row buffers. Not thread-safe.
class Renderer {
 public:
  Renderer();
  ~Renderer();

  // Finds the codec and reads the header: HR0301 when no codec knows the bytes, the codec's error
  // when the header is unusable, HR0310 when it exceeds the limits.
  Result<EncodedPicture> open(std::span<const uint8_t> bytes, const DecodeLimits& limits);
  void render(std::span<RenderTask> tasks);
  // Renders to a Picture, which starts a new recipe.
  Result<void> materialize(Recipe& recipe);
  // Bytes that rendering it will need beside this object's present buffers; for the memory budget.
  static size_t working_bytes(const Recipe& recipe);
  // Gives back buffers above the cap, after an unusually large picture.
  void trim(size_t keep_bytes);
  size_t held_bytes() const;

  StageSeconds& seconds() { return seconds_; }

 private:
  struct Scratch;
  ImageDecoder& decoder(const CodecRecord& codec);
  std::unique_ptr<Scratch> scratch_;
  std::unordered_map<const CodecRecord*, std::unique_ptr<ImageDecoder>> decoders_;
  StageSeconds seconds_;
};

}  // namespace headrace
