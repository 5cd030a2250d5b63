// SPDX-License-Identifier: Apache-2.0
// Image codecs of plug-ins: signatures that the engine compares itself, and decoders whose headers
// and pixels are checked.
#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "headrace/base/registry.h"
#include "headrace/codecs/codec.h"
#include "headrace/codecs/image/stored_rows.h"
#include "headrace/fields/media.h"
#include "headrace/plugin/checked_call.h"
#include "headrace/plugin/declared.h"
#include "headrace/plugin/plugin_error.h"
#include "headrace/plugin/plugin_view.h"

namespace headrace {
namespace {

constexpr uint32_t kFirstSignature = 24;  // bytes in version 1
constexpr uint32_t kMaxSignatures = 100, kMaxSuffixes = 100;
constexpr uint64_t kMaxWorkingBytes = uint64_t{1} << 40;
constexpr size_t kMaxSuffixBytes = 8;

PluginPart part_of(const PluginCodec& codec) {
  return {"codec", std::string(codec.record.name), &codec.plugin->origin};
}

struct Signature {
  std::array<uint8_t, HEADRACE_SIGNATURE_BYTES> bytes{}, mask{};
  size_t least = 0;  // bytes of a file

  bool matches(std::span<const uint8_t> file) const {
    if (file.size() < least) return false;
    for (size_t i = 0; i < least; ++i) {
      if ((file[i] ^ bytes[i]) & mask[i]) return false;
    }
    return true;
  }
};

class PluginDecoder final : public ImageDecoder {
 public:
  explicit PluginDecoder(const PluginCodec& codec)
      : codec_(codec), table_(codec.table), part_(part_of(codec)) {}
  ~PluginDecoder() override {
    if (created_) destroy_plugin_object(part_, table_.destroy, self_);
  }
  PluginDecoder(const PluginDecoder&) = delete;
  PluginDecoder& operator=(const PluginDecoder&) = delete;

  Result<ImageHeader> read_header(std::span<const uint8_t> bytes) override;
  void decode(std::span<DecodeJob> jobs) override {
    for (DecodeJob& job : jobs) job.result = decode_one(job);
  }

 private:
  bool checked() const { return codec_.plugin->checked.load(std::memory_order_relaxed); }
  bool any_window() const { return (table_.flags & HEADRACE_WINDOWS) != 0; }
  Result<void> create();
  // Calls it on the file, or on a checked copy; `call(bytes, out)` returns the status.
  Result<void> call(std::span<const uint8_t> file, std::span<uint8_t> out, const char* what,
                    const std::function<int32_t(const headrace_bytes& bytes, void* out,
                                                headrace_error* error)>& call) const;
  Result<headrace_image_header> header_of(std::span<const uint8_t> bytes);
  std::string why_not(const headrace_image_header& header) const;
  Result<void> decode_one(const DecodeJob& job);
  Result<void> deliver(const DecodeJob& job, const headrace_image_header& header,
                       const uint8_t* pixels, ptrdiff_t stride);
  void deliver_high_bytes(const DecodeJob& job, int channels, StoredColor color,
                          const uint8_t* pixels, ptrdiff_t stride);

  const PluginCodec& codec_;
  const headrace_codec& table_;
  const PluginPart part_;
  void* self_ = nullptr;
  bool created_ = false;
  StoredRows stored_;
  Buffer pixels_, reduced_;
};

DType sample_of(const headrace_image_header& header) { return *dtype_from(header.dtype); }

size_t pixel_bytes(const headrace_image_header& header) {
  return size_t(header.channels) * (header.dtype.bits / 8);
}

// The colors of channels that have some.
std::optional<StoredColor> color_of(const headrace_image_header& header) {
  if (header.flags & HEADRACE_NO_COLORS || header.channels > 4) return {};
  if (header.flags & HEADRACE_CMYK) return StoredColor::kCMYK;
  constexpr StoredColor kColors[] = {StoredColor::kGray, StoredColor::kGrayAlpha, StoredColor::kRGB,
                                     StoredColor::kRGBA};
  return kColors[header.channels - 1];
}

std::string PluginDecoder::why_not(const headrace_image_header& header) const {
  const std::string size = std::to_string(header.width) + " x " + std::to_string(header.height);
  if (header.width < 1 || header.height < 1) return "an image of " + size + " pixels";
  if (header.channels < 1 || header.channels > HEADRACE_MAX_CHANNELS)
    return std::to_string(header.channels) + " channels, but images must have 1 to 16";
  const std::optional<DType> dtype = dtype_from(header.dtype);
  if (dtype != DType::kUInt8 && dtype != DType::kUInt16 && dtype != DType::kFloat32)
    return "a dtype other than uint8, uint16 and float32";
  if (header.bits < 0 || header.bits > header.dtype.bits)
    return std::to_string(header.bits) + " bits for samples of " +
           std::to_string(header.dtype.bits);
  if (header.orientation < 0 || header.orientation > 8)
    return "the orientation " + std::to_string(header.orientation);
  if (header.flags & ~uint32_t{HEADRACE_CMYK | HEADRACE_NO_COLORS}) return "unknown flags";
  if (header.flags & HEADRACE_CMYK && (header.channels != 4 || dtype != DType::kUInt8))
    return "HEADRACE_CMYK for an image without 4 uint8 channels";
  if (header.working_bytes > kMaxWorkingBytes)
    return std::to_string(header.working_bytes) + " working_bytes";
  return {};
}

Result<void> PluginDecoder::create() {
  if (created_) return {};
  try {
    if (table_.create) {
      create_plugin_object(part_,
                           [&](headrace_error* error) { return table_.create(&self_, error); });
    }
  } catch (const Exception& failed) {
    return failed.error();
  }
  created_ = true;
  return {};
}

Result<void> PluginDecoder::call(
    std::span<const uint8_t> file, std::span<uint8_t> out, const char* what,
    const std::function<int32_t(const headrace_bytes&, void*, headrace_error*)>& call) const {
  PluginMessage message;
  const auto once = [&](const void* in, void* to) {
    const headrace_bytes bytes{static_cast<const uint8_t*>(in), file.size()};
    return message.status_of([&] { return call(bytes, to, message.get()); });
  };
  int32_t status = 0;
  if (checked()) {
    std::string wrong;
    status = checked_call(file, out, 1, part_.call(what), once, wrong);
    if (!wrong.empty()) return broken_plugin(part_, std::string(what) + " " + wrong);
  } else {
    status = once(file.data(), out.data());
  }
  if (status == HEADRACE_OK) return {};
  Error error = plugin_failure(part_, status, message, what);
  if (status != HEADRACE_BAD_RECORD) return error;
  Error damage = corrupt_image(part_.name, message.text());
  damage.note = "decoded by the " + text_of(*part_.origin);
  return damage;
}

Result<headrace_image_header> PluginDecoder::header_of(std::span<const uint8_t> bytes) {
  if (Result<void> created = create(); !created) return std::move(created.error());
  headrace_image_header header;
  Result<void> read = call(bytes, {}, "read_header()",
                           [&](const headrace_bytes& file, void*, headrace_error* error) {
                             header = {};
                             header.struct_size = sizeof header;
                             return table_.read_header(self_, &file, &header, error);
                           });
  if (!read) return std::move(read.error());
  if (const std::string why = why_not(header); !why.empty())
    return broken_plugin(part_, "read_header() returned " + why);
  return header;
}

Result<ImageHeader> PluginDecoder::read_header(std::span<const uint8_t> bytes) {
  const Result<headrace_image_header> read = header_of(bytes);
  if (!read) return read.error();
  const std::optional<StoredColor> color = color_of(*read);
  ImageHeader header;
  header.width = read->width;
  header.height = read->height;
  header.channels = read->channels;
  header.bits = read->bits > 0 ? read->bits : read->dtype.bits;
  header.sample = sample_of(*read);
  header.alpha = color == StoredColor::kGrayAlpha || color == StoredColor::kRGBA;
  header.inks = color == StoredColor::kCMYK;
  header.exif_orientation = std::max(read->orientation, 1);
  // All of the image, or a window of it; a row for conversions.
  size_t rows = 0;
  if (__builtin_mul_overflow(size_t(header.width) * size_t(header.height), pixel_bytes(*read),
                             &rows)) {
    rows = SIZE_MAX / 2;  // too many pixels for any limit
  }
  header.working_bytes = std::min(rows, SIZE_MAX / 2) + size_t(read->working_bytes);
  return header;
}

Result<void> PluginDecoder::decode_one(const DecodeJob& job) {
  const Result<headrace_image_header> header = header_of(job.bytes);
  if (!header) return header.error();
  if (!is_inside(job.window, header->width, header->height) ||
      (job.image_height != 0 && job.image_height != header->height)) {
    return broken_plugin(part_, "read_header() returned two sizes for one file");
  }
  if (job.sample != DType::kUInt8 && job.sample != sample_of(*header))
    return broken_plugin(part_, "read_header() returned two dtypes for one file");
  const bool part = any_window() && !job.strict;
  const Window window = part ? job.window : Window{0, 0, header->width, header->height};
  const size_t stride = size_t(window.width) * pixel_bytes(*header);
  try {
    pixels_.resize(stride * size_t(window.height));
  } catch (const std::bad_alloc&) {
    return too_large_image(part_.name);
  }
  const auto decode = [&](const headrace_bytes& file, void* out, headrace_error* error) {
    int64_t shape[] = {window.height, window.width, header->channels};
    int64_t strides[] = {int64_t{window.width} * header->channels, header->channels, 1};
    headrace_decode work{};
    work.struct_size = sizeof work;
    work.file = file;
    work.header = &*header;
    work.x = window.x;
    work.y = window.y;
    work.output = {.data = out,
                   .device_type = 1,
                   .device_id = 0,
                   .ndim = 3,
                   .dtype = header->dtype,
                   .shape = shape,
                   .strides = strides,
                   .byte_offset = 0};
    return table_.decode(self_, &work, error);
  };
  const std::span<uint8_t> out(pixels_.data(), pixels_.size());
  if (Result<void> done = call(job.bytes, out, "decode()", decode); !done) return done;
  // Buffer::resize() has cleared them.
  const std::span<const uint8_t> after(out.data() + out.size(), Buffer::kPadding);
  if (std::ranges::any_of(after, [](uint8_t byte) { return byte != 0; }))
    return broken_plugin(
        part_, "decode() wrote past its output of " + std::to_string(out.size()) + " bytes");
  const size_t first = size_t(job.window.y - window.y) * stride +
                       size_t(job.window.x - window.x) * pixel_bytes(*header);
  return deliver(job, *header, pixels_.data() + first, ptrdiff_t(stride));
}

Result<void> PluginDecoder::deliver(const DecodeJob& job, const headrace_image_header& header,
                                    const uint8_t* pixels, ptrdiff_t stride) {
  const int channels = header.channels, height = job.window.height;
  const DType sample = sample_of(header);
  const std::optional<StoredColor> color = color_of(header);
  if (job.sample == sample && (job.color == ColorMode::kStored)) {
    const int at_once = rows_per_block(size_t(stride));
    for (int y = 0; y < height; y += at_once) {
      StoredRows::deliver_samples(job, channels, pixels + y * stride, stride, y,
                                  std::min(at_once, height - y));
    }
    return {};
  }
  if (!color || sample == DType::kFloat32) {
    return unsupported_image(part_.name, "of " + std::to_string(channels) + " " +
                                             std::string(name_of(sample)) +
                                             " channels (mode=\"stored\" delivers them unchanged)");
  }
  if (sample == DType::kUInt8) {
    stored_.deliver(job, *color, pixels, stride, 0, height);
  } else if (color == StoredColor::kGray) {
    if (Result<void> allowed = check_sixteen_bit(job); !allowed) return allowed;
    stored_.deliver(job, StoredColor::kGray16, pixels, stride, 0, height);
  } else {
    deliver_high_bytes(job, channels, *color, pixels, stride);
  }
  return {};
}

// Colors of 16 bits as those of other codecs: value / 256.
void PluginDecoder::deliver_high_bytes(const DecodeJob& job, int channels, StoredColor color,
                                       const uint8_t* pixels, ptrdiff_t stride) {
  const size_t samples = size_t(job.window.width) * size_t(channels);
  reduced_.resize(samples);
  for (int y = 0; y < job.window.height; ++y) {
    for (size_t i = 0; i < samples; ++i) {
      uint16_t value;
      std::memcpy(&value, pixels + y * stride + 2 * i, 2);
      reduced_.data()[i] = uint8_t(value >> 8);
    }
    stored_.deliver(job, color, reduced_.data(), ptrdiff_t(samples), y, 1);
  }
}

std::vector<Signature> signatures_of(const DeclarationCheck& check,
                                     const headrace_signatures& list) {
  check.check_list(list.data, list.count, list.size, kFirstSignature, kMaxSignatures, "signatures");
  if (list.count == 0) check.refuse("it has no signature to recognize files by");
  std::vector<Signature> out;
  for (uint32_t i = 0; i < list.count; ++i) {
    const headrace_signature given = copy_of(list, i);
    const uint64_t end = uint64_t{given.offset} + given.length;
    if (!given.bytes) check.refuse("a signature's bytes are NULL");
    if (given.length == 0 || end > HEADRACE_SIGNATURE_BYTES)
      check.refuse("a signature has " + std::to_string(given.length) + " bytes from " +
                   std::to_string(given.offset) + ", but must be within the first 16");
    Signature signature{.least = size_t(end)};
    int bits = 0;
    for (uint32_t k = 0; k < given.length; ++k) {
      const uint8_t mask = given.mask ? given.mask[k] : uint8_t{0xFF};
      signature.mask[given.offset + k] = mask;
      signature.bytes[given.offset + k] = given.bytes[k] & mask;
      bits += std::popcount(mask);
    }
    if (bits < 16)
      check.refuse("a signature has " + std::to_string(bits) + " bits, but must have at least 16");
    out.push_back(signature);
  }
  return out;
}

// Other files that a signature recognizes: "WebP images". Empty: none known.
std::string other_files(const Signature& signature, const Plugin& plugin) {
  for (const auto& other : plugin.codecs) {
    if (other->record.sniff(signature.bytes)) return "the codec " + std::string(other->record.name);
  }
  if (const CodecRecord* codec = codec_of(signature.bytes))
    return "the codec " + std::string(codec->name);
  if (const MediaRecord* media = media_that_begins(signature.bytes))
    return std::string(media->noun) + "s";
  return {};
}

std::vector<std::string_view> suffixes_of(const DeclarationCheck& check,
                                          const headrace_codec& table,
                                          std::deque<std::string>& texts) {
  std::vector<std::string_view> out;
  if (table.suffix_count == 0 || !table.suffixes || table.suffix_count > kMaxSuffixes)
    check.refuse("its list of suffixes is empty or invalid");
  for (uint32_t i = 0; i < table.suffix_count; ++i) {
    const std::string& suffix = texts.emplace_back(check.text(table.suffixes[i], "a suffix"));
    if (suffix.size() > kMaxSuffixBytes || suffix[0] != '.' ||
        !std::ranges::all_of(
            suffix.substr(1),
            [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); }) ||
        suffix.size() < 2) {
      check.refuse("the suffix \"" + suffix + "\" must be . and 1 to 7 of a-z and 0-9");
    }
    for (const MediaRecord* media : media_by_suffix(suffix)) {
      if (media->kind != FieldKind::kImage)
        check.refuse("the suffix \"" + suffix + "\" is one of " + std::string(media->noun) + "s");
    }
    out.push_back(suffix);
  }
  return out;
}

bool is_name_taken(const std::string& name, const Plugin& plugin) {
  for (const MediaRecord* media : all_media()) {
    for (const MediaFormat& format : media->formats()) {
      if (format.name == name) return true;
    }
  }
  return has_part(plugin.codecs, name);
}

}  // namespace

std::unique_ptr<PluginCodec> declared_codec(DeclarationCheck& check, const headrace_codec& table,
                                            const Plugin& plugin) {
  auto out = std::make_unique<PluginCodec>();
  out->plugin = &plugin;
  out->table = table;
  const std::string& name = out->texts.emplace_back(check.text(table.name, "a codec's name"));
  if (!is_lowercase_name(name, "_"))
    check.refuse("the codec \"" + name + "\" must be named by a-z, 0-9 and _");
  if (is_name_taken(name, plugin)) check.refuse("there already is a codec \"" + name + "\"");
  check.set_subject("codec " + name);
  check.check_flags(table.flags, HEADRACE_WINDOWS);
  check.check_function(table.read_header, "read_header");
  check.check_function(table.decode, "decode");
  if (table.create) check.check_function(table.create, "create");
  if (table.destroy) check.check_function(table.destroy, "destroy");
  std::vector<Signature> signatures = signatures_of(check, table.signatures);
  for (const Signature& signature : signatures) {
    if (const std::string other = other_files(signature, plugin); !other.empty())
      check.refuse("it has the same signature as " + other);
  }
  CodecRecord& record = out->record;
  record.name = name;
  record.doc = out->texts.emplace_back(check.text(table.help, "its help") + origin_line(plugin));
  record.suffixes = suffixes_of(check, table, out->texts);
  record.sniff = [signatures = std::move(signatures)](std::span<const uint8_t> first_bytes) {
    return std::ranges::any_of(
        signatures, [&](const Signature& signature) { return signature.matches(first_bytes); });
  };
  const PluginCodec* const codec = out.get();
  record.make = [codec]() -> std::unique_ptr<ImageDecoder> {
    return std::make_unique<PluginDecoder>(*codec);
  };
  record.enters_rows = (table.flags & HEADRACE_WINDOWS) != 0;
  record.plugged = true;
  return out;
}

}  // namespace headrace
