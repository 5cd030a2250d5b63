// SPDX-License-Identifier: Apache-2.0
// Prepares documents for packing: each placeholder token is expanded to the number of tokens of its
// image, and labels are masked.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "headrace/sources/packed/image_forms.h"
#include "headrace/sources/source.h"

namespace headrace {

struct SampleOptions {
  std::string tokens;                       // field of integers, one dimension
  bool labeled = true;                      // a field of labels is made
  std::string labels = {};                  // field with a label for each token; empty: the tokens
  std::string mask = {};                    // field: 0 where a token is not to be predicted
  std::vector<int64_t> ignore_tokens = {};  // nor are these ids
  int64_t ignore_index = -100;              // label of what is not
  std::vector<std::string> along = {};      // further fields with a value for each token
  int64_t vocab_size = 0;                   // 0: ids are not checked
  std::vector<std::string> images = {};     // fields of encoded images; an empty one is none
  std::vector<int64_t> sizes = {};          // height, width of each record's; -1: unreadable
  int64_t placeholder = -1;                 // id that stands for an image
  bool expand = true;                       // once for each image; else as often as it has tokens
  bool drop_bad = false;                    // documents whose images cannot be used
  ImageRule rule = {};
};

// Fields that samples have besides those of the documents, in this order. Packing finds them by
// number (DocumentFields): documents may have fields with these names, too.
inline constexpr const char* kSampleLabels = "labels";
inline constexpr const char* kSampleImages = "images";              // uint8, end to end
inline constexpr const char* kSamplePositions = "image_positions";  // int64, of first tokens
inline constexpr const char* kSampleSizes = "image_sizes";          // int64 (n, 2), of ImageForm
inline constexpr const char* kSampleEntries = "image_entries";      // int64 (n, kEntryNumbers)

// Numbers of an image in image_entries: its bytes, the header's height and width, its parts, and
// the document that it belongs to.
inline constexpr int64_t kEntryNumbers = 5;

// Where packing finds what it needs of documents: numbers of their fields.
struct DocumentFields {
  size_t tokens = 0;
  std::optional<size_t> labels = {};  // nothing: labels are the tokens
  std::vector<size_t> along = {};
  size_t images = 0;  // of kSampleImages; those after it follow
};

struct Samples {
  SourcePtr source;
  std::vector<int64_t> lengths;  // in tokens, as packed; 0 for a document that is left out
  DocumentFields fields;
};

extern const ErrorCode kTooManyImages;  // HR1457

// Throws Exception: what image_forms() and reading lengths throw.
Samples samples(const SourcePtr& source, const SampleOptions& options, const Progress& progress);

}  // namespace headrace
