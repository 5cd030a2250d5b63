// SPDX-License-Identifier: Apache-2.0
#include "headrace/codecs/image/jpeg/device/batch.h"

#include <algorithm>
#include <cstring>
#include <functional>

#include "headrace/kernels/jpeg/zigzag.h"

namespace headrace {
namespace {

// How many of a batch's most recent codes and quantization tables are compared with an image's:
// files from one camera or encoder share theirs.
constexpr size_t kCompared = 16;

template <class T>
int32_t number_in(std::vector<T>& known, const T& wanted) {
  const size_t first = known.size() > kCompared ? known.size() - kCompared : 0;
  for (size_t i = known.size(); i-- > first;) {
    if (std::memcmp(&known[i], &wanted, sizeof(T)) == 0) return int32_t(i);
  }
  known.push_back(wanted);
  return int32_t(known.size() - 1);
}

ColorKind kind_of(const DeviceImage& image) {
  const auto is = [&](int c, Upsampling upsampling) {
    return image.plane[c].upsampling == upsampling;
  };
  if (image.components < 3 || image.color != DeviceColor::kRgbFromYcc ||
      !is(0, Upsampling::kNone)) {
    return ColorKind::kAny;
  }
  if (is(1, Upsampling::kNone) && is(2, Upsampling::kNone)) return ColorKind::kPlain;
  if (is(1, Upsampling::kH2V2) && is(2, Upsampling::kH2V2)) return ColorKind::kDoubled;
  return ColorKind::kAny;
}

void add_pieces(std::vector<PieceJob>& jobs, uint32_t image, uint32_t component, int64_t items) {
  for (int64_t first = 0; first < items; first += kPiece) {
    jobs.push_back({image, component, uint32_t(first)});
  }
}

// A batch ends when its longest walk ends, so the longest starts first in its group.
std::vector<WalkGroup> longest_first(std::vector<WalkGroup> groups,
                                     const std::vector<RowJob>& jobs) {
  const auto bits = [&](const WalkGroup& group) {
    const RowJob& longest = jobs[group.first_job];
    return longest.end - longest.begin;
  };
  std::ranges::stable_sort(groups, std::greater<>(), bits);
  return groups;
}

template <class T>
void copy_section(const T* section, const std::vector<T>& made) {
  if (!made.empty()) std::memcpy(const_cast<T*>(section), made.data(), made.size() * sizeof(T));
}

}  // namespace

void JpegDeviceBatch::clear() {
  sizes_ = {};
  images_.clear();
  codes_.clear();
  quantizations_.clear();
  row_jobs_.clear();
  walk_groups_.clear();
  block_jobs_.clear();
  for (auto& jobs : pixel_jobs_) jobs.clear();
  streams_.clear();
}

bool JpegDeviceBatch::add(std::span<const uint8_t> bytes, std::span<const uint8_t> row_index,
                          const Window& window, ColorMode color) {
  const auto first_word = uint32_t(streams_.size());
  if (!make_device_draft(bytes, row_index, window, color, draft_, streams_)) return false;
  add(draft_, first_word);
  return true;
}

void JpegDeviceBatch::add(const JpegDeviceDraft& draft, uint32_t first_word) {
  DeviceImage image = draft.image;
  const uint32_t number = uint32_t(images_.size());
  for (size_t i = 0; i < draft.codes.size(); ++i) {
    image.code[i] = number_in(codes_, draft.codes[i]);
  }
  for (int c = 0; c < image.components; ++c) {
    DevicePlane& plane = image.plane[c];
    plane.quantization = number_in(quantizations_, draft.quantizations[size_t(c)]);
    plane.samples = sizes_.sample_bytes;
    sizes_.sample_bytes += draft.sample_bytes(c);
    add_pieces(block_jobs_, number, uint32_t(c), int64_t{plane.columns} * plane.rows);
  }
  const int64_t eights = image.out_stride / 8;
  add_pieces(pixel_jobs_[size_t(kind_of(image))], number, 0, eights * image.height);
  image.out = sizes_.out_bytes;
  sizes_.out_bytes += draft.out_bytes();
  image.first_block += sizes_.blocks;
  image.first_word = first_word;
  const size_t first_job = row_jobs_.size();
  row_jobs_.insert(row_jobs_.end(), draft.row_jobs.begin(), draft.row_jobs.end());
  for (size_t job = first_job; job < row_jobs_.size(); job += WalkGroup::kMax) {
    const size_t jobs = std::min(row_jobs_.size() - job, size_t{WalkGroup::kMax});
    walk_groups_.push_back({number, uint32_t(job), uint32_t(jobs)});
  }
  sizes_.blocks += draft.blocks;
  images_.push_back(image);

  sizes_.images = int64_t(images_.size());
  sizes_.row_jobs = int64_t(row_jobs_.size());
  sizes_.walk_groups = int64_t(walk_groups_.size());
  sizes_.block_jobs = int64_t(block_jobs_.size());
  for (size_t i = 0; i < pixel_jobs_.size(); ++i) {
    sizes_.pixel_jobs[i] = int64_t(pixel_jobs_[i].size());
  }
  sizes_.codes = int64_t(codes_.size());
  sizes_.quantizations = int64_t(quantizations_.size());
  sizes_.stream_words = int64_t(streams_.size());
}

void JpegDeviceBatch::write(uint8_t* upload) const {
  const DeviceJpegMemory at = place(sizes_, upload, nullptr, nullptr);
  copy_section(at.images, images_);
  copy_section(at.codes, codes_);
  if (!quantizations_.empty()) {
    std::memcpy(const_cast<int16_t*>(at.quantizations), quantizations_.data(),
                quantizations_.size() * sizeof(quantizations_[0]));
  }
  uint8_t place_of[sizeof(WalkTables::place)] = {};
  for (size_t k = 0; k < kNaturalFromZigzag.size(); ++k) place_of[k + 1] = kNaturalFromZigzag[k];
  std::memcpy(const_cast<uint8_t*>(at.places), place_of, sizeof(place_of));
  copy_section(at.row_jobs, row_jobs_);
  copy_section(at.walk_groups, longest_first(walk_groups_, row_jobs_));
  copy_section(at.block_jobs, block_jobs_);
  for (size_t i = 0; i < pixel_jobs_.size(); ++i) copy_section(at.pixel_jobs[i], pixel_jobs_[i]);
  copy_section(at.streams, streams_);
}

}  // namespace headrace
