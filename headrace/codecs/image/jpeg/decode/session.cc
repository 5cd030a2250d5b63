// SPDX-License-Identifier: Apache-2.0
#include "headrace/codecs/image/jpeg/decode/session.h"

#include <algorithm>
#include <string>

#include "headrace/codecs/image/jpeg/headers/markers.h"
#include "jerror.h"

namespace headrace {

const ErrorCode kJpegHeader{
    "HR0302", ErrorKind::kData, "invalid JPEG header",
    "The segments before the first scan (size, tables, components) are missing, truncated or "
    "contradictory, so the file cannot be decoded. It was probably truncated, overwritten, or "
    "never a JPEG. Fetch it again or skip it (on_error=)."};
const ErrorCode kJpegNoPixels{
    "HR0304", ErrorKind::kData, "JPEG without image data",
    "The header is valid, but libjpeg-turbo fails before the first pixel: a table or scan "
    "required for decoding is invalid. Lesser damage in the compressed data is repaired as "
    "libjpeg-turbo does, and counted as a warning."};
const ErrorCode kJpegDamaged{
    "HR0305", ErrorKind::kData, "damaged JPEG",
    "libjpeg-turbo can decode this image, but had to repair it: bytes are missing or wrong. That "
    "is an error where the whole file must be valid: with strict decoding, and for coefficients, "
    "which are stored permanently. Without strict the repaired pixels are used."};

namespace {

const ErrorCode kUnsupported{
    "HR0303", ErrorKind::kUnsupported, "unsupported JPEG",
    "The JPEG is of an unsupported type: 12 bits per sample, lossless, hierarchical, JPEG-LS, two "
    "or more than four components, or fractional sampling ratios. Convert it (with djpeg, "
    "ImageMagick or GDAL) or skip it (on_error=)."};

const ErrorCode kTooManyScans{
    "HR0306", ErrorKind::kResource, "too many JPEG scans",
    "A progressive JPEG may refine the image in many scans, and each is a pass over the whole "
    "image: a small file can demand hours of work. Real files have about ten scans. Files with "
    "more than 500 scans are rejected, as are files whose scans cover more of the image than their "
    "bytes can account for."};

const ErrorCode kNoMemory{
    "HR0307", ErrorKind::kResource, "JPEG decoding exceeds the memory limit",
    "The system did not have enough memory for this image, or the file needed more than its header "
    "declared. Progressive files keep all coefficients, six bytes per pixel for 4:4:4. Lower "
    "memory_limit= or threads=, or lower max_pixels= to reject such images."};

// Fixed memory, in addition to what scales with the image: modules, tables, the overhead of
// pools.
constexpr size_t kSessionBytes = size_t{256} << 10;

size_t round_up(size_t value, size_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

}  // namespace

JpegSession::JpegSession() { create(); }

JpegSession::~JpegSession() { jpeg_destroy_decompress(&cinfo_); }

void JpegSession::create() {
  cinfo_.err = jpeg_std_error(&errors_);
  errors_.error_exit = on_error;
  errors_.emit_message = on_message;
  errors_.output_message = [](j_common_ptr) {};
  cinfo_.client_data = this;
  static constexpr uint8_t kNoBytes[] = {0xFF, 0xD9};
  const bool created = guarded([this] {
    jpeg_create_decompress(&cinfo_);
    // The first call allocates the source manager permanently; later calls only set its pointers.
    jpeg_mem_src(&cinfo_, kNoBytes, sizeof(kNoBytes));
  });
  if (!created) throw std::bad_alloc();
  progress_.progress_monitor = on_progress;
  cinfo_.progress = &progress_;
  // Note [Why tables are allocated for one image]
  // libjpeg keeps Huffman and quantization tables for the next image, so a file that lacks tables
  // would be decoded with those of an earlier one, where a new decompressor reports an error:
  // pixels would depend on what the thread decoded before. So close() drops them, and since they
  // now come from the image's pool, nothing remains.
  allocate_ = cinfo_.mem->alloc_small;
  cinfo_.mem->alloc_small = allocate_for_image;
  keep_coefficients_here();
}

void JpegSession::keep_coefficients_here() {
  jpeg_memory_mgr& memory = *cinfo_.mem;
  memory.request_virt_barray = [](j_common_ptr cinfo, int, boolean, JDIMENSION wide,
                                  JDIMENSION rows, JDIMENSION at_once) {
    return of(cinfo).arrays_.request(cinfo, wide, rows, at_once);
  };
  memory.access_virt_barray = [](j_common_ptr cinfo, jvirt_barray_ptr array, JDIMENSION first,
                                 JDIMENSION count, boolean) {
    return JpegArrays::access(cinfo, array, first, count);
  };
  realize_ = memory.realize_virt_arrays;
  memory.realize_virt_arrays = [](j_common_ptr cinfo) {
    of(cinfo).arrays_.realize(cinfo);
    of(cinfo).realize_(cinfo);
  };
}

void* JpegSession::allocate_for_image(j_common_ptr cinfo, int, size_t bytes) {
  return of(cinfo).allocate_(cinfo, JPOOL_IMAGE, bytes);
}

void JpegSession::on_error(j_common_ptr cinfo) {
  JpegSession& session = of(cinfo);
  cinfo->err->format_message(cinfo, session.failure_text_);
  session.failure_offset_ = session.offset();
  std::longjmp(session.jump_, 1);
}

// Note [When libjpeg makes rows up]
// If a scan ends too early, libjpeg fills the rest of it with zeros, which gives gray. A scan ends
// at the end of the file, where the library inserts an end marker, and at every marker except the
// declared restart markers: after those it continues. This is visible in two places: when bits are
// needed before such a marker, and when a restart is expected and another marker is found.
// Arithmetic codes may continue after their end, so only the end of the file counts for them.
void JpegSession::note_end_of_scan() {
  const int marker = cinfo_.unread_marker;
  const bool is_restart = marker >= JPEG_RST0 && marker <= JPEG_RST0 + 7;
  if (marker == 0 || (is_restart && cinfo_.restart_interval > 0)) return;
  // Later scans of a progressive file only refine existing rows: data missing before a marker is
  // damage, unless the file ends with it.
  const bool refines = cinfo_.progressive_mode && (cinfo_.Ss > 0 || cinfo_.Ah > 0);
  if (refines && !file_ended_) return;
  first_missing_row_ = std::min(first_missing_row_, int(cinfo_.input_iMCU_row));
}

boolean JpegSession::on_resync(j_decompress_ptr cinfo, int desired) {
  const boolean resumed = jpeg_resync_to_restart(cinfo, desired);
  of(reinterpret_cast<j_common_ptr>(cinfo)).note_end_of_scan();
  return resumed;
}

// For a file whose scans were all read. A truncated one may lack any number of them: it is complete
// only if every coefficient has its last bit.
void JpegSession::find_missing_scans() {
  for (int c = 0; c < cinfo_.num_components; ++c) {
    bool whole = cinfo_.comp_info[c].quant_table != nullptr;  // null: no scan had the component
    if (file_ended_ && cinfo_.progressive_mode && cinfo_.coef_bits) {
      const int* const bits = cinfo_.coef_bits[c];
      whole = whole && std::all_of(bits, bits + DCTSIZE2, [](int b) { return b == 0; });
    }
    if (!whole) first_missing_row_ = 0;
  }
}

void JpegSession::on_message(j_common_ptr cinfo, int level) {
  if (level >= 0) return;  // a trace message
  JpegSession& session = of(cinfo);
  if (cinfo->err->msg_code == JWRN_HIT_MARKER) session.note_end_of_scan();
  if (cinfo->err->msg_code == JWRN_JPEG_EOF) {
    session.file_ended_ = true;
    if (session.cinfo_.arith_code) {
      session.first_missing_row_ =
          std::min(session.first_missing_row_, int(session.cinfo_.input_iMCU_row));
    }
  }
  if (cinfo->err->num_warnings++ > 0) return;
  cinfo->err->format_message(cinfo, session.warning_text_);
  session.warning_offset_ = session.offset();
}

void JpegSession::on_progress(j_common_ptr cinfo) {
  JpegSession& session = of(cinfo);
  const jpeg_decompress_struct& image = session.cinfo_;
  if (!session.reads_scans_) return;
  // Called once per MCU row.
  for (int c = 0; c < image.comps_in_scan; ++c) {
    const jpeg_component_info& component = *image.cur_comp_info[c];
    session.blocks_read_ += int64_t{component.width_in_blocks} * component.v_samp_factor;
  }
  const bool affordable = session.blocks_read_ <= session.blocks_allowed_;
  if (image.input_scan_number <= kMaxScans && affordable) return;
  session.too_many_scans_ = true;
  session.failure_offset_ = session.offset();
  std::longjmp(session.jump_, 1);
}

// Note [What scans may cost]
int64_t JpegSession::allowed_blocks() const {
  int64_t blocks = 0;
  for (int c = 0; c < cinfo_.num_components; ++c) {
    const jpeg_component_info& component = cinfo_.comp_info[c];
    blocks += int64_t{component.width_in_blocks} * component.height_in_blocks;
  }
  return kFreeWalks * blocks + kBlocksPerByte * int64_t(bytes_.size());
}

int64_t JpegSession::offset() const {
  const auto* next = reinterpret_cast<const uint8_t*>(cinfo_.src->next_input_byte);
  // At the end of the data libjpeg-turbo inserts an end marker.
  const bool inside = next >= bytes_.data() && next <= bytes_.data() + bytes_.size();
  return inside ? next - bytes_.data() : int64_t(bytes_.size());
}

int JpegSession::warnings() const {
  return int(std::min<long>(errors_.num_warnings, 1'000'000'000));
}

void JpegSession::close() {
  guarded([this] { jpeg_abort_decompress(&cinfo_); });
  arrays_.release();
  // Note [Why tables are allocated for one image]
  std::fill(std::begin(cinfo_.quant_tbl_ptrs), std::end(cinfo_.quant_tbl_ptrs), nullptr);
  std::fill(std::begin(cinfo_.dc_huff_tbl_ptrs), std::end(cinfo_.dc_huff_tbl_ptrs), nullptr);
  std::fill(std::begin(cinfo_.ac_huff_tbl_ptrs), std::end(cinfo_.ac_huff_tbl_ptrs), nullptr);
  bytes_ = {};
}

Result<void> JpegSession::open(std::span<const uint8_t> bytes) {
  close();
  too_many_scans_ = file_ended_ = false;
  first_missing_row_ = kNoRow;
  errors_.num_warnings = 0;
  bytes_ = bytes;
  if (bytes.empty()) return Error{.code = &kJpegHeader, .what = "the file is empty"};
  frame_ = read_jpeg_markers(bytes).frame;
  cinfo_.mem->max_memory_to_use = long(kSessionBytes);
  const bool read = guarded([this] {
    jpeg_mem_src(&cinfo_, bytes_.data(), static_cast<unsigned long>(bytes_.size()));
    cinfo_.src->resync_to_restart = on_resync;
    jpeg_read_header(&cinfo_, TRUE);
    multiple_scans_ = jpeg_has_multiple_scans(&cinfo_);
  });
  if (!read) return failure(kJpegHeader);
  reads_scans_ = true;
  blocks_read_ = 0;
  blocks_allowed_ = allowed_blocks();
  return check_kind();
}

Result<void> JpegSession::check_kind() const {
  std::string kind;
  if (const std::string_view name = unsupported_frame_name(frame_); !name.empty()) kind = name;
  if (cinfo_.data_precision != 8) kind = std::to_string(cinfo_.data_precision) + "-bit";
  if (cinfo_.num_components == 2 || cinfo_.num_components > 4) {
    kind = std::to_string(cinfo_.num_components) + "-component";
  }
  if (kind.empty()) return {};
  return Error{.code = &kUnsupported,
               .what = "this is a " + kind + " JPEG",
               .hint = "convert it to 8-bit baseline or progressive JPEG, or skip it"};
}

Error JpegSession::failure(const ErrorCode& code) const {
  if (too_many_scans_) {
    return Error{.code = &kTooManyScans,
                 .what = cinfo_.input_scan_number > kMaxScans
                             ? "more than " + std::to_string(kMaxScans) + " scans"
                             : "scan " + std::to_string(cinfo_.input_scan_number) +
                                   " in a file too small for that many (" +
                                   std::to_string(bytes_.size()) + " bytes for " +
                                   std::to_string(cinfo_.image_width) + " x " +
                                   std::to_string(cinfo_.image_height) + " pixels)",
                 .where = Where{.offset = failure_offset_},
                 .hint = "re-encode the file, or skip it"};
  }
  Error error{.code = &code, .what = failure_text_, .where = Where{.offset = failure_offset_}};
  std::string_view name;
  switch (errors_.msg_code) {
    case JERR_OUT_OF_MEMORY:
    case JERR_NO_BACKING_STORE:
      error.code = &kNoMemory;
      error.hint = "lower threads= or max_pixels=";
      return error;
    case JERR_SOF_UNSUPPORTED:
    case JERR_UNKNOWN_MARKER:
      name = unsupported_frame_name(errors_.msg_parm.i[0]);
      break;
    case JERR_BAD_PRECISION:
      error.what = "this is a " + std::to_string(errors_.msg_parm.i[0]) + "-bit JPEG";
      [[fallthrough]];
    case JERR_ARITH_NOTIMPL:
    case JERR_FRACT_SAMPLE_NOTIMPL:
    case JERR_CCIR601_NOTIMPL:
    case JERR_CONVERSION_NOTIMPL:
    case JERR_NOTIMPL:
      error.code = &kUnsupported;
      error.hint = "convert it to 8-bit baseline or progressive JPEG, or skip it";
      return error;
    default:
      break;
  }
  if (!name.empty()) {
    error.code = &kUnsupported;
    error.what = "this is a " + std::string(name) + " JPEG";
    error.hint = "convert it to 8-bit baseline or progressive JPEG, or skip it";
  } else {
    error.hint = "the file may be truncated or overwritten: fetch it again, or skip it";
  }
  return error;
}

Error JpegSession::first_warning() const {
  return Error{.code = &kJpegDamaged,
               .what = warning_text_,
               .where = Where{.offset = warning_offset_},
               .note = std::to_string(warnings()) + " warnings in this file, this is the first",
               .hint = "without strict decoding the repaired pixels are used"};
}

size_t JpegSession::coefficient_bytes() const {
  size_t bytes = kSessionBytes;
  for (int i = 0; i < cinfo_.num_components; ++i) {
    const jpeg_component_info& component = cinfo_.comp_info[i];
    const size_t wide = round_up(component.width_in_blocks, component.h_samp_factor);
    const size_t high = round_up(component.height_in_blocks, component.v_samp_factor);
    bytes += high * (wide * sizeof(JBLOCK) + sizeof(void*));
  }
  return bytes;
}

size_t JpegSession::pixel_bytes() const {
  // Rows of one iMCU row with its context, and of the upsampled row group.
  size_t bytes = kSessionBytes;
  for (int i = 0; i < cinfo_.num_components; ++i) {
    const jpeg_component_info& component = cinfo_.comp_info[i];
    bytes += (size_t(component.width_in_blocks) * DCTSIZE + 64) * component.v_samp_factor *
             (DCTSIZE + 2);
    bytes += (size_t(cinfo_.image_width) + 64) * cinfo_.max_v_samp_factor;
  }
  if (multiple_scans_) bytes += coefficient_bytes();
  return bytes;
}

void JpegSession::limit_memory(size_t bytes) {
  cinfo_.mem->max_memory_to_use = long(bytes + kSessionBytes);
}

Result<void> JpegSession::start() {
  cinfo_.dct_method = JDCT_ISLOW;
  cinfo_.do_fancy_upsampling = TRUE;
  cinfo_.do_block_smoothing = TRUE;
  cinfo_.quantize_colors = FALSE;
  limit_memory(pixel_bytes());
  if (!guarded([this] { jpeg_start_decompress(&cinfo_); })) return failure(kJpegNoPixels);
  reads_scans_ = false;
  if (multiple_scans_) find_missing_scans();
  return {};
}

}  // namespace headrace
