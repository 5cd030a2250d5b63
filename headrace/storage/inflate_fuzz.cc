// SPDX-License-Identifier: Apache-2.0
// Deflate as hostile input, in each wrapper format: all at once, into buffers that are too small or
// too large, and piece by piece. Each way gives the same bytes, or none.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "headrace/storage/inflate.h"

namespace {

using namespace headrace;

constexpr InflateLimits kLimits{.max_bytes = 1 << 20, .max_ratio = 64};

// Inflates one stream in pieces. None if it is damaged, unfinished, or larger than the cap.
bool in_pieces(std::span<const uint8_t> in, DeflateWrap wrap, size_t give, size_t take,
               std::vector<uint8_t>& out) {
  Inflater inflater(wrap);
  std::vector<uint8_t> room(take);
  for (;;) {
    const Result<Inflater::Step> step = inflater.run(in.first(std::min(give, in.size())), room);
    if (!step) return false;
    if (step->consumed > in.size() || step->produced > room.size()) std::abort();
    out.insert(out.end(), room.begin(), room.begin() + static_cast<ptrdiff_t>(step->produced));
    in = in.subspan(step->consumed);
    if (step->ended) return in.empty();
    if (out.size() > kLimits.max_bytes) return false;
    if (step->consumed == 0 && step->produced == 0) return false;
  }
}

// A buffer of exactly the right size is filled; a size that is a byte off is an error.
void into_places(std::span<const uint8_t> in, DeflateWrap wrap, std::span<const uint8_t> expected) {
  for (const size_t size : {expected.size() - 1, expected.size(), expected.size() + 1}) {
    if (size == SIZE_MAX) continue;
    std::vector<uint8_t> out(size);
    const bool good = inflate_into(in, wrap, out).has_value();
    if (good != (size == expected.size())) std::abort();
    if (good && !std::ranges::equal(out, expected)) std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 3) return 0;
  constexpr DeflateWrap kWraps[] = {DeflateWrap::kNone, DeflateWrap::kZlib, DeflateWrap::kGzip};
  const DeflateWrap wrap = kWraps[data[0] % 3];
  const std::span<const uint8_t> in(data + 3, size - 3);
  Buffer all;
  const Result<void> whole = inflate_bytes(in, wrap, kLimits, all);
  if (whole && all.size() > kLimits.most(in.size())) std::abort();
  std::vector<uint8_t> pieces;
  const bool one = in_pieces(in, wrap, data[1] + size_t{1}, data[2] * 16 + size_t{1}, pieces);
  if (one && pieces.size() <= kLimits.most(in.size())) {
    if (!whole || !std::ranges::equal(pieces, all.bytes())) std::abort();
    into_places(in, wrap, pieces);
  }
  return 0;
}
