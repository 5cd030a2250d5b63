// SPDX-License-Identifier: Apache-2.0
// Knowledge of a loader about decoding on its device, over all its batches: how many pictures went
// there, why others did not, and which records must not be tried again.
//
// Where a picture is decoded never changes its pixels, so all of this may depend on chance.
// Thread-safe.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_set>

#include "headrace/base/mutex.h"

namespace headrace {

class DeviceDecoding {
 public:
  // Where a picture was decoded: on the device, or by a thread of the CPU, and why there.
  enum class Place : uint8_t {
    kDevice,
    kField,  // all of its field is finished on the host
    kEnd,    // its steps end in another way than the device finishes pictures
    // Between decoding and that end lies more than a window, a resize, and a border around it:
    kPixels,         // pixels that a step has made
    kColors,         // a step that computes them
    kResizedBorder,  // a border that is resized with the picture
    kFormat,         // no JPEG that a device takes
    kNoIndex,        // a JPEG whose rows are not known, and an index would tell them
    kLarge,          // for the device's scratch memory
    kNoRoom,         // in the batch's slot
    kDamaged,        // the device has refused it
    kNoMemory,       // the device has none for a picture
  };
  static constexpr size_t kPlaces = 12;
  using Counts = std::array<int64_t, kPlaces>;  // pictures, by place
  static std::string_view text_of(Place place);

  void count(Place place) { counts_[static_cast<size_t>(place)].fetch_add(1); }
  Counts counts() const;

  // The device found them damaged: from now on the CPU decodes them, and says what is wrong.
  void distrust(std::span<const int64_t> records) EXCLUDES_LOCK(mutex_);
  bool trusts(int64_t record) const EXCLUDES_LOCK(mutex_);

  // The device has no memory for a picture: from now on the CPU decodes all of them.
  void turn_off() { off_ = true; }
  bool is_off() const { return off_; }

 private:
  std::array<std::atomic<int64_t>, kPlaces> counts_{};
  std::atomic<bool> any_{false}, off_{false};
  mutable Mutex mutex_;
  std::unordered_set<int64_t> distrusted_ GUARDED_BY(mutex_);
};

// How many of the pictures that a device might decode it does decode; fields that are finished
// on the host do not count.
class DecodedShare {
 public:
  explicit DecodedShare(const DeviceDecoding::Counts& counts);

  int64_t pictures = 0, on_device = 0;
  // On the others: "3.4 % of 37,376 images have no row index (`headrace index train/` makes one),
  // 0.1 % are not baseline JPEGs"; empty where there are none. index: what makes one.
  std::string text(const std::string& index) const;

 private:
  DeviceDecoding::Counts counts_;
};

}  // namespace headrace
