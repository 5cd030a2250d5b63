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

}  // namespace

bool RemainderReader::byte(uint8_t& value) {
  if (in_.empty()) return false;
  value = in_[0];
  in_ = in_.subspan(1);
  return true;
}

bool RemainderReader::number(uint64_t& value) {
  value = 0;
  for (int shift = 0; shift < 63; shift += 7) {
    uint8_t next = 0;
    if (!byte(next)) return false;
    value |= uint64_t(next & 127) << shift;
    if (next < 128) return true;
  }
  return false;
}

bool RemainderReader::signed_number(int& value) {
  uint64_t coded = 0;
  if (!number(coded) || coded >> 17) return false;
  value = int(coded >> 1) ^ -int(coded & 1);
  return true;
}

bool RemainderReader::append(size_t count, std::vector<uint8_t>& to) {
  if (count > in_.size()) return false;
  to.insert(to.end(), in_.begin(), in_.begin() + ptrdiff_t(count));
  in_ = in_.subspan(count);
  return true;
}

bool RemainderReader::begin(BlocksOf<const CoefficientPlane>& blocks) {
  uint8_t version = 0;
  if (!byte(version) || version != kVersion) return false;
  const bool stored = !in_.empty() && in_[0] == kEdgeBlocks;
  if (stored) in_ = in_.subspan(1);
  for (int c = 0; c < frame_.count; ++c) {
    uint64_t left = 0, next = 0;
    if (stored && !number(left)) return false;
    uint64_t wanted = UINT64_MAX;  // the next stored block
    const auto find_next = [&] {
      uint64_t gap = 0;
      wanted = UINT64_MAX;
      if (left == 0) return true;
      if (!number(gap) || gap > blocks.edge(c).count()) return false;
      wanted = next + gap;
      next = wanted + 1;
      --left;
      return true;
    };
    bool good = find_next();
    for_each_edge_block(frame_, c, blocks, [&](size_t ordinal, int16_t* block, int16_t predicted) {
      block[0] = predicted;
      if (good && ordinal == wanted) good = edge_block(block) && find_next();
    });
    if (!good || wanted != UINT64_MAX) return false;
  }
  return true;
}

bool RemainderReader::edge_block(int16_t* block) {
  int difference = 0;
  uint64_t others = 0;
  if (!signed_number(difference) || !number(others) || others > 63) return false;
  block[0] = int16_t(block[0] + difference);
  while (others-- > 0) {
    uint8_t k = 0;
    int value = 0;
    if (!byte(k) || k < 1 || k > 63 || !signed_number(value)) return false;
    block[kNaturalFromZigzag[k]] = int16_t(value);
  }
  return true;
}

bool RemainderReader::next(const JpegFrame& header, RemainderItem& item) {
  item = {};
  uint8_t code = 0;
  if (!byte(code)) return false;
  if (code == kFill) {
    uint64_t fill = 0;
    if (!number(fill) || fill > kMaxFill || !byte(code)) return false;
    item.fill = size_t(fill);
  }
  item.marker = code;
  switch (code) {
    case kJfif:
      item.marker = kApp0;
      item.body.assign(kJfifBody.begin(), kJfifBody.end());
      return true;
    case kSof0:
    case kSof1:
    case kSof2:
      return frame_header(item.body);
    case kDht:
      return huffman_tables(item.body);
    case kDqt:
      return quantization_tables(item.body);
    case kSos:
      return scan(header, item);
    case kEoi:
      return append(in_.size(), item.body);
    case kSoi:
      return false;
  }
  if (stands_alone(code)) return true;
  uint64_t size = 0;
  return code >= 0xC0 && number(size) && size <= kLongestBody && append(size_t(size), item.body);
}

bool RemainderReader::frame_header(std::vector<uint8_t>& body) {
  uint8_t own = 0;
  if (!byte(own) || own > 1) return false;
  body = default_frame_header(frame_);
  if (!own) return true;
  body.resize(6);
  return append(size_t(3 * frame_.count), body);
}

bool RemainderReader::huffman_tables(std::vector<uint8_t>& body) {
  uint64_t count = 0;
  if (!number(count) || count > in_.size()) return false;
  while (count-- > 0) {
    uint8_t table = 0;
    if (!byte(table) || table >> 6) return false;
    body.push_back(uint8_t((table >> 2 & 1) << 4 | (table & 3)));
    const int source = table >> 3;
    if (source > int(kStandardSpecs.size())) return false;
    if (source == kExplicitTable) {
      size_t symbols = 0;
      if (in_.size() < 16) return false;
      for (int i = 0; i < 16; ++i) symbols += in_[i];
      if (!append(16 + symbols, body)) return false;
    } else {
      const std::vector<uint8_t> standard = huffman_body(kStandardSpecs[source - 1]);
      body.insert(body.end(), standard.begin(), standard.end());
    }
    if (body.size() > kLongestBody) return false;
  }
  return true;
}

bool RemainderReader::quantization_tables(std::vector<uint8_t>& body) {
  uint64_t count = 0;
  if (!number(count) || count > in_.size()) return false;
  while (count-- > 0) {
    uint8_t table = 0;
    if (!byte(table)) return false;
    const bool wide = table >> 2 & 1;
    body.push_back(uint8_t(wide << 4 | (table & 3)));
    const int source = table >> 3;
    if (source > frame_.count) return false;
    if (source == kExplicitTable) {
      if (!append(wide ? 128 : 64, body)) return false;
    } else {
      const auto same = quantization_body(frame_.component[source - 1].quantization, wide);
      body.insert(body.end(), same.begin(), same.end());
    }
    if (body.size() > kLongestBody) return false;
  }
  return true;
}

bool RemainderReader::scan(const JpegFrame& header, RemainderItem& item) {
  uint8_t flags = 0;
  if (!byte(flags) || flags >> 4) return false;
  if (flags & kOwnHeader) {
    if (in_.empty() || !append(size_t(4 + 2 * in_[0]), item.body)) return false;
  } else {
    item.body = default_scan_header(header);
  }
  ScanChoices& choices = item.choices;
  if (flags & kZeroPadding) choices.padding = ScanChoices::kZeros;
  if (flags & kListedPadding) {
    uint64_t count = 0;
    choices.padding = ScanChoices::kListed;
    if (!number(count) || !append(size_t(count), choices.listed)) return false;
  }
  if (!(flags & kRunBreaks)) return true;
  uint64_t count = 0, next = 0;
  if (!number(count) || count > in_.size()) return false;
  while (count-- > 0) {
    uint64_t gap = 0;
    if (!number(gap) || gap > UINT32_MAX || next + gap > UINT32_MAX) return false;
    next += gap;
    choices.run_breaks.push_back(uint32_t(next++));
  }
  return true;
}

}  // namespace headrace
