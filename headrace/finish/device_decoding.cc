// SPDX-License-Identifier: Apache-2.0
#include "headrace/finish/device_decoding.h"

#include <algorithm>
#include <functional>
#include <vector>

#include "headrace/sources/readable_text.h"

namespace headrace {
namespace {

using Place = DeviceDecoding::Place;

struct PlaceRecord {
  std::string_view name;  // key in stats()
  std::string_view why;   // describes these pictures
};

// Indexed by Place.
constexpr std::array<PlaceRecord, DeviceDecoding::kPlaces> kPlaceRecords = {{
    {"device", ""},
    {"field finished on the CPU", "belong to a field that is finished on the CPU"},
    {"unsupported final transforms", "end with transforms that the device cannot finish"},
    {"rendered earlier", "must be decoded early, for a transform that works on pixels"},
    {"unsupported color transform", "have a color transform that the device does not support"},
    {"padded before resize", "are padded before they are resized"},
    {"unsupported format", "are not baseline JPEGs"},
    {"no row index", "have no row index"},
    {"too large", "are too large for the device's scratch memory"},
    {"slot full", "do not fit into the remaining space of the slot"},
    {"damaged", "were rejected by the device as damaged"},
    {"out of device memory", "were processed after the device ran out of memory"},
}};

const PlaceRecord& record_of(Place place) { return kPlaceRecords[static_cast<size_t>(place)]; }

// "3.5 %"; 0 and 100 only if exact.
std::string percentage(int64_t part, int64_t whole) {
  const int64_t tenths =
      part == whole ? 1000
                    : std::clamp((part * 1000 + whole / 2) / whole, int64_t{1}, int64_t{999});
  const std::string units = std::to_string(tenths / 10);
  return units + (tenths % 10 ? "." + std::to_string(tenths % 10) : "") + " %";
}

}  // namespace

std::string_view DeviceDecoding::text_of(Place place) { return record_of(place).name; }

DeviceDecoding::Counts DeviceDecoding::counts() const {
  Counts out{};
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

DecodedShare::DecodedShare(const DeviceDecoding::Counts& counts) : counts_(counts) {
  counts_[static_cast<size_t>(Place::kField)] = 0;
  for (const int64_t count : counts_) pictures += count;
  on_device = counts_[static_cast<size_t>(Place::kDevice)];
}

std::string DecodedShare::text(const std::string& index) const {
  std::vector<Place> reasons;
  for (size_t i = 0; i < counts_.size(); ++i) {
    const auto place = static_cast<Place>(i);
    if (place != Place::kDevice && counts_[i] > 0) reasons.push_back(place);
  }
  const auto count = [this](Place place) { return counts_[static_cast<size_t>(place)]; };
  std::ranges::sort(reasons, std::greater(), count);
  std::string out;
  for (const Place place : reasons) {
    out += (out.empty() ? "" : ", ") + percentage(count(place), pictures);
    if (place == reasons.front()) out += " of " + count_text(pictures, "image");
    out += " ";
    out += record_of(place).why;
    if (place == Place::kNoIndex) out += " (" + index + ")";
  }
  return out;
}

}  // namespace headrace
