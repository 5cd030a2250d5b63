// SPDX-License-Identifier: Apache-2.0
// Counters of the renderer: time by stage, and pictures that were delivered with a warning.
#pragma once

#include <cstdint>

namespace headrace {

// Seconds spent in each stage; counters of one thread.
struct StageSeconds {
  double read = 0, entropy = 0, coded = 0, transform = 0, resample = 0, store = 0, python = 0;

  StageSeconds& operator+=(const StageSeconds& more) {
    read += more.read;
    entropy += more.entropy;
    coded += more.coded;
    transform += more.transform;
    resample += more.resample;
    store += more.store;
    python += more.python;
    return *this;
  }
  StageSeconds operator-(const StageSeconds& less) const {
    return {read - less.read,           entropy - less.entropy,   coded - less.coded,
            transform - less.transform, resample - less.resample, store - less.store,
            python - less.python};
  }
};

// Numbers of delivered pictures that had a problem; counters of one thread.
struct PictureRemarks {
  int64_t repaired = 0;      // damaged, and repaired by the decoder
  int64_t exif_ignored = 0;  // with an EXIF orientation, and no setting whether to apply it

  PictureRemarks& operator+=(const PictureRemarks& more) {
    repaired += more.repaired;
    exif_ignored += more.exif_ignored;
    return *this;
  }
  PictureRemarks operator-(const PictureRemarks& less) const {
    return {repaired - less.repaired, exif_ignored - less.exif_ignored};
  }
};

}  // namespace headrace
