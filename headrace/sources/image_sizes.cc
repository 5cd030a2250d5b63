// SPDX-License-Identifier: Apache-2.0
#include "headrace/sources/image_sizes.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <numeric>

#include "headrace/image/render.h"
#include "headrace/sources/header_cache.h"
#include "headrace/sources/in_order.h"

namespace headrace {
namespace {

constexpr int64_t kHeadersAtOnce = 32;  // records per read
constexpr size_t kSizesWaiting = size_t{1} << 20;
constexpr size_t kNumbers = 3;  // numbers per record in the cache
static_assert(sizeof(ImageSize) == kNumbers * sizeof(int64_t));

using Sizes = std::vector<ImageSize>;

// Reads the headers of some records, with memory of its own.
class HeaderReader {
 public:
  HeaderReader(const Source& source, size_t field)
      : source_(source), field_(field), wanted_(source.schema().size()), records_(kHeadersAtOnce) {
    wanted_[field] = true;
  }

  Sizes read(int64_t first) {
    const int64_t count = std::min(kHeadersAtOnce, source_.size() - first);
    std::vector<int64_t> indices(static_cast<size_t>(count));
    std::iota(indices.begin(), indices.end(), first);
    const auto records = std::span(records_).first(indices.size());
    source_.read(indices, wanted_, records);
    Sizes out;
    for (const RecordData& record : records) out.push_back(size_of(record));
    return out;
  }

 private:
  ImageSize size_of(const RecordData& record) {
    if (!record.result) {
      if (!is_bad_record(record.result.error())) throw Exception(record.result.error());
      return {};
    }
    constexpr DecodeLimits kAny{.max_pixels = std::numeric_limits<int64_t>::max()};
    const Result<EncodedImage> opened = renderer_.open(record.fields[field_].bytes, kAny);
    if (!opened) return {};
    const ImageHeader& header = opened->header;
    return {header.height, header.width, header.exif_orientation};
  }

  const Source& source_;
  const size_t field_;
  std::vector<bool> wanted_;
  std::vector<RecordData> records_;
  Renderer renderer_;
};

}  // namespace

std::vector<ImageSize> read_image_sizes(const Source& source, size_t field, int threads,
                                        const Progress& progress) {
  Sizes out(static_cast<size_t>(source.size()));
  const HeaderCache cache(source, field);
  if (const auto kept = cache.read(out.size() * kNumbers)) {
    for (size_t i = 0; i < out.size(); ++i) {
      out[i] = {(*kept)[i * kNumbers], (*kept)[i * kNumbers + 1], (*kept)[i * kNumbers + 2]};
    }
    return out;
  }
  size_t done = 0;
  const int64_t groups = (source.size() + kHeadersAtOnce - 1) / kHeadersAtOnce;
  InOrder<Sizes> order(0, groups, kSizesWaiting);
  order.run(
      threads,
      [&] {
        auto reader =
            std::make_shared<HeaderReader>(source, field);  // std::function must be copyable
        return [reader](int64_t group) { return reader->read(group * kHeadersAtOnce); };
      },
      [](const Sizes& sizes) { return sizes.size() * sizeof(ImageSize); },
      [&](const Sizes& sizes) {
        std::ranges::copy(sizes, out.begin() + static_cast<int64_t>(done));
        done += sizes.size();
      },
      [&](int64_t) {
        if (progress) progress(static_cast<int64_t>(done), source.size());
      });
  std::vector<int64_t> numbers;
  for (const ImageSize& size : out) {
    numbers.insert(numbers.end(), {size.height, size.width, size.orientation});
  }
  cache.write(numbers);
  return out;
}

}  // namespace headrace
