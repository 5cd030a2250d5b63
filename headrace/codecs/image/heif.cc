// SPDX-License-Identifier: Apache-2.0
// HEIF, via libheif: the primary picture of HEIC files, and of files with other codecs that libheif
// supports. It is rotated and cropped as the file specifies. Windows cannot be decoded alone.
#include <libheif/heif.h>

#include <algorithm>
#include <cassert>
#include <memory>
#include <string>

#include "headrace/base/registry.h"
#include "headrace/base/text.h"
#include "headrace/codecs/codec.h"
#include "headrace/codecs/image/heif_items.h"
#include "headrace/codecs/image/hevc_library.h"
#include "headrace/codecs/image/stored_rows.h"
#include "headrace/codecs/run_time_library.h"

namespace headrace {
namespace {

constexpr std::string_view kHeifName = "HEIF";

struct HeifLibrary {
  RunTimeLibrary library{"libheif.so.1", "libheif1", std::nullopt};  // a wheel has none
  decltype(&heif_context_alloc) allocate = nullptr;
  decltype(&heif_context_free) free_context = nullptr;
  decltype(&heif_context_set_max_decoding_threads) set_threads = nullptr;
  decltype(&heif_context_read_from_memory_without_copy) read = nullptr;
  decltype(&heif_context_get_primary_image_handle) primary = nullptr;
  decltype(&heif_image_handle_release) release_handle = nullptr;
  decltype(&heif_image_handle_get_width) width = nullptr;
  decltype(&heif_image_handle_get_height) height = nullptr;
  decltype(&heif_image_handle_get_ispe_width) stored_width = nullptr;
  decltype(&heif_image_handle_get_ispe_height) stored_height = nullptr;
  decltype(&heif_image_handle_has_alpha_channel) has_alpha = nullptr;
  decltype(&heif_image_handle_get_luma_bits_per_pixel) bits = nullptr;
  decltype(&heif_decoding_options_alloc) allocate_options = nullptr;
  decltype(&heif_decoding_options_free) free_options = nullptr;
  decltype(&heif_decode_image) decode = nullptr;
  decltype(&heif_register_decoder_plugin) register_plugin = nullptr;
  decltype(&heif_image_get_decoding_warnings) warnings = nullptr;
  decltype(&heif_image_release) release_image = nullptr;
  decltype(&heif_image_get_plane_readonly) plane = nullptr;
  decltype(&heif_image_get_width) plane_width = nullptr;
  decltype(&heif_image_get_height) plane_height = nullptr;

  HeifLibrary() {
    library.find(allocate, "heif_context_alloc");
    library.find(free_context, "heif_context_free");
    library.find(set_threads, "heif_context_set_max_decoding_threads");
    library.find(read, "heif_context_read_from_memory_without_copy");
    library.find(primary, "heif_context_get_primary_image_handle");
    library.find(release_handle, "heif_image_handle_release");
    library.find(width, "heif_image_handle_get_width");
    library.find(height, "heif_image_handle_get_height");
    library.find(stored_width, "heif_image_handle_get_ispe_width");
    library.find(stored_height, "heif_image_handle_get_ispe_height");
    library.find(has_alpha, "heif_image_handle_has_alpha_channel");
    library.find(bits, "heif_image_handle_get_luma_bits_per_pixel");
    library.find(allocate_options, "heif_decoding_options_alloc");
    library.find(free_options, "heif_decoding_options_free");
    library.find(decode, "heif_decode_image");
    library.find(register_plugin, "heif_register_decoder_plugin");
    library.find(warnings, "heif_image_get_decoding_warnings");
    library.find(release_image, "heif_image_release");
    library.find(plane, "heif_image_get_plane_readonly");
    library.find(plane_width, "heif_image_get_width");
    library.find(plane_height, "heif_image_get_height");
  }
};

const HeifLibrary& heif_library() {
  static const HeifLibrary library;
  return library;
}

struct HeifDeleter {
  void operator()(heif_context* context) const { heif_library().free_context(context); }
  void operator()(const heif_image_handle* handle) const { heif_library().release_handle(handle); }
  void operator()(const heif_image* image) const { heif_library().release_image(image); }
  void operator()(heif_decoding_options* options) const { heif_library().free_options(options); }
};

// libheif's objects for one picture; the bytes outlive them.
struct HeifImage {
  std::unique_ptr<heif_context, HeifDeleter> context;
  std::unique_ptr<heif_image_handle, HeifDeleter> handle;
  int width = 0, height = 0;
  uint64_t max_pixels = 0;  // in memory at once: of the whole picture, or of one of its parts
  bool alpha = false;
};

Error heif_problem(const heif_error& error, std::span<const uint8_t> bytes) {
  if (error.subcode == heif_suberror_End_of_data) return truncated_image(kHeifName, bytes.size());
  if (error.code == heif_error_Memory_allocation_error) return too_large_image(kHeifName);
  const std::string text = error.message ? error.message : "libheif could not read it";
  if (error.code == heif_error_Unsupported_filetype ||
      error.code == heif_error_Unsupported_feature ||
      error.code == heif_error_Decoder_plugin_error) {
    return unsupported_image(kHeifName, "that libheif does not decode: " + text);
  }
  return corrupt_image(kHeifName, text);
}

Result<HeifImage> open_heif(std::span<const uint8_t> bytes) {
  const HeifLibrary& heif = heif_library();
  if (!heif.library.is_open()) return heif.library.missing();
  if (!hevc_library().is_open()) return hevc_library().missing();
  const HeifItems items = inspect_heif_items(bytes);
  if (items.has_av1) return unsupported_image(kHeifName, "with pixels that are not coded as HEVC");
  HeifImage picture;
  picture.context.reset(heif.allocate());
  if (!picture.context) return too_large_image(kHeifName);
  heif.set_threads(picture.context.get(), 0);  // tiles of a grid are decoded on this thread
  heif_error error = heif.read(picture.context.get(), bytes.data(), bytes.size(), nullptr);
  if (error.code != heif_error_Ok) return heif_problem(error, bytes);
  heif_image_handle* handle = nullptr;
  error = heif.primary(picture.context.get(), &handle);
  if (error.code != heif_error_Ok) return heif_problem(error, bytes);
  picture.handle.reset(handle);
  picture.width = heif.width(handle);
  picture.height = heif.height(handle);
  picture.alpha = heif.has_alpha(handle);
  if (picture.width <= 0 || picture.height <= 0) {
    return corrupt_image(kHeifName, "it has no valid size");
  }
  // The visible picture may be cropped from a larger one, and the coded one may include padding, or
  // be a tile of a small picture; but the ratio is limited.
  constexpr uint64_t kSmall = uint64_t{1} << 20;
  const uint64_t shown = uint64_t(picture.width) * uint64_t(picture.height);
  const uint64_t stored = uint64_t(std::max(heif.stored_width(handle), 0)) *
                          uint64_t(std::max(heif.stored_height(handle), 0));
  picture.max_pixels = std::max({shown, stored, items.max_pixels});
  if (picture.max_pixels > std::max(4 * shown, kSmall)) return too_large_image(kHeifName);
  return picture;
}

class HeifDecoder : public ImageDecoder {
 public:
  Result<ImageHeader> read_header(std::span<const uint8_t> bytes) override {
    const Result<HeifImage> picture = open_heif(bytes);
    if (!picture) return picture.error();
    ImageHeader header;
    header.width = picture->width;
    header.height = picture->height;
    header.channels = picture->alpha ? 4 : 3;
    header.alpha = picture->alpha;
    header.bits = std::max(heif_library().bits(picture->handle.get()), 8);
    // Planes, rotated planes, and the interleaved picture; and the coded pictures.
    header.working_bytes = size_t(picture->max_pixels) * (header.bits > 8 ? 20 : 12) +
                           3 * bytes.size() + (size_t{8} << 20);
    return header;
  }

  void decode(std::span<DecodeJob> jobs) override {
    for (DecodeJob& job : jobs) job.result = decode_one(job);
  }

 private:
  Result<void> decode_one(const DecodeJob& job) {
    const Result<HeifImage> picture = open_heif(job.bytes);
    if (!picture) return picture.error();
    assert(is_inside(job.window, picture->width, picture->height));
    const HeifLibrary& heif = heif_library();
    const bool alpha = picture->alpha;
    const std::unique_ptr<heif_decoding_options, HeifDeleter> options(heif.allocate_options());
    if (!options) return too_large_image(kHeifName);
    options->convert_hdr_to_8bit = 1;
    options->strict_decoding = 1;
    options->decoder_id = hevc_decoder_id(heif.register_plugin);
    if (!options->decoder_id) {
      return unsupported_image(kHeifName, "because this libde265 gives no access to its memory");
    }
    heif_image* decoded = nullptr;
    const heif_error error = heif.decode(
        picture->handle.get(), &decoded, heif_colorspace_RGB,
        alpha ? heif_chroma_interleaved_RGBA : heif_chroma_interleaved_RGB, options.get());
    const std::unique_ptr<const heif_image, HeifDeleter> image(decoded);
    if (error.code != heif_error_Ok) return heif_problem(error, job.bytes);
    heif_error warning;
    if (heif.warnings(decoded, 0, &warning, 1) > 0) {
      return corrupt_image(kHeifName, warning.message ? warning.message : "a libheif warning");
    }
    int stride = 0;
    const uint8_t* const pixels = heif.plane(image.get(), heif_channel_interleaved, &stride);
    const StoredColor color = alpha ? StoredColor::kRGBA : StoredColor::kRGB;
    if (!pixels || heif.plane_width(image.get(), heif_channel_interleaved) != picture->width ||
        heif.plane_height(image.get(), heif_channel_interleaved) != picture->height ||
        stride < picture->width * channels_of(color)) {
      return corrupt_image(kHeifName, "its pixels do not match its header");
    }
    stored_.deliver_window(job, color, pixels, stride);
    return {};
  }

  StoredRows stored_;
};

const CodecRecord kHeif{
    .name = "heif",
    .doc =
        "HEIF: the primary image of HEIC files, with and without alpha, rotated as the file "
        "specifies.",
    .oracle =
        "pillow-heif and Pillow's convert(), within 3 levels, since libheif's YCbCr conversion "
        "differs between versions; HEVC samples are exact",
    .suffixes = {".heic", ".heif", ".hif"},
    .sniff =
        [](std::span<const uint8_t> first_bytes) {
          constexpr std::string_view kBrands[] = {"heic", "heix", "heim", "heis", "hevc",
                                                  "hevx", "hevm", "hevs", "mif1", "msf1"};
          return has_text(first_bytes, "ftyp", 4) &&
                 std::any_of(std::begin(kBrands), std::end(kBrands), [&](std::string_view brand) {
                   return has_text(first_bytes, brand, 8);
                 });
        },
    .make = []() -> std::unique_ptr<ImageDecoder> { return std::make_unique<HeifDecoder>(); },
    .library = []() -> const RunTimeLibrary& { return heif_library().library; },
};
const Register<CodecRecord> registered_heif_codec(kHeif);

}  // namespace
}  // namespace headrace
