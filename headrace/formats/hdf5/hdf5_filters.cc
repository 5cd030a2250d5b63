// SPDX-License-Identifier: Apache-2.0
#include <isa-l/igzip_lib.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>

#include "headrace/base/buffer.h"
#include "headrace/formats/hdf5/hdf5_checksum.h"
#include "headrace/formats/hdf5/hdf5_dataset.h"

namespace headrace {
namespace {

constexpr size_t kChecksumBytes = 4;
constexpr size_t kKeptScratch = size_t{8} << 20;  // kept per thread between chunks

// --- deflate: a zlib stream
// ------------------------------------------------------------------------

// Uses ISA-L: a chunk's size is known, and it inflates large ones two to three times as fast as
// zlib. Returns the number of bytes. None: the stream is damaged, or longer.
std::optional<size_t> inflate(std::span<const uint8_t> in, std::span<uint8_t> out) {
  thread_local const std::unique_ptr<inflate_state> state = std::make_unique<inflate_state>();
  if (in.size() > UINT32_MAX || out.size() > UINT32_MAX) return {};
  isal_inflate_init(state.get());
  state->next_in = const_cast<uint8_t*>(in.data());
  state->avail_in = static_cast<uint32_t>(in.size());
  state->next_out = out.data();
  state->avail_out = static_cast<uint32_t>(out.size());
  state->crc_flag = ISAL_ZLIB;  // verifies the checksum
  if (isal_inflate_stateless(state.get()) != ISAL_DECOMP_OK ||
      state->block_state != ISAL_BLOCK_FINISH) {
    return {};
  }
  return out.size() - state->avail_out;
}

// --- lzf: LibLZF, as included with h5py
// ------------------------------------------------------------

// A control byte below 32 is followed by that many literal bytes plus one; others copy from earlier
// output: three bits of length, thirteen of distance.
std::optional<size_t> unpack_lzf(std::span<const uint8_t> in, std::span<uint8_t> out) {
  size_t from = 0, to = 0;
  while (from < in.size()) {
    const unsigned control = in[from++];
    if (control < 32) {
      const size_t count = control + 1;
      if (count > in.size() - from || count > out.size() - to) return {};
      std::memcpy(out.data() + to, in.data() + from, count);
      from += count, to += count;
      continue;
    }
    size_t count = control >> 5;
    if (count == 7) {
      if (from == in.size()) return {};
      count += in[from++];
    }
    count += 2;
    if (from == in.size()) return {};
    const size_t distance = ((control & 31) << 8 | in[from++]) + 1;
    if (distance > to || count > out.size() - to) return {};
    for (size_t i = 0; i < count; ++i, ++to) out[to] = out[to - distance];
  }
  return to;
}

// --- shuffle: first bytes of all elements, then second bytes, ...
// ----------------------------------

template <size_t kBytes>
void unshuffle_elements(const uint8_t* in, size_t count, uint8_t* out) {
  for (size_t i = 0; i < count; ++i) {
    for (size_t byte = 0; byte < kBytes; ++byte) out[i * kBytes + byte] = in[byte * count + i];
  }
}

void unshuffle(std::span<const uint8_t> in, size_t element_bytes, std::span<uint8_t> out) {
  const size_t count = in.size() / element_bytes;
  if (element_bytes == 2) {
    unshuffle_elements<2>(in.data(), count, out.data());
  } else if (element_bytes == 4) {
    unshuffle_elements<4>(in.data(), count, out.data());
  } else if (element_bytes == 8) {
    unshuffle_elements<8>(in.data(), count, out.data());
  } else {
    for (size_t byte = 0; byte < element_bytes; ++byte) {
      for (size_t i = 0; i < count; ++i) out[i * element_bytes + byte] = in[byte * count + i];
    }
  }
  const size_t whole = count * element_bytes;  // trailing bytes that are not a whole element stay
                                               // in place
  std::copy(in.begin() + static_cast<ptrdiff_t>(whole), in.end(),
            out.begin() + static_cast<ptrdiff_t>(whole));
}

// --- fletcher32: a checksum after the data
// --------------------------------------------------------

bool has_its_checksum(std::span<const uint8_t> stored) {
  if (stored.size() < kChecksumBytes) return false;
  uint32_t said = 0;
  std::memcpy(&said, stored.last(kChecksumBytes).data(), sizeof said);
  const uint32_t sum = hdf5_fletcher32(stored.first(stored.size() - kChecksumBytes));
  // Files of versions up to 1.6.2 have each half's bytes swapped.
  const uint32_t swapped = (sum & 0x00FF00FF) << 8 | (sum >> 8 & 0x00FF00FF);
  return said == sum || said == swapped;
}

struct Scratch {
  Buffer buffers[2];
  std::span<uint8_t> get(int which, size_t bytes) {
    buffers[which].resize(bytes);
    return {buffers[which].data(), bytes};
  }
  ~Scratch() = default;
  void shrink() {
    for (Buffer& buffer : buffers) {
      if (buffer.capacity() > kKeptScratch) buffer.free();
    }
  }
};

}  // namespace

std::string unknown_hdf5_filter(const std::vector<Hdf5Filter>& filters) {
  for (const Hdf5Filter& filter : filters) {
    switch (filter.id) {
      case Hdf5Filter::kDeflate:
      case Hdf5Filter::kShuffle:
      case Hdf5Filter::kFletcher32:
      case Hdf5Filter::kLzf:
        break;
      default:
        return name_of(filter);
    }
  }
  return {};
}

std::string undo_hdf5_filters(const std::vector<Hdf5Filter>& filters, uint32_t mask,
                              size_t element_bytes, std::span<const uint8_t> stored,
                              std::span<uint8_t> out) {
  thread_local Scratch scratch;
  const auto is_applied = [&](size_t i) { return i >= 32 || (mask >> i & 1) == 0; };
  size_t first = filters.size();  // shuffle filters
  for (size_t i = filters.size(); i-- > 0;) {
    if (is_applied(i) && filters[i].id != Hdf5Filter::kFletcher32) first = i;
  }
  // If a checksum was compressed with the data, it is decompressed before it is removed.
  const auto room_at = [&](size_t filter) {
    size_t room = out.size();
    for (size_t i = 0; i < filter; ++i) {
      if (is_applied(i) && filters[i].id == Hdf5Filter::kFletcher32) room += kChecksumBytes;
    }
    return room;
  };
  std::span<const uint8_t> now = stored;
  int which = 0;
  std::string wrong;
  for (size_t i = filters.size(); i-- > 0 && wrong.empty();) {
    if (!is_applied(i)) continue;
    const Hdf5Filter& filter = filters[i];
    if (filter.id == Hdf5Filter::kFletcher32) {
      if (!has_its_checksum(now)) wrong = "the checksum of a chunk is wrong (fletcher32)";
      if (wrong.empty()) now = now.first(now.size() - kChecksumBytes);
      continue;
    }
    const size_t room = room_at(i);
    const bool last = i == first && room == out.size();
    if (filter.id == Hdf5Filter::kShuffle) {
      const size_t bytes = filter.values.empty() ? element_bytes : filter.values[0];
      if (now.size() > room) {
        wrong = "a chunk has more bytes than its shape";
      } else if (bytes > 1) {
        const std::span<uint8_t> to = last && now.size() <= out.size()
                                          ? out.first(now.size())
                                          : scratch.get(which, now.size());
        unshuffle(now, bytes, to);
        now = to, which ^= 1;
      }
      continue;
    }
    const std::span<uint8_t> to = last ? out : scratch.get(which, room);
    const bool deflate = filter.id == Hdf5Filter::kDeflate;
    const std::optional<size_t> bytes = deflate ? inflate(now, to) : unpack_lzf(now, to);
    if (!bytes) {
      wrong = deflate ? "a chunk's deflate stream is damaged" : "a chunk's lzf stream is damaged";
    } else {
      now = to.first(*bytes), which ^= 1;
    }
  }
  if (wrong.empty() && now.size() != out.size()) {
    wrong = "a chunk has " + std::to_string(now.size()) + " bytes after its filters, but " +
            std::to_string(out.size()) + " according to its shape";
  }
  if (wrong.empty() && now.data() != out.data()) std::memcpy(out.data(), now.data(), now.size());
  scratch.shrink();
  return wrong;
}

}  // namespace headrace
