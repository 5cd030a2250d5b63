// SPDX-License-Identifier: Apache-2.0
// What rendering counts: time by stage, and what it delivered although something was odd.
#pragma once

#include <cstdint>

namespace headrace {

// Seconds spent by stage; counters of one thread.
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

// Warnings about pictures that were delivered all the same; counters of one thread.
struct PictureRemarks {
  int64_t repaired = 0;      // damage that their decoder repaired
  int64_t exif_ignored = 0;  // an Exif orientation without a setting whether to apply it

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
