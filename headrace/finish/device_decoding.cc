// SPDX-License-Identifier: Apache-2.0
#include "headrace/finish/device_decoding.h"

namespace headrace {

std::string_view DeviceDecoding::text_of(Place place) {
  switch (place) {
    case Place::kDevice:
      return "device";
    case Place::kField:
      return "a field that the host finishes";
    case Place::kEnd:
      return "another end of the steps";
    case Place::kPixels:
      return "pixels made before";
    case Place::kColors:
      return "colours before the end";
    case Place::kResizedBorder:
      return "a border that is resized";
    case Place::kFormat:
      return "another format";
    case Place::kNoIndex:
      return "no row index";
    case Place::kLarge:
      return "too large";
    case Place::kNoRoom:
      return "no room in the slot";
    case Place::kDamaged:
      return "damaged";
  }
  return "";
}

std::array<int64_t, DeviceDecoding::kPlaces> DeviceDecoding::counts() const {
  std::array<int64_t, kPlaces> out{};
  for (size_t i = 0; i < kPlaces; ++i) out[i] = counts_[i];
  return out;
}

void DeviceDecoding::distrust(std::span<const int64_t> records) {
  MutexLock lock(mutex_);
  distrusted_.insert(records.begin(), records.end());
  any_ = true;
}

bool DeviceDecoding::trusts(int64_t record) const {
  if (!any_) return true;
  MutexLock lock(mutex_);
  return !distrusted_.contains(record);
}

}  // namespace headrace
