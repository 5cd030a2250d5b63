// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <bit>

#include "headrace/codecs/image/jpeg/parts/remainder.h"
#include "headrace/codecs/image/jpeg/parts/remainder_form.h"
#include "headrace/codecs/image/jpeg/parts/segments.h"
#include "headrace/codecs/image/jpeg/parts/tables.h"

namespace headrace {
namespace {

using namespace remainder_form;
using namespace jpeg_marker;
using Bytes = std::span<const uint8_t>;

// Bytes of a DHT table at the start of a body, which JpegSegments has validated.
size_t huffman_bytes(Bytes body) {
  size_t bytes = 17;
  for (int i = 1; i <= 16; ++i) bytes += body[i];
  return bytes;
}

}  // namespace

RemainderWriter::RemainderWriter(const JpegFrame& frame) : frame_(frame) { out_ = {kVersion}; }

void RemainderWriter::number(uint64_t value) {
  for (; value >= 128; value >>= 7) out_.push_back(uint8_t(value | 128));
  out_.push_back(uint8_t(value));
}

void RemainderWriter::signed_number(int64_t value) {
  number(uint64_t(value) << 1 ^ uint64_t(value >> 63));
}

void RemainderWriter::edge_blocks(int c, BlocksOf<CoefficientPlane>& blocks, bool sent) {
  std::vector<uint8_t> before = std::move(out_);
  out_.clear();
  size_t next = 0, count = 0;
  const auto compare = [&](size_t ordinal, const int16_t* block, int16_t predicted) {
    const auto others = std::count_if(block + 1, block + 64, [](int16_t v) { return v != 0; });
    if (block[0] == predicted && others == 0) return;
    number(ordinal - next);
    next = ordinal + 1;
    ++count;
    signed_number(block[0] - predicted);
    number(size_t(others));
    for (uint8_t k = 1; k < 64; ++k) {
      const int value = block[kNaturalFromZigzag[k]];
      if (value == 0) continue;
      out_.push_back(k);
      signed_number(value);
    }
  };
  if (sent) for_each_edge_block(frame_, c, blocks, compare);
  const std::vector<uint8_t> list = std::move(out_);
  out_ = std::move(edges_);
  number(count);
  bytes(list);
  edges_ = std::move(out_);
  out_ = std::move(before);
  has_edges_ = has_edges_ || count > 0;
  if (c + 1 < frame_.count || !has_edges_) return;
  out_.push_back(kEdgeBlocks);
  bytes(edges_);
}

void RemainderWriter::begin(int code, size_t fill) {
  if (fill > 0) {
    out_.push_back(kFill);
    number(fill);
  }
  out_.push_back(uint8_t(code));
}

void RemainderWriter::marker(int code, size_t fill) { begin(code, fill); }

void RemainderWriter::segment(int code, size_t fill, Bytes body) {
  if (code == kApp0 && std::ranges::equal(body, kJfifBody)) return begin(kJfif, fill);
  begin(code, fill);
  switch (code) {
    case kSof0:
    case kSof1:
    case kSof2:
      return frame_header(body);
    case kDht:
      return huffman_tables(body);
    case kDqt:
      return quantization_tables(body);
    default:
      number(body.size());
      bytes(body);
  }
}

void RemainderWriter::frame_header(Bytes body) {
  const bool usual = std::ranges::equal(body, default_frame_header(frame_));
  out_.push_back(!usual);
  if (!usual) bytes(body.subspan(6));
}

void RemainderWriter::huffman_tables(Bytes body) {
  size_t count = 0;
  for (Bytes rest = body; !rest.empty(); rest = rest.subspan(huffman_bytes(rest))) ++count;
  number(count);
  while (!body.empty()) {
    const size_t size = huffman_bytes(body);
    const Bytes table = body.subspan(1, size - 1);
    const auto standard = std::ranges::find_if(kStandardSpecs, [&](const HuffmanSpec& spec) {
      return std::ranges::equal(huffman_body(spec), table);
    });
    const int source = standard == kStandardSpecs.end()
                           ? kExplicitTable
                           : int(standard - kStandardSpecs.begin()) + 1;
    out_.push_back(uint8_t(source << 3 | (body[0] >> 4) << 2 | (body[0] & 15)));
    if (source == kExplicitTable) bytes(table);
    body = body.subspan(size);
  }
}

void RemainderWriter::quantization_tables(Bytes body) {
  size_t count = 0;
  for (Bytes rest = body; !rest.empty(); rest = rest.subspan(rest[0] >> 4 ? 129 : 65)) ++count;
  number(count);
  while (!body.empty()) {
    const bool wide = body[0] >> 4;
    const Bytes table = body.subspan(1, wide ? 128 : 64);
    int source = kExplicitTable;
    for (int c = frame_.count; c-- > 0;) {
      const auto same = quantization_body(frame_.component[c].quantization, wide);
      if (std::ranges::equal(same, table)) source = c + 1;
    }
    out_.push_back(uint8_t(source << 3 | wide << 2 | (body[0] & 15)));
    if (source == kExplicitTable) bytes(table);
    body = body.subspan(table.size() + 1);
  }
}

void RemainderWriter::scan(size_t fill, Bytes header, const ScanChoices& choices) {
  begin(kSos, fill);
  const bool usual = std::ranges::equal(header, default_scan_header(frame_));
  uint8_t flags = usual ? 0 : kOwnHeader;
  if (choices.padding == ScanChoices::kZeros) flags |= kZeroPadding;
  if (choices.padding == ScanChoices::kListed) flags |= kListedPadding;
  if (!choices.run_breaks.empty()) flags |= kRunBreaks;
  out_.push_back(flags);
  if (!usual) bytes(header);
  if (flags & kListedPadding) {
    number(choices.listed.size());
    bytes(choices.listed);
  }
  if (flags & kRunBreaks) {
    number(choices.run_breaks.size());
    uint32_t next = 0;
    for (const uint32_t block : choices.run_breaks) {
      number(block - next);
      next = block + 1;
    }
  }
}

void RemainderWriter::end(size_t fill, Bytes after) {
  begin(kEoi, fill);
  bytes(after);
}

}  // namespace headrace
