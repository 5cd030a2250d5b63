// SPDX-License-Identifier: Apache-2.0
#include "headrace/loader/warnings.h"

namespace headrace {

void Warnings::of_cache(const std::string& caution) const {
  if (!caution.empty() && warn_) warn_(caution);
}

void Warnings::changed_file(const std::string& path) {
  if (std::exchange(warned_changed_, true) || !warn_) return;
  warn_("cached records were out of date: " + path +
        " has changed since it was read. They are read again; reopen the source if more than "
        "pixels changed.");
}

void Warnings::ignored_orientations(int64_t images) {
  if (images == 0 || !warn_ || std::exchange(warned_orientation_, true)) return;
  warn_(
      "the Exif tags of some images require a rotation or flip; these images are delivered as "
      "stored (exif_orientation=True rotates them upright, exif_orientation=False accepts this; "
      "stats()[\"exif_ignored\"] counts them)");
}

void Warnings::left_to_cpu(const WorkPlacement& placement, const LoaderOptions& options,
                           bool at_end) {
  constexpr int64_t kEnoughToSay = 1024;
  if (warned_left_to_cpu_ || !warn_ || !placement.decodes_on_device()) return;
  if (options.decode != DecodeUse::kDevice) return;
  const DecodedShare share(placement.decoded());
  if (share.pictures < kEnoughToSay && !at_end) return;
  warned_left_to_cpu_ = true;
  if (2 * share.on_device >= share.pictures) return;
  warn_("decode=\"device\", but the CPU decodes most images: " +
        share.text(placement.index_hint()));
}

void Warnings::repaired(int64_t images, int64_t epoch) const {
  if (images == 0 || !warn_) return;
  warn_(std::to_string(images) + (images == 1 ? " image" : " images") + " of epoch " +
        std::to_string(epoch) +
        " had damage that the decoder repaired (`headrace scan --strict` lists them; "
        "strict=True makes it an error)");
}

}  // namespace headrace
