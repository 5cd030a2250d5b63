// SPDX-License-Identifier: Apache-2.0
// Word operations of kernels: one instruction each on a GPU, elsewhere the scalar reference.
#pragma once

#include <cstdint>
#include <cstring>

#include "headrace/base/host_device_function.h"

namespace headrace::words {

// Several adjacent words, loaded and stored at once.
template <int count>
struct alignas(4 * count) Together {
  uint32_t word[count];
};

#ifdef __CUDA_ARCH__

// The upper word of high:low << by.
HEADRACE_HD inline uint32_t shifted_in(uint32_t low, uint32_t high, uint32_t by) {
  return __funnelshift_l(low, high, by);  // by the low five bits of `by`
}
HEADRACE_HD inline uint32_t swapped(uint32_t word) { return __byte_perm(word, 0, 0x0123); }
HEADRACE_HD inline uint32_t byte_of(uint32_t word, int i) {
  return __byte_perm(word, 0, 0x4440 + i);
}
// ~(a ^ b) in one instruction; the compiler would use two.
HEADRACE_HD inline uint32_t same_bits(uint32_t a, uint32_t b) {
  uint32_t same;
  asm("lop3.b32 %0, %1, %2, 0, 0xc3;" : "=r"(same) : "r"(a), "r"(b));
  return same;
}
// Two values, saturated to 16 bits each, the first in the low half.
HEADRACE_HD inline uint32_t saturated_pair(int32_t low, int32_t high) {
  uint32_t pair;
  asm("cvt.pack.sat.s16.s32 %0, %1, %2;" : "=r"(pair) : "r"(high), "r"(low));
  return pair;
}
// Four values, saturated to signed bytes, the first in the lowest byte.
HEADRACE_HD inline uint32_t saturated_bytes(int32_t a, int32_t b, int32_t c, int32_t d) {
  uint32_t two, four;
  asm("cvt.pack.sat.s8.s32.b32 %0, %1, %2, %3;" : "=r"(two) : "r"(d), "r"(c), "r"(0));
  asm("cvt.pack.sat.s8.s32.b32 %0, %1, %2, %3;" : "=r"(four) : "r"(b), "r"(a), "r"(two));
  return four;
}
// The same, to unsigned bytes.
HEADRACE_HD inline uint32_t clamped_bytes(int32_t a, int32_t b, int32_t c, int32_t d) {
  uint32_t two, four;
  asm("cvt.pack.sat.u8.s32.b32 %0, %1, %2, %3;" : "=r"(two) : "r"(d), "r"(c), "r"(0));
  asm("cvt.pack.sat.u8.s32.b32 %0, %1, %2, %3;" : "=r"(four) : "r"(b), "r"(a), "r"(two));
  return four;
}
// Selects four of the eight bytes of high:low. The low three bits of each nibble of `which` are the
// index of a byte.
HEADRACE_HD inline uint32_t chosen_bytes(uint32_t low, uint32_t high, uint32_t which) {
  return __byte_perm(low, high, which);
}
// The lowest bytes of four words, the first in the lowest byte.
HEADRACE_HD inline uint32_t lowest_bytes(uint32_t a, uint32_t b, uint32_t c, uint32_t d) {
  return __byte_perm(__byte_perm(a, b, 0x0040), __byte_perm(c, d, 0x0040), 0x5410);
}
// The address of words[i] in one instruction; the compiler would use two.
HEADRACE_HD inline const uint32_t* word_at(const uint8_t* words, uint32_t i) {
  uint64_t address;
  asm("mad.wide.u32 %0, %1, 4, %2;" : "=l"(address) : "r"(i), "l"(words));
  return reinterpret_cast<const uint32_t*>(address);
}
// sum + the dot product of four unsigned bytes with four bytes that may be signed.
HEADRACE_HD inline uint32_t dot4(uint32_t bytes, uint32_t by, uint32_t sum) {
  asm("dp4a.u32.u32 %0, %1, %2, %3;" : "=r"(sum) : "r"(bytes), "r"(by), "r"(sum));
  return sum;
}
HEADRACE_HD inline uint32_t dot4_signed(uint32_t bytes, uint32_t by, uint32_t sum) {
  asm("dp4a.u32.s32 %0, %1, %2, %3;" : "=r"(sum) : "r"(bytes), "r"(by), "r"(sum));
  return sum;
}
// sum + the dot product of the two lower or upper unsigned bytes with two 16-bit halves.
template <bool upper>
HEADRACE_HD inline uint32_t dot2(uint32_t by, uint32_t bytes, uint32_t sum) {
  if constexpr (upper) {
    asm("dp2a.hi.u32.u32 %0, %1, %2, %3;" : "=r"(sum) : "r"(by), "r"(bytes), "r"(sum));
  } else {
    asm("dp2a.lo.u32.u32 %0, %1, %2, %3;" : "=r"(sum) : "r"(by), "r"(bytes), "r"(sum));
  }
  return sum;
}
template <bool upper>
HEADRACE_HD inline uint32_t dot2_signed(uint32_t by, uint32_t bytes, uint32_t sum) {
  if constexpr (upper) {
    asm("dp2a.hi.s32.u32 %0, %1, %2, %3;" : "=r"(sum) : "r"(by), "r"(bytes), "r"(sum));
  } else {
    asm("dp2a.lo.s32.u32 %0, %1, %2, %3;" : "=r"(sum) : "r"(by), "r"(bytes), "r"(sum));
  }
  return sum;
}
template <int count>
HEADRACE_HD inline Together<count> load(const void* from) {
  return *static_cast<const Together<count>*>(from);
}
template <int count>
HEADRACE_HD inline void store(void* to, const Together<count>& stored) {
  *static_cast<Together<count>*>(to) = stored;
}
// Sets a flag that other threads may set at the same time.
HEADRACE_HD inline void raise(uint8_t* flag) { *static_cast<volatile uint8_t*>(flag) = 1; }
// Adds to a value that other threads may add to at the same time.
HEADRACE_HD inline void add(uint32_t* to, uint32_t more) { atomicAdd(to, more); }
// to[i] = value if no bit of `bits` is set; without a branch, and without the second pair of
// address registers that the compiler would use.
HEADRACE_HD inline void store_unless(uint32_t bits, int16_t* to, uint32_t i, uint16_t value) {
  asm volatile(
      "{\n\t"
      ".reg .pred p;\n\t"
      ".reg .u64 at;\n\t"
      "setp.eq.u32 p, %0, 0;\n\t"
      "mad.wide.u32 at, %1, 2, %2;\n\t"
      "@p st.global.u16 [at], %3;\n\t"
      "}"
      :
      : "r"(bits), "r"(i), "l"(__cvta_generic_to_global(to)), "h"(value));
}

#else

HEADRACE_HD inline uint32_t shifted_in(uint32_t low, uint32_t high, uint32_t by) {
  by &= 31;
  return by ? high << by | low >> (32 - by) : high;
}
HEADRACE_HD inline uint32_t swapped(uint32_t word) { return __builtin_bswap32(word); }
HEADRACE_HD inline uint32_t byte_of(uint32_t word, int i) { return word >> 8 * i & 255; }
HEADRACE_HD inline uint32_t same_bits(uint32_t a, uint32_t b) { return ~(a ^ b); }
HEADRACE_HD inline int32_t clamped(int32_t value, int32_t low, int32_t high) {
  return value < low ? low : value > high ? high : value;
}
HEADRACE_HD inline uint32_t saturated_pair(int32_t low, int32_t high) {
  return (static_cast<uint32_t>(clamped(low, -32768, 32767)) & 0xffff) |
         static_cast<uint32_t>(clamped(high, -32768, 32767)) << 16;
}
HEADRACE_HD inline uint32_t saturated_bytes(int32_t a, int32_t b, int32_t c, int32_t d) {
  const auto byte = [](int32_t value, int at) {
    return (static_cast<uint32_t>(clamped(value, -128, 127)) & 255) << at;
  };
  return byte(a, 0) | byte(b, 8) | byte(c, 16) | byte(d, 24);
}
HEADRACE_HD inline uint32_t clamped_bytes(int32_t a, int32_t b, int32_t c, int32_t d) {
  const auto byte = [](int32_t value, int at) {
    return static_cast<uint32_t>(clamped(value, 0, 255)) << at;
  };
  return byte(a, 0) | byte(b, 8) | byte(c, 16) | byte(d, 24);
}
HEADRACE_HD inline uint32_t chosen_bytes(uint32_t low, uint32_t high, uint32_t which) {
  const uint64_t both = uint64_t{high} << 32 | low;
  uint32_t chosen = 0;
  for (int i = 0; i < 4; ++i) chosen |= (both >> 8 * (which >> 4 * i & 7) & 255) << 8 * i;
  return chosen;
}
HEADRACE_HD inline uint32_t lowest_bytes(uint32_t a, uint32_t b, uint32_t c, uint32_t d) {
  return (a & 255) | (b & 255) << 8 | (c & 255) << 16 | d << 24;
}
HEADRACE_HD inline const uint32_t* word_at(const uint8_t* words, uint32_t i) {
  return reinterpret_cast<const uint32_t*>(words) + i;
}
HEADRACE_HD inline uint32_t dot4(uint32_t bytes, uint32_t by, uint32_t sum) {
  for (int i = 0; i < 4; ++i) sum += byte_of(bytes, i) * byte_of(by, i);
  return sum;
}
HEADRACE_HD inline uint32_t dot4_signed(uint32_t bytes, uint32_t by, uint32_t sum) {
  for (int i = 0; i < 4; ++i) {
    sum += byte_of(bytes, i) * static_cast<uint32_t>(static_cast<int8_t>(byte_of(by, i)));
  }
  return sum;
}
template <bool upper>
HEADRACE_HD inline uint32_t dot2(uint32_t by, uint32_t bytes, uint32_t sum) {
  return sum + (by & 0xffff) * byte_of(bytes, 2 * upper) +
         (by >> 16) * byte_of(bytes, 2 * upper + 1);
}
template <bool upper>
HEADRACE_HD inline uint32_t dot2_signed(uint32_t by, uint32_t bytes, uint32_t sum) {
  const auto half = [](uint32_t bits) {
    return static_cast<uint32_t>(static_cast<int16_t>(static_cast<uint16_t>(bits)));
  };
  return sum + half(by) * byte_of(bytes, 2 * upper) +
         half(by >> 16) * byte_of(bytes, 2 * upper + 1);
}
template <int count>
HEADRACE_HD inline Together<count> load(const void* from) {
  Together<count> loaded;
  std::memcpy(&loaded, __builtin_assume_aligned(from, 4 * count), sizeof(loaded));
  return loaded;
}
template <int count>
HEADRACE_HD inline void store(void* to, const Together<count>& stored) {
  std::memcpy(__builtin_assume_aligned(to, 4 * count), &stored, sizeof(stored));
}
HEADRACE_HD inline void raise(uint8_t* flag) {
  __atomic_store_n(flag, uint8_t{1}, __ATOMIC_RELAXED);
}
HEADRACE_HD inline void add(uint32_t* to, uint32_t more) {
  __atomic_fetch_add(to, more, __ATOMIC_RELAXED);
}
HEADRACE_HD inline void store_unless(uint32_t bits, int16_t* to, uint32_t i, uint16_t value) {
  if (bits == 0) to[i] = static_cast<int16_t>(value);
}

#endif

// The low and the high half of a word, sign-extended.
HEADRACE_HD inline int32_t low_half(uint32_t word) {
  return static_cast<int16_t>(static_cast<uint16_t>(word));
}
HEADRACE_HD inline int32_t high_half(uint32_t word) { return static_cast<int32_t>(word) >> 16; }

}  // namespace headrace::words
