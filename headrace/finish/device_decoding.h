// SPDX-License-Identifier: Apache-2.0
// What a loader learns about decoding on its device, over all its batches: how many pictures the
// device decoded, why it did not decode others, and which records must not be tried again.
//
// Where a picture is decoded never changes its pixels, so all of this may depend on timing.
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
  // Where a picture was decoded: on the device, or on the CPU for one of these reasons.
  enum class Place : uint8_t {
    kDevice,
    kField,  // its whole field is finished on the host
    kEnd,    // its last transforms are not among those that the device can finish with
    // Between decoding and these transforms there is more than a window, a resize, and a border
    // around it:
    kPixels,         // pixels made by a transform
    kColors,         // a transform that computes colors
    kResizedBorder,  // padded before the resize
    kFormat,         // not a JPEG that the device supports
    kNoIndex,        // a JPEG whose row positions are unknown; an index would provide them
    kLarge,          // exceeds the device's scratch memory
    kNoRoom,         // no room in the batch's slot
    kDamaged,        // the device rejected it
    kNoMemory,       // the device is out of memory
  };
  static constexpr size_t kPlaces = 12;
  using Counts = std::array<int64_t, kPlaces>;  // pictures, by place
  static std::string_view text_of(Place place);

  void count(Place place) { counts_[static_cast<size_t>(place)].fetch_add(1); }
  Counts counts() const;

  // The device found these records damaged: from now on the CPU decodes them and reports what is
  // wrong.
  void distrust(std::span<const int64_t> records) EXCLUDES_LOCK(mutex_);
  bool trusts(int64_t record) const EXCLUDES_LOCK(mutex_);

  // The device is out of memory: from now on the CPU decodes all pictures.
  void turn_off() { off_ = true; }
  bool is_off() const { return off_; }

 private:
  std::array<std::atomic<int64_t>, kPlaces> counts_{};
  std::atomic<bool> any_{false}, off_{false};
  mutable Mutex mutex_;
  std::unordered_set<int64_t> distrusted_ GUARDED_BY(mutex_);
};

// Counts, of the pictures that the device could decode, those it does decode; fields that are
// finished on the host are ignored.
class DecodedShare {
 public:
  explicit DecodedShare(const DeviceDecoding::Counts& counts);

  int64_t pictures = 0, on_device = 0;
  // The reasons for the others: "3.4 % of 37,376 images have no row index (`headrace index train/`
  // makes one), 0.1 % are not baseline JPEGs"; empty if there are none. index: command that makes
  // an index.
  std::string text(const std::string& index) const;

 private:
  DeviceDecoding::Counts counts_;
};

}  // namespace headrace
