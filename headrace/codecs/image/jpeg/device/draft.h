// SPDX-License-Identifier: Apache-2.0
// One image for a device to decode: its header, row index and window as input of the kernels in
// kernels/device_jpeg/, and the bytes of the rows that the window needs.
//
// A device takes plain baseline images with known rows; the CPU decodes all other images, to the
// same pixels. Any thread may make drafts.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "headrace/codecs/codec.h"
#include "headrace/codecs/image/jpeg/device/rows.h"
#include "headrace/kernels/device_jpeg/device_image.h"

namespace headrace {

// A single image, as if alone in its batch: the numbers of jobs, words and blocks begin with 0.
struct JpegDeviceDraft {
  DeviceImage image{};
  std::array<DeviceCode, 4> codes;
  std::array<std::array<int16_t, 64>, 3> quantizations;  // of its components
  std::vector<RowJob> row_jobs;
  int64_t blocks = 0;

  // Sizes in bytes of a component's samples, and of the window's rows.
  int64_t sample_bytes(int component) const;
  int64_t out_bytes() const;
};

// Makes drafts, one after another, for one thread: begin() makes everything except the rows'
// bytes; write() adds these, if the caller has room for them.
class JpegDrafting {
 public:
  JpegDrafting() = default;
  JpegDrafting(const JpegDrafting&) = delete;
  JpegDrafting& operator=(const JpegDrafting&) = delete;

  // False if the CPU has to decode the image. REQUIRES: the row index belongs to these bytes, to
  // the best of the index store's knowledge.
  bool begin(std::span<const uint8_t> bytes, std::span<const uint8_t> row_index,
             const Window& window, ColorMode color, JpegDeviceDraft& draft);
  // False if its row index has no inner entries.
  bool is_searched() const { return walked_.are_searched; }
  // Maximum number of words and jobs that write() makes.
  size_t max_words() const { return walked_.words; }
  size_t max_jobs() const { return walked_.jobs; }
  // Writes the rows' bytes, without stuffing, and the draft's jobs. Returns the number of words
  // that the image takes; 0 if the CPU has to decode it.
  size_t write(uint32_t* to, JpegDeviceDraft& draft) const {
    return write_device_rows(rows_, walked_, to, draft.row_jobs);
  }

 private:
  bool find_codes(JpegDeviceDraft& draft);
  // Null if the code is invalid, or too large for a device.
  const DeviceCode* code_of(const HuffmanSpec& spec, HuffmanUse use, size_t place);

  // The last image's code: files of one encoder share theirs.
  struct Code {
    bool is_usable = false;
    HuffmanSpec spec;
    DeviceCode code;
  };
  std::array<Code, 4> codes_;
  JpegHeader header_;
  JpegRowIndex index_;
  JpegWalkedRows walked_;
  JpegDeviceRows rows_{.bytes = {}, .header = header_, .index = index_};
};

// Appends the rows' bytes, without stuffing, to `streams`. False if the CPU has to decode the
// image; `streams` is then unchanged. REQUIRES: the row index belongs to these bytes, to the best
// of the index store's knowledge.
bool make_device_draft(std::span<const uint8_t> bytes, std::span<const uint8_t> row_index,
                       const Window& window, ColorMode color, JpegDeviceDraft& draft,
                       std::vector<uint32_t>& streams);

}  // namespace headrace
