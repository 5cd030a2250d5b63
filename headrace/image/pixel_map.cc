// SPDX-License-Identifier: Apache-2.0
#include "headrace/image/pixel_map.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>

#include "headrace/base/error.h"

namespace headrace {
namespace {

const ErrorCode kBadDType{
    "HR0342", ErrorKind::kConfig, "dtype not valid for images",
    "Images are uint8, uint16, float32, float16 or bfloat16. For other dtypes, convert the "
    "delivered batch."};

const ErrorCode kBadNormalize{
    "HR0343", ErrorKind::kConfig, "invalid normalization",
    "Normalize subtracts a mean and divides by a standard deviation, so it needs floats and "
    "nonzero deviations."};

bool is_half(DType dtype) { return dtype == DType::kFloat16 || dtype == DType::kBFloat16; }

bool is_picture_dtype(DType dtype) {
  return dtype == DType::kUInt8 || dtype == DType::kUInt16 || dtype == DType::kFloat32 ||
         dtype == DType::kFloat16 || dtype == DType::kBFloat16;
}

void check_dtype(DType dtype) {
  if (is_picture_dtype(dtype)) return;
  raise(kBadDType, "an image cannot be " + std::string(name_of(dtype)),
        "use uint8, uint16, float32, float16 or bfloat16");
}

void check_step(DType present, const MapStep& step) {
  if (step.kind == MapStep::Kind::kConvert) return check_dtype(step.dtype);
  if (!is_floating(present)) {
    raise(kBadNormalize, "Normalize needs floats (got " + std::string(name_of(present)) + ")",
          "put ToDtype(float32, scale=True) before it");
  }
  if (step.mean.empty() || step.std.empty()) {
    raise(kBadNormalize, "Normalize needs a mean and a std");
  }
  if (std::ranges::find(step.std, 0.0f) != step.std.end()) {
    raise(kBadNormalize, "std must not be zero");
  }
}

double max_value(DType integer) { return integer == DType::kUInt8 ? 255 : 65535; }

// torch's cast of a float to an unsigned integer: truncated to a 64-bit integer, whose low bits are
// kept.
float low_bits(float x, DType to) {
  if (!(std::abs(x) < 0x1p63f)) return 0;
  const auto whole = static_cast<int64_t>(x);
  return static_cast<float>(whole & (to == DType::kUInt8 ? 0xff : 0xffff));
}

// Adds eight bits, or drops the lower eight.
float between_integers(float x, const MapStep& step) {
  if (!step.scale) return low_bits(x, step.dtype);
  return step.dtype == DType::kUInt8 ? std::trunc(x / 256) : x * 256;
}

float converted(float x, DType from, const MapStep& step) {
  if (from == step.dtype) return x;
  if (is_floating(from)) {
    if (is_floating(step.dtype)) return rounded_to(x, step.dtype);
    // 255.999 keeps 1.0 from becoming 256 and gives every value an equal share of the range; in
    // float16 it is rounded to 256 by the product, as in the reference.
    const auto range = static_cast<float>(max_value(step.dtype) + 1.0 - 1e-3);
    return low_bits(step.scale ? rounded_to(x * range, from) : x, step.dtype);
  }
  if (!is_floating(step.dtype)) return between_integers(x, step);
  const float value = rounded_to(x, step.dtype);
  if (step.scale && step.divides) {
    return rounded_to(value / static_cast<float>(max_value(from)), step.dtype);
  }
  return step.scale ? rounded_to(value * static_cast<float>(1.0 / max_value(from)), step.dtype)
                    : value;
}

float of_channel(const std::vector<float>& values, int channel) {
  return values[std::min<size_t>(channel, values.size() - 1)];
}

float normalized(float x, DType dtype, const MapStep& step, int channel) {
  const float mean = rounded_to(of_channel(step.mean, channel), dtype);
  const float std = rounded_to(of_channel(step.std, channel), dtype);
  return rounded_to(rounded_to(x - mean, dtype) / std, dtype);
}

// The affine form that ((x * scale) - mean) / std should have; make_store_table() verifies it.
Affine guess_of(const std::vector<MapStep>& steps, int channel) {
  Affine guess;
  for (const MapStep& step : steps) {
    if (step.kind == MapStep::Kind::kNormalize) {
      guess.mean = of_channel(step.mean, channel);
      guess.std = of_channel(step.std, channel);
    } else if (step.scale) {
      guess.scale = static_cast<float>(1.0 / 255);
    }
  }
  return guess;
}

}  // namespace

struct PixelMap::Child {
  MapStep step;
  const PixelMap* map;
  const Child* next;
};

PixelMap::PixelMap(DType input, DType output, std::vector<MapStep> steps)
    : input_(input), output_(output), steps_(std::move(steps)) {
  if (input_ == DType::kUInt8) make_tables();
}

void PixelMap::make_tables() {
  size_t channels = 1;
  for (const MapStep& step : steps_)
    channels = std::max({channels, step.mean.size(), step.std.size()});
  tables_.resize(channels);
  for (int channel = 0; channel < static_cast<int>(channels); ++channel) {
    std::array<double, 256> values;
    for (int x = 0; x < 256; ++x) values[x] = value(x, channel);
    tables_[channel] = make_store_table(output_, values, guess_of(steps_, channel));
  }
}

const PixelMap* PixelMap::identity(DType dtype) {
  check_dtype(dtype);
  // Never destroyed: recipes of threads that outlive main() may still point to them.
  static const PixelMap* const u8 = new PixelMap(DType::kUInt8, DType::kUInt8, {});
  static const PixelMap* const u16 = new PixelMap(DType::kUInt16, DType::kUInt16, {});
  static const PixelMap* const f32 = new PixelMap(DType::kFloat32, DType::kFloat32, {});
  static const PixelMap* const f16 = new PixelMap(DType::kFloat16, DType::kFloat16, {});
  static const PixelMap* const bf16 = new PixelMap(DType::kBFloat16, DType::kBFloat16, {});
  switch (dtype) {
    case DType::kUInt16:
      return u16;
    case DType::kFloat32:
      return f32;
    case DType::kFloat16:
      return f16;
    case DType::kBFloat16:
      return bf16;
    default:
      return u8;
  }
}

const PixelMap* PixelMap::child(const MapStep& step) const {
  for (const Child* c = children_.load(std::memory_order_acquire); c; c = c->next) {
    if (c->step == step) return c->map;
  }
  return nullptr;
}

const PixelMap* PixelMap::then(const MapStep& step) const {
  if (step.kind == MapStep::Kind::kConvert && step.dtype == output_) return this;
  if (const PixelMap* known = child(step)) return known;
  check_step(output_, step);
  MutexLock lock(mutex_);
  if (const PixelMap* known = child(step)) return known;  // another thread has added it
  std::vector<MapStep> steps = steps_;
  steps.push_back(step);
  const DType output = step.kind == MapStep::Kind::kConvert ? step.dtype : output_;
  const PixelMap* const map = new PixelMap(input_, output, std::move(steps));
  children_.store(new Child{step, map, children_.load(std::memory_order_relaxed)},
                  std::memory_order_release);
  return map;
}

double PixelMap::value(double x, int channel) const {
  auto value = static_cast<float>(x);
  apply(&value, 1, channel);
  return value;
}

void PixelMap::apply(float* values, int count, int channel) const {
  if (is_half(input_)) {  // in the form that they have in memory
    for (int i = 0; i < count; ++i) values[i] = rounded_to(values[i], input_);
  }
  DType dtype = input_;
  for (const MapStep& step : steps_) {
    if (step.kind == MapStep::Kind::kConvert) {
      for (int i = 0; i < count; ++i) values[i] = converted(values[i], dtype, step);
      dtype = step.dtype;
    } else {
      for (int i = 0; i < count; ++i) values[i] = normalized(values[i], dtype, step, channel);
    }
  }
}

float rounded_to(float x, DType dtype) {
  switch (dtype) {
    case DType::kFloat16:
      return float32_from_float16(float16_from_float32(x));
    case DType::kBFloat16:
      return float32_from_bfloat16(bfloat16_from_float32(x));
    default:
      return x;
  }
}

void store_value(double value, DType dtype, void* to) {
  const float x = static_cast<float>(value);
  switch (dtype) {
    case DType::kFloat32:
      std::memcpy(to, &x, sizeof(x));
      return;
    case DType::kUInt8:
      *static_cast<uint8_t*>(to) = static_cast<uint8_t>(value);
      return;
    case DType::kUInt16: {
      const auto bits = static_cast<uint16_t>(value);
      std::memcpy(to, &bits, sizeof(bits));
      return;
    }
    default: {
      const uint16_t bits =
          dtype == DType::kFloat16 ? float16_from_float32(x) : bfloat16_from_float32(x);
      std::memcpy(to, &bits, sizeof(bits));
    }
  }
}

double load_value(DType dtype, const void* from) {
  if (dtype == DType::kUInt8) return *static_cast<const uint8_t*>(from);
  if (dtype == DType::kFloat32) {
    float x;
    std::memcpy(&x, from, sizeof(x));
    return x;
  }
  uint16_t bits;
  std::memcpy(&bits, from, sizeof(bits));
  if (dtype == DType::kUInt16) return bits;
  return dtype == DType::kFloat16 ? float32_from_float16(bits) : float32_from_bfloat16(bits);
}

namespace {

// Calls with a value of the type that pictures of this dtype have in memory.
template <class Visit>
void with_element(DType dtype, const Visit& visit) {
  switch (size_of(dtype)) {
    case 1:
      return visit(uint8_t{});
    case 2:
      return visit(uint16_t{});
    default:
      return visit(float{});
  }
}

// A row without gaps, eight values at a time.
template <class To, class From>
void convert_row(const From* from, int count, To* to) {
  constexpr int kLanes = 8;
  typedef From Loaded __attribute__((vector_size(kLanes * sizeof(From))));
  typedef To Stored __attribute__((vector_size(kLanes * sizeof(To))));
  int i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    Loaded loaded;
    std::memcpy(&loaded, from + i, sizeof(loaded));
    const Stored stored = __builtin_convertvector(loaded, Stored);
    std::memcpy(to + i, &stored, sizeof(stored));
  }
  for (; i < count; ++i) to[i] = static_cast<To>(from[i]);
}

}  // namespace

void load_values(DType dtype, const void* from, ptrdiff_t step, int count, float* to) {
  const auto* const bytes = static_cast<const uint8_t*>(from);
  const bool half = is_half(dtype);
  with_element(dtype, [&]<class Element>(Element element) {
    if (!half && step == sizeof(Element)) {
      return convert_row(static_cast<const Element*>(from), count, to);
    }
    for (int i = 0; i < count; ++i) {
      std::memcpy(&element, bytes + i * step, sizeof(element));
      to[i] = half ? static_cast<float>(load_value(dtype, &element)) : static_cast<float>(element);
    }
  });
}

void store_values(const float* from, int count, DType dtype, ptrdiff_t step, void* to) {
  auto* const bytes = static_cast<uint8_t*>(to);
  const bool half = is_half(dtype);
  with_element(dtype, [&]<class Element>(Element element) {
    if (!half && step == sizeof(Element)) {
      return convert_row(from, count, static_cast<Element*>(to));
    }
    for (int i = 0; i < count; ++i) {
      if (half) {
        store_value(from[i], dtype, &element);
      } else {
        element = static_cast<Element>(from[i]);
      }
      std::memcpy(bytes + i * step, &element, sizeof(element));
    }
  });
}

}  // namespace headrace
