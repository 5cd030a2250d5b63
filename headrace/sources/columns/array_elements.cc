// SPDX-License-Identifier: Apache-2.0
#include "headrace/sources/columns/array_elements.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <limits>

#include "headrace/kernels/rows.h"

namespace headrace {
namespace {

// Calls `call` with a value of the dtype's C++ type.
template <class Call>
decltype(auto) with_integer(DType dtype, const Call& call) {
  switch (dtype) {
    case DType::kUInt8:
      return call(uint8_t{});
    case DType::kInt8:
      return call(int8_t{});
    case DType::kInt16:
      return call(int16_t{});
    case DType::kInt32:
      return call(int32_t{});
    case DType::kInt64:
      return call(int64_t{});
    case DType::kUInt16:
      return call(uint16_t{});
    case DType::kUInt32:
      return call(uint32_t{});
    case DType::kUInt64:
      return call(uint64_t{});
    default:
      std::abort();  // REQUIRED: an integer
  }
}

template <class T>
T value_at(const uint8_t* values, int64_t i) {
  T value;
  std::memcpy(&value, values + static_cast<size_t>(i) * sizeof value, sizeof value);
  return value;
}

template <class T>
int64_t as_int64(T value) {
  if constexpr (std::is_same_v<T, uint64_t>) {
    return static_cast<int64_t>(std::min(value, uint64_t{INT64_MAX}));
  } else {
    return static_cast<int64_t>(value);
  }
}

template <class Word>
void swap_words(std::span<uint8_t> bytes) {
  for (size_t i = 0; i + sizeof(Word) <= bytes.size(); i += sizeof(Word)) {
    Word word;
    std::memcpy(&word, bytes.data() + i, sizeof word);
    if constexpr (sizeof(Word) == 2) word = __builtin_bswap16(word);
    if constexpr (sizeof(Word) == 4) word = __builtin_bswap32(word);
    if constexpr (sizeof(Word) == 8) word = __builtin_bswap64(word);
    std::memcpy(bytes.data() + i, &word, sizeof word);
  }
}

// Writes elements [first, pixels) of each plane.
template <class Word>
void planes_from_pixels(const uint8_t* in, uint8_t* out, size_t first, size_t pixels,
                        size_t channels) {
  for (size_t c = 0; c < channels; ++c) {
    uint8_t* to = out + (c * pixels + first) * sizeof(Word);
    for (size_t i = first; i < pixels; ++i, to += sizeof(Word)) {
      std::memcpy(to, in + (i * channels + c) * sizeof(Word), sizeof(Word));
    }
  }
}

// The vector loop writes up to 63 bytes past its row, so it ends that far before the end of the
// plane.
void planes_from_bytes(const uint8_t* in, uint8_t* out, size_t pixels, size_t channels) {
  constexpr size_t kOverrun = 64, kRow = size_t{1} << 16;
  size_t done = 0;
  while (channels <= 4 && done + kOverrun < pixels) {
    const size_t count = std::min(pixels - kOverrun - done, kRow);
    uint8_t* planes[4];
    for (size_t c = 0; c < channels; ++c) planes[c] = out + c * pixels + done;
    deinterleave_row(in + done * channels, static_cast<int>(channels), static_cast<int>(count),
                     planes);
    done += count;
  }
  planes_from_pixels<uint8_t>(in, out, done, pixels, channels);
}

}  // namespace

bool is_integer(DType dtype) { return !is_floating(dtype) && dtype != DType::kBool; }

IntegerRange range_of_integers(DType dtype) {
  return with_integer(dtype, []<class T>(T) {
    return IntegerRange{as_int64(std::numeric_limits<T>::lowest()),
                        as_int64(std::numeric_limits<T>::max())};
  });
}

IntegerRange extremes_of(const uint8_t* values, DType dtype, int64_t count) {
  return with_integer(dtype, [&]<class T>(T) {
    T lowest = value_at<T>(values, 0), highest = lowest;
    for (int64_t i = 1; i < count; ++i) {
      const T value = value_at<T>(values, i);
      lowest = std::min(lowest, value);
      highest = std::max(highest, value);
    }
    return IntegerRange{as_int64(lowest), as_int64(highest)};
  });
}

int64_t first_equal(const uint8_t* values, DType dtype, int64_t count, int64_t value) {
  return with_integer(dtype, [&]<class T>(T) {
    int64_t i = 0;
    while (i < count && as_int64(value_at<T>(values, i)) != value) ++i;
    return i;
  });
}

std::optional<int64_t> unrepresentable_value(const uint8_t* values, DType from, int64_t count,
                                             DType to) {
  if (from == to || count == 0) return {};
  // Read as int64, uint64 values that are too large for it are negative.
  const bool wraps = from == DType::kUInt64;
  const DType compared = wraps ? DType::kInt64 : from;
  IntegerRange can = range_of_integers(to);
  if (wraps) can.lowest = 0;
  const IntegerRange may = range_of_integers(compared);
  if (may.lowest >= can.lowest && may.highest <= can.highest) return {};
  const IntegerRange has = extremes_of(values, compared, count);
  if (has.lowest < can.lowest) return has.lowest;
  if (has.highest > can.highest) return has.highest;
  return {};
}

void convert_integers(const uint8_t* in, DType from, int64_t count, DType to, uint8_t* out) {
  if (from == to) {
    std::memcpy(out, in, static_cast<size_t>(count) * size_of(to));
    return;
  }
  with_integer(from, [&]<class From>(From) {
    with_integer(to, [&]<class To>(To) {
      for (int64_t i = 0; i < count; ++i) {
        const To value = static_cast<To>(value_at<From>(in, i));
        std::memcpy(out + static_cast<size_t>(i) * sizeof value, &value, sizeof value);
      }
    });
  });
}

void fill_integers(uint8_t* out, DType dtype, int64_t count, int64_t value) {
  with_integer(dtype, [&]<class T>(T) {
    const T one = static_cast<T>(value);
    for (int64_t i = 0; i < count; ++i) {
      std::memcpy(out + static_cast<size_t>(i) * sizeof one, &one, sizeof one);
    }
  });
}

void make_native(std::span<uint8_t> bytes, DType dtype, bool big_endian) {
  if (dtype == DType::kBool) {  // any value except 0 and 1 would be invalid for the type
    for (uint8_t& byte : bytes) byte = byte != 0;
  }
  if (!big_endian) return;
  if (size_of(dtype) == 2) swap_words<uint16_t>(bytes);
  if (size_of(dtype) == 4) swap_words<uint32_t>(bytes);
  if (size_of(dtype) == 8) swap_words<uint64_t>(bytes);
}

void move_channels_first(const uint8_t* in, const Shape& shape, size_t element_bytes,
                         uint8_t* out) {
  const auto channels = static_cast<size_t>(shape[0]);
  const auto pixels = static_cast<size_t>(shape[1] * shape[2]);
  switch (element_bytes) {
    case 1:
      return planes_from_bytes(in, out, pixels, channels);
    case 2:
      return planes_from_pixels<uint16_t>(in, out, 0, pixels, channels);
    case 4:
      return planes_from_pixels<uint32_t>(in, out, 0, pixels, channels);
    default:
      return planes_from_pixels<uint64_t>(in, out, 0, pixels, channels);
  }
}

}  // namespace headrace
