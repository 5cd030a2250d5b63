// SPDX-License-Identifier: Apache-2.0
// Prepares documents for packing: each placeholder token is expanded to the number of tokens of its
// image, and labels are masked.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "headrace/sources/packed/image_layout.h"
#include "headrace/sources/source.h"

namespace headrace {

struct SampleOptions {
  std::string tokens;                       // one-dimensional integer field
  bool labeled = true;                      // create a field of labels
  std::string labels = {};                  // field with a label per token; empty: the tokens
  std::string mask = {};                    // field: 0 for tokens that are not predicted
  std::vector<int64_t> ignore_tokens = {};  // token ids that are not predicted
  int64_t ignore_index = -100;              // label of tokens that are not predicted
  std::vector<std::string> along = {};      // additional fields with a value per token
  int64_t vocab_size = 0;                   // 0: ids are not checked
  std::vector<std::string> images = {};     // fields of encoded images; empty values are skipped
  std::vector<int64_t> sizes = {};          // height, width per record; -1: unreadable
  int64_t placeholder = -1;                 // token id of the image placeholder
  bool expand = true;                       // one placeholder per image; else one per token
  bool drop_bad = false;                    // drop documents with unusable images
  ImageRule rule = {};
};

// Fields that samples have in addition to their documents' fields, in this order. Packing finds
// them by number (DocumentFields), since documents may have fields with the same names.
inline constexpr const char* kSampleLabels = "labels";
inline constexpr const char* kSampleImages = "images";              // uint8, concatenated
inline constexpr const char* kSamplePositions = "image_positions";  // int64, of first tokens
inline constexpr const char* kSampleSizes = "image_sizes";          // int64 (n, 2), of ImageForm
inline constexpr const char* kSampleEntries = "image_entries";      // int64 (n, kEntryNumbers)

// Numbers per image in image_entries: its size in bytes, the height and width in its header, its
// parts, and the document that it belongs to.
inline constexpr int64_t kEntryNumbers = 5;

// Field numbers of what packing needs from documents.
struct DocumentFields {
  size_t tokens = 0;
  std::optional<size_t> labels = {};  // empty: the tokens are the labels
  std::vector<size_t> along = {};
  size_t images = 0;  // number of kSampleImages; the fields listed after it follow
};

struct Samples {
  SourcePtr source;
  std::vector<int64_t> lengths;  // in tokens, as packed; 0 for documents that are left out
  DocumentFields fields;
};

extern const ErrorCode kTooManyImages;  // HR1457

// Throws what image_forms() and reading lengths throw.
Samples samples(const SourcePtr& source, const SampleOptions& options, const Progress& progress);

}  // namespace headrace
