// SPDX-License-Identifier: Apache-2.0
// A source whose records are rows of one length, filled with documents of another source.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "headrace/sources/packed/packing.h"
#include "headrace/sources/packed/samples.h"
#include "headrace/sources/source.h"

namespace headrace {

struct PackedRowOptions {
  RowPacking pack = {};
  bool refuse_long = false;             // a document longer than a row is an error
  std::string tokens;                   // field of the documents
  std::string labels = {};              // with a label for each token; empty: the tokens
  std::vector<std::string> along = {};  // further fields, with a value for each token
  int shift = 1;                // distance from a token to its label, 1 or 0; -1: there are none
  DType to = DType::kInt64;     // of tokens and labels
  int64_t pad = 0;              // in place of tokens after the last document of a row
  int64_t ignore_index = -100;  // label of what is not to be predicted
  // Documents are made ready first: images, masks, ids. Its tokens, labels, fields that go along
  // and ignore_index are those above.
  std::optional<SampleOptions> samples = {};
};

// Note [Fields of a packed row]: of `length` elements each, one piece of a document after the
// other, then padding:
// - the tokens, called as in the source; with shift 0 input_ids.
// - targets (shift 1): the label of the token that follows in the document, also where that one
//   lies in another row; ignore_index after its last. labels (shift 0): the token's own,
//   ignore_index for a piece's first, which nothing before it predicts. In padding ignore_index.
// - fields that go along; 0 in padding.
// - position_ids: int64, from 0 in each piece, and in the padding.
// - segment_ids: int32, 1 in the row's first piece, 2 in the next, 0 in padding.
// - cu_seqlens: int32, where pieces begin (padding is one), then `length`. All rows have as many of
//   these as the one with the most pieces; shorter ones repeat `length`.
// - of samples with images: images, the row's encoded images (row_images.h); image_positions, int64
//   (images), where the tokens of each begin in the row; image_sizes, int64 (images, 2), height and
//   width after the transforms.

// The source of packed rows, and what of the documents it leaves out.
struct Packed {
  SourcePtr source;
  int64_t truncated = 0, left_out = 0;  // documents
  int64_t tokens_left_out = 0;          // of these
};

// Throws Exception HR1450; a bad record's error; what `progress` throws.
Packed packed(const SourcePtr& source, const PackedRowOptions& options,
              const Progress& progress = {});

}  // namespace headrace
