// SPDX-License-Identifier: Apache-2.0
// Compressed bytes as hostile input. The libraries are not instrumented, so their input and output
// are between inaccessible pages; the result must not depend on the sizes of input and output
// pieces.
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <string>

#include "headrace/storage/unpacker.h"

namespace headrace {
namespace {

constexpr size_t kMaxOut = size_t{4} << 20;

// Memory between two inaccessible pages.
class Guarded {
 public:
  explicit Guarded(size_t bytes) : mapped_((bytes + kPage - 1) / kPage * kPage + 2 * kPage) {
    void* at = ::mmap(nullptr, mapped_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED) std::abort();
    begin_ = static_cast<uint8_t*>(at);
    end_ = begin_ + mapped_ - kPage;
    for (uint8_t* page : {begin_, end_}) {
      if (::mprotect(page, kPage, PROT_NONE) != 0) std::abort();
    }
  }
  ~Guarded() { ::munmap(begin_, mapped_); }
  Guarded(const Guarded&) = delete;
  Guarded& operator=(const Guarded&) = delete;
  std::span<uint8_t> last(size_t bytes) { return {end_ - bytes, bytes}; }

 private:
  static constexpr size_t kPage = 4096;
  size_t mapped_;
  uint8_t *begin_, *end_;
};

struct Outcome {
  std::string plain;
  bool good = true, ended = false;
};

Outcome unpack(std::span<const uint8_t> packed, Packing packing, size_t in_piece,
               size_t out_piece) {
  static Guarded in_memory(1 << 20), out_memory(1 << 20);
  const std::unique_ptr<Unpacker> unpacker = Unpacker::make(packing);
  Outcome outcome;
  for (size_t at = 0; outcome.good && outcome.plain.size() < kMaxOut;) {
    const size_t count = std::min(in_piece, packed.size() - at);
    const std::span<uint8_t> in = in_memory.last(count), out = out_memory.last(out_piece);
    if (count > 0) std::memcpy(in.data(), packed.data() + at, count);
    const Unpacker::Step step = unpacker->run(in, out);
    if (step.consumed > count || step.produced > out.size()) std::abort();
    outcome.plain.append(reinterpret_cast<const char*>(out.data()), step.produced);
    at += step.consumed;
    outcome.good = step.result.has_value();
    outcome.ended = step.ended;
    if (step.ended) {
      if (at == packed.size()) break;
      unpacker->restart();
    } else if (step.consumed == 0 && step.produced == 0) {
      break;
    }
  }
  return outcome;
}

}  // namespace
}  // namespace headrace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace headrace;
  if (size < 3 || size > (1 << 20)) return 0;
  constexpr Packing kPackings[] = {Packing::kGzip, Packing::kZlib, Packing::kZstd};
  const Packing packing = kPackings[data[0] % 3];
  const std::span<const uint8_t> packed(data + 3, size - 3);
  const Outcome whole = unpack(packed, packing, size_t{1} << 20, size_t{1} << 20);
  const Outcome pieces = unpack(packed, packing, data[1] + size_t{1}, data[2] * 16 + size_t{1});
  if (std::max(whole.plain.size(), pieces.plain.size()) >= kMaxOut) return 0;
  // Damaged input may yield more or fewer bytes before the damage is detected, but never different
  // ones; truncation counts as damage.
  const bool sound = whole.good && whole.ended;
  if (sound != (pieces.good && pieces.ended)) std::abort();
  const size_t both = std::min(whole.plain.size(), pieces.plain.size());
  if (whole.plain.compare(0, both, pieces.plain, 0, both) != 0) std::abort();
  if (sound && whole.plain.size() != pieces.plain.size()) std::abort();
  return 0;
}
