// SPDX-License-Identifier: Apache-2.0
#include "headrace/codecs/image/hevc_library.h"

#include <fcntl.h>
#include <libde265/de265.h>
#include <libheif/heif_plugin.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "headrace/codecs/image/byte_order.h"

namespace headrace {
namespace {

struct HevcLibrary {
  RunTimeLibrary library{"libde265.so.0", "libde265-0", std::nullopt};  // a wheel has none
  decltype(&de265_new_decoder) create = nullptr;
  decltype(&de265_free_decoder) destroy = nullptr;
  decltype(&de265_set_parameter_bool) set = nullptr;
  decltype(&de265_get_default_image_allocation_functions) allocation = nullptr;
  decltype(&de265_set_image_plane) set_plane = nullptr;
  decltype(&de265_get_image_plane_user_data) plane_memory = nullptr;
  decltype(&de265_push_NAL) push = nullptr;
  decltype(&de265_flush_data) flush = nullptr;
  decltype(&de265_decode) decode = nullptr;
  decltype(&de265_get_warning) warning = nullptr;
  decltype(&de265_get_error_text) text_of = nullptr;
  decltype(&de265_get_next_picture) next = nullptr;
  decltype(&de265_release_next_picture) release = nullptr;
  decltype(&de265_get_chroma_format) chroma = nullptr;
  decltype(&de265_get_bits_per_pixel) bits = nullptr;
  decltype(&de265_get_image_width) width = nullptr;
  decltype(&de265_get_image_height) height = nullptr;
  decltype(&de265_get_image_plane) plane = nullptr;
  decltype(&de265_get_image_full_range_flag) full_range = nullptr;
  decltype(&de265_get_image_colour_primaries) primaries = nullptr;
  decltype(&de265_get_image_transfer_characteristics) transfer = nullptr;
  decltype(&de265_get_image_matrix_coefficients) matrix = nullptr;

  HevcLibrary() {
    library.find(create, "de265_new_decoder");
    library.find(destroy, "de265_free_decoder");
    library.find(set, "de265_set_parameter_bool");
    library.find(allocation, "de265_get_default_image_allocation_functions");
    library.find(set_plane, "de265_set_image_plane");
    library.find(plane_memory, "de265_get_image_plane_user_data");
    library.find(push, "de265_push_NAL");
    library.find(flush, "de265_flush_data");
    library.find(decode, "de265_decode");
    library.find(warning, "de265_get_warning");
    library.find(text_of, "de265_get_error_text");
    library.find(next, "de265_get_next_picture");
    library.find(release, "de265_release_next_picture");
    library.find(chroma, "de265_get_chroma_format");
    library.find(bits, "de265_get_bits_per_pixel");
    library.find(width, "de265_get_image_width");
    library.find(height, "de265_get_image_height");
    library.find(plane, "de265_get_image_plane");
    library.find(full_range, "de265_get_image_full_range_flag");
    library.find(primaries, "de265_get_image_colour_primaries");
    library.find(transfer, "de265_get_image_transfer_characteristics");
    library.find(matrix, "de265_get_image_matrix_coefficients");
  }
};

const HevcLibrary& hevc() {
  static const HevcLibrary library;
  return library;
}

// libheif's functions for plugins to create pictures, from the same libheif that calls the plugin.
struct HeifImages {
  RunTimeLibrary library{"libheif.so.1", "libheif1", std::nullopt};  // a wheel has none
  decltype(&heif_image_create) create = nullptr;
  decltype(&heif_image_release) release = nullptr;
  decltype(&heif_image_add_plane) add_plane = nullptr;
  decltype(&heif_image_get_plane) plane = nullptr;
  decltype(&heif_nclx_color_profile_alloc) new_profile = nullptr;
  decltype(&heif_nclx_color_profile_free) free_profile = nullptr;
  decltype(&heif_nclx_color_profile_set_color_primaries) set_primaries = nullptr;
  decltype(&heif_nclx_color_profile_set_transfer_characteristics) set_transfer = nullptr;
  decltype(&heif_nclx_color_profile_set_matrix_coefficients) set_matrix = nullptr;
  decltype(&heif_image_set_nclx_color_profile) set_profile = nullptr;

  HeifImages() {
    library.find(create, "heif_image_create");
    library.find(release, "heif_image_release");
    library.find(add_plane, "heif_image_add_plane");
    library.find(plane, "heif_image_get_plane");
    library.find(new_profile, "heif_nclx_color_profile_alloc");
    library.find(free_profile, "heif_nclx_color_profile_free");
    library.find(set_primaries, "heif_nclx_color_profile_set_color_primaries");
    library.find(set_transfer, "heif_nclx_color_profile_set_transfer_characteristics");
    library.find(set_matrix, "heif_nclx_color_profile_set_matrix_coefficients");
    library.find(set_profile, "heif_image_set_nclx_color_profile");
  }
};

const HeifImages& heif_images() {
  static const HeifImages pictures;
  return pictures;
}

// Contents of a plane's memory before decoding: values that no picture has by chance.
constexpr size_t kMarks = 4096;
const std::array<uint8_t, kMarks>& marks() {
  static const std::array<uint8_t, kMarks> bytes = [] {
    std::array<uint8_t, kMarks> made;
    uint32_t state = 0x9E3779B9;
    for (uint8_t& byte : made) {
      state ^= state << 13;
      state ^= state >> 17;
      state ^= state << 5;
      byte = uint8_t(state >> 24);
    }
    return made;
  }();
  return bytes;
}

// Memory of one plane, in libde265's layout while it decodes.
struct HevcPlane {
  std::unique_ptr<uint8_t, decltype(&std::free)> memory{nullptr, std::free};
  size_t stride = 0;  // in bytes
  int width = 0, height = 0, sample_bytes = 1;

  bool allocate(int alignment) {
    constexpr int kLine = 64;  // vector loops may touch this many bytes after the last sample
    stride = size_t((width + alignment - 1) / alignment * alignment) * size_t(sample_bytes);
    const size_t bytes = (stride * size_t(height) + 2 * kLine - 1) / kLine * kLine;
    memory.reset(static_cast<uint8_t*>(std::aligned_alloc(kLine, bytes)));
    if (!memory) return false;
    for (size_t at = 0; at < bytes; at += kMarks) {
      std::memcpy(memory.get() + at, marks().data(), std::min(kMarks, bytes - at));
    }
    return true;
  }

  // Whether some block was not written. A coding tree block is no smaller than kBlock, and filters
  // across its edges change at most kEdge samples of an undecoded block.
  bool has_unwritten_block() const {
    constexpr int kBlock = 16, kEdge = 3;
    for (int top = 0; top < height; top += kBlock) {
      for (int left = 0; left < width; left += kBlock) {
        const int right = std::min(left + kBlock - kEdge, width);
        const int bottom = std::min(top + kBlock - kEdge, height);
        bool written = false;
        for (int y = top + kEdge; y < bottom && !written; ++y) {
          const size_t row = size_t(y) * stride;
          const size_t end = row + size_t(right) * size_t(sample_bytes);
          for (size_t at = row + size_t(left + kEdge) * size_t(sample_bytes); at < end; ++at) {
            written |= memory.get()[at] != marks()[at % kMarks];
          }
        }
        if (!written) return true;
      }
    }
    return false;
  }
};

// One picture being decoded.
struct HevcSession {
  de265_decoder_context* context = nullptr;

  ~HevcSession() {
    if (context) hevc().destroy(context);
  }
};

// `text` outlives the decoder: libheif reads it later.
heif_error damage(const char* text) {
  return {heif_error_Invalid_input, heif_suberror_Unspecified, text};
}

constexpr heif_error kDone{heif_error_Ok, heif_suberror_Unspecified, "Success"};
constexpr heif_error kNoMemory{heif_error_Memory_allocation_error, heif_suberror_Unspecified,
                               "out of memory"};

// Note [Memory of libde265's pictures]
// The allocation functions that a decoder can be given (de265_set_image_allocation_functions) are
// used for finished pictures only. If a stream has sample adaptive offsets, as nearly all do, its
// blocks are decoded into a picture that the library's default functions allocate, and then copied.
// So we replace the defaults with functions that do the same and mark the memory of our decoders;
// all others in the process use the library's own.
thread_local const de265_decoder_context* decoding = nullptr;  // ours; it has no threads of its own

struct Decoding {
  explicit Decoding(const de265_decoder_context* context) { decoding = context; }
  ~Decoding() { decoding = nullptr; }
  Decoding(const Decoding&) = delete;
  Decoding& operator=(const Decoding&) = delete;
};

// The library's default.
const de265_image_allocation& default_allocation() {
  static const de265_image_allocation functions = *hevc().allocation();
  return functions;
}

void release_buffer(de265_decoder_context* context, de265_image* image, void* user) {
  // The library's own planes have no user data.
  if (!hevc().plane_memory(image, 0)) {
    return default_allocation().release_buffer(context, image, user);
  }
  for (int c = 0; c < 3; ++c) {
    delete static_cast<HevcPlane*>(hevc().plane_memory(image, c));
    hevc().set_plane(image, c, nullptr, 0, nullptr);
  }
}

int get_buffer(de265_decoder_context* context, de265_image_spec* spec, de265_image* image,
               void* user) {
  if (!context || context != decoding) {
    return default_allocation().get_buffer(context, spec, image, user);
  }
  const int planes = spec->format == de265_image_format_mono8 ? 1 : 3;
  const bool half_height = spec->format == de265_image_format_YUV420P8;
  const bool half_width = half_height || spec->format == de265_image_format_YUV422P8;
  std::array<std::unique_ptr<HevcPlane>, 3> made;
  for (int c = 0; c < planes; ++c) {
    made[c] = std::make_unique<HevcPlane>();
    made[c]->width = c && half_width ? (spec->width + 1) / 2 : spec->width;
    made[c]->height = c && half_height ? (spec->height + 1) / 2 : spec->height;
    made[c]->sample_bytes = (hevc().bits(image, c) + 7) / 8;
    if (!made[c]->allocate(std::max(spec->alignment, 16))) return 0;
  }
  for (int c = 0; c < planes; ++c) {
    uint8_t* const memory = made[c]->memory.get();
    const int stride = int(made[c]->stride);
    hevc().set_plane(image, c, memory, stride, made[c].release());  // the image owns it now
  }
  return 1;
}

// False if the default is in read-only memory. Lets the kernel check by copying to it from a pipe.
bool replace_default_allocation() {
  default_allocation();  // before it is replaced
  const de265_image_allocation replaced{get_buffer, release_buffer};
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return false;
  const bool done = ::write(ends[1], &replaced, sizeof replaced) == ssize_t{sizeof replaced} &&
                    ::read(ends[0], const_cast<de265_image_allocation*>(hevc().allocation()),
                           sizeof replaced) == ssize_t{sizeof replaced};
  ::close(ends[0]);
  ::close(ends[1]);
  return done;
}

heif_error new_decoder(void** out) {
  auto session = std::make_unique<HevcSession>();
  session->context = hevc().create();
  if (!session->context) {
    return kNoMemory;
  }
  hevc().set(session->context, DE265_DECODER_PARAM_BOOL_SEI_CHECK_HASH, 1);
  hevc().set(session->context, DE265_DECODER_PARAM_SUPPRESS_FAULTY_PICTURES, 1);
  *out = session.release();
  return kDone;
}

void free_decoder(void* self) { delete static_cast<HevcSession*>(self); }

// `data`: NAL units, each preceded by its length in four bytes.
heif_error push_data(void* self, const void* data, size_t size) {
  HevcSession& session = *static_cast<HevcSession*>(self);
  std::span<const uint8_t> rest(static_cast<const uint8_t*>(data), size);
  while (!rest.empty()) {
    const size_t length = rest.size() < 4 ? SIZE_MAX : big_u32(rest, 0);
    if (length > rest.size() - 4) {
      return {heif_error_Invalid_input, heif_suberror_End_of_data, "an HEVC unit is truncated"};
    }
    hevc().push(session.context, rest.data() + 4, int(length), 0, nullptr);
    rest = rest.subspan(4 + length);
  }
  return kDone;
}

heif_error copied(const de265_image* from, heif_image** out) {
  const HevcLibrary& in = hevc();
  const HeifImages& heif = heif_images();
  const bool is_gray = in.chroma(from) == de265_chroma_mono;
  const int bits = in.bits(from, 0);
  heif_image* image = nullptr;
  heif_error error = heif.create(in.width(from, 0), in.height(from, 0),
                                 is_gray ? heif_colorspace_monochrome : heif_colorspace_YCbCr,
                                 heif_chroma(in.chroma(from)), &image);
  if (error.code != heif_error_Ok) return error;
  constexpr heif_channel kChannels[] = {heif_channel_Y, heif_channel_Cb, heif_channel_Cr};
  for (int c = 0; c < (is_gray ? 1 : 3); ++c) {
    const int width = in.width(from, c), height = in.height(from, c);
    int stride = 0, out_stride = 0;
    const uint8_t* const rows = in.plane(from, c, &stride);
    if (in.bits(from, c) != bits || width <= 0 || height <= 0 || !rows) {
      heif.release(image);
      return damage("its planes do not match");
    }
    error = heif.add_plane(image, kChannels[c], width, height, bits);
    uint8_t* const to =
        error.code == heif_error_Ok ? heif.plane(image, kChannels[c], &out_stride) : nullptr;
    if (!to) {
      heif.release(image);
      return kNoMemory;
    }
    for (int y = 0; y < height; ++y) {
      std::memcpy(to + ptrdiff_t{y} * out_stride, rows + ptrdiff_t{y} * stride,
                  size_t(width) * size_t((bits + 7) / 8));
    }
  }
  // For codes unknown to libheif, its own guess remains.
  if (heif_color_profile_nclx* const profile = heif.new_profile()) {
    heif.set_primaries(profile, uint16_t(in.primaries(from)));
    heif.set_transfer(profile, uint16_t(in.transfer(from)));
    heif.set_matrix(profile, uint16_t(in.matrix(from)));
    profile->full_range_flag = in.full_range(from) != 0;
    heif.set_profile(image, profile);
    heif.free_profile(profile);
  }
  *out = image;
  return kDone;
}

// Whether the warning is about how libde265 decodes, not about the file.
bool is_harmless(de265_error warning) {
  return warning == DE265_WARNING_NO_WPP_CANNOT_USE_MULTITHREADING ||
         warning == DE265_WARNING_NUMBER_OF_THREADS_LIMITED_TO_MAXIMUM ||
         warning == DE265_WARNING_SPS_MISSING_CANNOT_DECODE_SEI;
}

heif_error decode_image(void* self, heif_image** out) {
  HevcSession& session = *static_cast<HevcSession*>(self);
  const HevcLibrary& in = hevc();
  *out = nullptr;
  const Decoding scope(session.context);
  in.flush(session.context);
  int more = 1;
  while (more && !*out) {
    more = 0;
    const de265_error status = in.decode(session.context, &more);
    if (status != DE265_OK && status != DE265_ERROR_WAITING_FOR_INPUT_DATA) {
      return damage(in.text_of(status));
    }
    for (de265_error said; (said = in.warning(session.context)) != DE265_OK;) {
      if (!is_harmless(said)) {
        return damage(in.text_of(said));
      }
    }
    if (const de265_image* const image = in.next(session.context)) {
      const auto* const luma = static_cast<const HevcPlane*>(in.plane_memory(image, 0));
      const bool whole = luma && !luma->has_unwritten_block();
      const heif_error done = whole ? copied(image, out) : damage("parts of it are missing");
      in.release(session.context);
      if (done.code != heif_error_Ok) return done;
    }
    if (status == DE265_ERROR_WAITING_FOR_INPUT_DATA) break;
  }
  if (*out) return kDone;
  return damage("no image in it decodes without damage");
}

int priority_of(heif_compression_format format) {
  return format == heif_compression_HEVC ? 1 : 0;  // the lowest, so that others stay the default
}

constexpr heif_decoder_plugin kPlugin{
    .plugin_api_version = 3,
    .get_plugin_name = [] { return "Headrace's libde265"; },
    .init_plugin = [] {},
    .deinit_plugin = [] {},
    .does_support_format = priority_of,
    .new_decoder = new_decoder,
    .free_decoder = free_decoder,
    .push_data = push_data,
    .decode_image = decode_image,
    .set_strict_decoding = [](void*, int) {},
    .id_name = "headrace",
};

}  // namespace

const RunTimeLibrary& hevc_library() { return hevc().library; }

const char* hevc_decoder_id(decltype(&heif_register_decoder_plugin) register_plugin) {
  static const bool registered = [&] {
    return replace_default_allocation() && register_plugin(&kPlugin).code == heif_error_Ok;
  }();
  return registered ? kPlugin.id_name : nullptr;
}

}  // namespace headrace
