// SPDX-License-Identifier: Apache-2.0
#include "headrace/storage/remote/sha256.h"

#include <dlfcn.h>

#include <bit>
#include <cstring>

#include "headrace/base/text.h"

namespace headrace {
namespace {

constexpr size_t kBlock = 64;

constexpr std::array<uint32_t, 64> kRounds = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

using State = std::array<uint32_t, 8>;

void add_block(const uint8_t* block, State& state) {
  std::array<uint32_t, 64> words;
  for (size_t i = 0; i < 16; ++i) {
    words[i] = uint32_t{block[4 * i]} << 24 | uint32_t{block[4 * i + 1]} << 16 |
               uint32_t{block[4 * i + 2]} << 8 | block[4 * i + 3];
  }
  for (size_t i = 16; i < 64; ++i) {
    const uint32_t a = words[i - 15], b = words[i - 2];
    words[i] = words[i - 16] + (std::rotr(a, 7) ^ std::rotr(a, 18) ^ (a >> 3)) + words[i - 7] +
               (std::rotr(b, 17) ^ std::rotr(b, 19) ^ (b >> 10));
  }
  auto [a, b, c, d, e, f, g, h] = state;
  for (size_t i = 0; i < 64; ++i) {
    const uint32_t first = h + (std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25)) +
                           ((e & f) ^ (~e & g)) + kRounds[i] + words[i];
    const uint32_t second =
        (std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));
    h = g, g = f, f = e, e = d + first, d = c, c = b, b = a, a = first + second;
  }
  const State added = {a, b, c, d, e, f, g, h};
  for (size_t i = 0; i < 8; ++i) state[i] += added[i];
}

void add_blocks(const uint8_t* blocks, size_t count, State& state) {
  for (size_t i = 0; i < count; ++i) add_block(blocks + i * kBlock, state);
}

constexpr State kBegin = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                          0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};

// The same with libcrypto, which uses the processor's SHA instructions and has usually been loaded
// by libcurl anyway. Relies on SHA256_CTX beginning with the state, which is verified once.
class Library {
 public:
  static void (*blocks())(const uint8_t*, size_t, State&) {
    static const bool works = library().works();
    return works ? &Library::add : &add_blocks;
  }

 private:
  struct Context {
    State state;
    std::array<uint32_t, 56> rest;  // SHA256_CTX has 20 words after the state
  };
  static const Library& library() {
    static const Library* const one = new Library;
    return *one;
  }
  Library() {
    void* const opened = dlopen("libcrypto.so.3", RTLD_NOW | RTLD_LOCAL);
    if (!opened) return;
    begin_ = reinterpret_cast<int (*)(Context*)>(dlsym(opened, "SHA256_Init"));
    add_ = reinterpret_cast<int (*)(Context*, const void*, size_t)>(dlsym(opened, "SHA256_Update"));
  }
  bool works() const {
    if (!begin_ || !add_) return false;
    std::array<uint8_t, 2 * kBlock> text{};
    for (size_t i = 0; i < text.size(); ++i) text[i] = static_cast<uint8_t>(7 * i);
    State ours = kBegin, its = kBegin;
    for (State* state : {&ours, &its}) {
      (state == &ours ? &add_blocks : &Library::add)(text.data(), 2, *state);
      (state == &ours ? &add_blocks : &Library::add)(text.data(), 1, *state);
    }
    return ours == its;
  }
  static void add(const uint8_t* blocks, size_t count, State& state) {
    Context context;
    (void)library().begin_(&context);
    context.state = state;
    (void)library().add_(&context, blocks, count * kBlock);
    state = context.state;
  }

  int (*begin_)(Context*) = nullptr;
  int (*add_)(Context*, const void*, size_t) = nullptr;
};

// Hashes a text whose first `before` bytes, whole blocks, are already in the state.
Sha256 finished(State state, std::string_view text, uint64_t before) {
  const auto add = Library::blocks();
  const auto* data = reinterpret_cast<const uint8_t*>(text.data());
  const size_t blocks = text.size() / kBlock, left = text.size() % kBlock;
  if (blocks > 0) add(data, blocks, state);
  std::array<uint8_t, 2 * kBlock> last{};
  if (left > 0) std::memcpy(last.data(), data + blocks * kBlock, left);
  last[left] = 0x80;
  const size_t end = left + 9 <= kBlock ? kBlock : 2 * kBlock;
  const uint64_t bits = (before + text.size()) * 8;
  for (size_t i = 0; i < 8; ++i) last[end - 1 - i] = static_cast<uint8_t>(bits >> (8 * i));
  add(last.data(), end / kBlock, state);
  Sha256 out;
  for (size_t i = 0; i < out.size(); ++i) {
    out[i] = static_cast<uint8_t>(state[i / 4] >> (24 - 8 * (i % 4)));
  }
  return out;
}

}  // namespace

Sha256 sha256(std::string_view text) { return finished(kBegin, text, 0); }

HmacSha256::HmacSha256(std::span<const uint8_t> key) : inner_(kBegin), outer_(kBegin) {
  std::array<uint8_t, kBlock> padded{}, inner, outer;
  if (key.size() > kBlock) {
    const Sha256 shorter = sha256(text_from_bytes(key));
    std::memcpy(padded.data(), shorter.data(), shorter.size());
  } else if (!key.empty()) {
    std::memcpy(padded.data(), key.data(), key.size());
  }
  for (size_t i = 0; i < kBlock; ++i) {
    inner[i] = padded[i] ^ 0x36;
    outer[i] = padded[i] ^ 0x5c;
  }
  Library::blocks()(inner.data(), 1, inner_);
  Library::blocks()(outer.data(), 1, outer_);
}

Sha256 HmacSha256::operator()(std::string_view text) const {
  return finished(outer_, text_from_bytes(finished(inner_, text, kBlock)), kBlock);
}

std::string hex(std::span<const uint8_t> bytes) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string out;
  out.reserve(2 * bytes.size());
  for (const uint8_t byte : bytes) {
    out += kDigits[byte >> 4];
    out += kDigits[byte & 15];
  }
  return out;
}

}  // namespace headrace
