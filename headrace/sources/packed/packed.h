// SPDX-License-Identifier: Apache-2.0
// A source whose records are rows of a fixed length, filled with documents of another source
// (sequence packing).
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
  std::string labels = {};              // field with a label per token; empty: the tokens
  std::vector<std::string> along = {};  // additional fields, with a value per token
  int shift = 1;                        // distance from a token to its label, 1 or 0; -1: no labels
  DType to = DType::kInt64;             // of tokens and labels
  int64_t pad = 0;                      // token ID that fills the rest of a row
  int64_t ignore_index = -100;          // label of tokens that are not predicted
  // Preprocessing of documents: images, masks, ids. The tokens, labels, additional fields and
  // ignore_index above replace those in it.
  std::optional<SampleOptions> samples = {};
};

// Note [Fields of a packed row]: of `length` elements each: the pieces of documents, then padding:
// - the tokens, named as in the source; with shift 0, input_ids.
// - targets (shift 1): the label of the next token in the document, even if that token is in
//   another row; ignore_index for the document's last token. labels (shift 0): the token's own
//   label; ignore_index for the first token of a piece, which no token precedes. In padding,
//   ignore_index.
// - additional fields; 0 in padding.
// - position_ids: int64, starting at 0 in each piece and in the padding.
// - segment_ids: int32, 1 in the first piece of the row, 2 in the next, 0 in padding.
// - cu_seqlens: int32, the start of each piece (padding counts as one), then `length`. All rows
//   have as many entries as the row with the most pieces; others repeat `length`.
// - for samples with images: images, the row's encoded images (row_images.h); image_positions,
//   int64 (images), the position of each image's first token in the row; image_sizes, int64
//   (images, 2), height and width after the transforms.

// The source of packed rows, and counts of what was left out.
struct Packed {
  SourcePtr source;
  int64_t truncated = 0, left_out = 0;  // documents
  int64_t tokens_left_out = 0;          // tokens of these documents
};

// Throws Exception HR1450; a bad record's error; what `progress` throws.
Packed packed(const SourcePtr& source, const PackedRowOptions& options,
              const Progress& progress = {});

// The source of packed rows: reads the pieces of documents that make up a row (packed_source.cc).
// `fields`: of the documents. `of_lengths`: a hash of the documents' lengths. REQUIRES: the checks
// of packed.cc have passed.
SourcePtr packed_source(SourcePtr documents, const PackedRowOptions& options,
                        const DocumentFields& fields, DocumentRows rows, uint64_t of_lengths);

}  // namespace headrace
