// SPDX-License-Identifier: Apache-2.0
#include "headrace/loader/options.h"

#include <limits>
#include <optional>
#include <type_traits>
#include <utility>

namespace headrace {
namespace {

constexpr double kInt32 = std::numeric_limits<int32_t>::max();

using Set = std::function<void(LoaderOptions&, const ParamValue&)>;

// `member`: the destination of the value: LoaderOptions& -> a reference.
template <class Member>
Set into(Member member) {
  return [member](LoaderOptions& options, const ParamValue& value) {
    auto& target = member(options);
    using T = std::remove_reference_t<decltype(target)>;
    if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
      target = static_cast<T>(std::get<int64_t>(value));  // for a seed: the same 64 bits
    } else if constexpr (std::is_same_v<T, std::optional<bool>>) {
      target = std::get<bool>(value);
    } else {
      target = std::get<T>(value);
    }
  };
}

// An option with a few allowed words, each a value of an enumeration.
template <class Enum, class Member>
LoaderOption one_of(Param param, std::string_view group, Member member,
                    std::vector<std::pair<std::string_view, Enum>> words) {
  for (const auto& [word, value] : words) param.choices.push_back(word);
  return {std::move(param), group,
          [member, words](LoaderOptions& options, const ParamValue& value) {
            for (const auto& [word, meant] : words) {
              if (word == std::get<std::string>(value)) member(options) = meant;
            }
          }};
}

constexpr std::string_view kBatches = "Batches", kOrder = "Order", kSpeed = "Speed and memory",
                           kBadData = "Bad data", kInternal = {};

std::vector<LoaderOption> batch_options() {
  return {
      {{.name = "batch_size",
        .type = ParamType::kInt,
        .doc = "Number of records per batch in this process. Specify either batch_size or "
               "global_batch_size, or neither if the sampler sets the batch sizes "
               "(hr.sampling.budget).",
        .minimum = 1},
       kBatches,
       into([](auto& o) -> auto& { return o.batch_size; })},
      {{.name = "global_batch_size",
        .type = ParamType::kInt,
        .doc = "Number of records per batch, across all ranks.",
        .minimum = 1},
       kBatches,
       into([](auto& o) -> auto& { return o.global_batch_size; })},
      one_of<LastBatch>(
          {.name = "last_batch",
           .type = ParamType::kString,
           .doc = "What to do with the incomplete last batch of an epoch: \"keep\", \"drop\" or "
                  "\"pad\"; the field valid is False for padding.",
           .fallback = std::string("keep")},
          kBatches, [](auto& o) -> auto& { return o.last_batch; },
          {{"keep", LastBatch::kKeep}, {"drop", LastBatch::kDrop}, {"pad", LastBatch::kPad}}),
      one_of<Uneven>(
          {.name = "uneven",
           .type = ParamType::kString,
           .doc =
               "Whether to allow world sizes that do not divide the global batch: batch sizes then "
               "differ by one, and batch.weight scales the loss. \"pad\": shorter batches get one "
               "more row, with valid=False. See docs/guide/elastic.md.",
           .fallback = std::string("off")},
          kBatches, [](auto& o) -> auto& { return o.uneven; },
          {{"off", Uneven::kNo}, {"on", Uneven::kYes}, {"pad", Uneven::kPad}}),
      {{.name = "fields",
        .type = ParamType::kStrings,
        .doc = "Names and order of the fields to deliver; id, key and valid are available in "
               "addition to the source's fields. None: all fields of the source."},
       kBatches,
       into([](auto& o) -> auto& { return o.plan.fields; })},
      one_of<MemoryFormat>(
          {.name = "memory_format",
           .type = ParamType::kString,
           .doc = "Memory layout of images: \"channels_first\" or \"channels_last\"; the shape is "
                  "(B, C, H, W) either way.",
           .fallback = std::string("channels_first")},
          kBatches, [](auto& o) -> auto& { return o.plan.memory_format; },
          {{"channels_first", MemoryFormat::kChannelsFirst},
           {"channels_last", MemoryFormat::kChannelsLast}}),
      one_of<Ragged>(
          {.name = "ragged",
           .type = ParamType::kString,
           .doc = "How to batch fields whose records differ in shape: \"list\" delivers lists, "
                  "\"pad\" one tensor with lengths and a mask, \"packed\" concatenated values with "
                  "offsets. None or \"error\": raise an error."},
          kBatches, [](auto& o) -> auto& { return o.plan.ragged; },
          {{"error", Ragged::kRefuse},
           {"list", Ragged::kList},
           {"pad", Ragged::kPad},
           {"packed", Ragged::kPacked}}),
      {{.name = "pad_value",
        .type = ParamType::kStrings,
        .doc =
            "With ragged=\"pad\": padding values by field name. Default: -1 for signed integers, "
            "the largest value (255 for uint8) for unsigned masks, 0 otherwise."},
       kBatches,
       into([](auto& o) -> auto& { return o.plan.pad_values; })},
      {{.name = "pad_to_multiple_of",
        .type = ParamType::kInt,
        .doc = "With ragged=\"pad\": round padded extents up to a multiple of this.",
        .fallback = int64_t{1},
        .minimum = 1,
        .maximum = kInt32},
       kBatches,
       into([](auto& o) -> auto& { return o.plan.pad_multiple; })},
  };
}

std::vector<LoaderOption> order_options() {
  return {
      {{.name = "shuffle",
        .type = ParamType::kBool,
        .doc =
            "Shuffle each epoch, as a function of (seed, epoch). True: over all records. "
            "\"blocks\": shuffle blocks of neighboring records (a few MiB each), and the records "
            "within windows of shuffle_window blocks, for disks with slow random reads. "
            "\"streams\": distribute blocks over streams, each of which is read by one machine, "
            "for remote data and several machines. See docs/guide/data/combining.md.",
        .fallback = false},
       kOrder,
       into([](auto& o) -> auto& { return o.shuffle; })},
      {{.name = "shuffle_window",
        .type = ParamType::kInt,
        .doc = "Number of blocks whose records are mixed: in total with shuffle=\"blocks\" (None: "
               "32), per stream with shuffle=\"streams\" (None: 8).",
        .fallback = int64_t{0},
        .minimum = 0,
        .maximum = kInt32},
       kOrder,
       into([](auto& o) -> auto& { return o.shuffle_window; })},
      {{.name = "seed",
        .type = ParamType::kInt,
        .doc = "Seeds shuffling and all random transforms; any 64-bit value.",
        .fallback = int64_t{0}},
       kOrder,
       into([](auto& o) -> auto& { return o.seed; })},
      {{.name = "lends", .type = ParamType::kBool, .doc = {}, .fallback = false},
       kInternal,
       into([](auto& o) -> auto& { return o.lends; })},
      {{.name = "rank", .type = ParamType::kInt, .doc = {}, .fallback = int64_t{0}},
       kInternal,
       into([](auto& o) -> auto& { return o.rank; })},
      {{.name = "world_size", .type = ParamType::kInt, .doc = {}, .fallback = int64_t{1}},
       kInternal,
       into([](auto& o) -> auto& { return o.world_size; })},
  };
}

std::vector<LoaderOption> speed_options() {
  return {
      {{.name = "threads",
        .type = ParamType::kInt,
        .doc = "Number of threads that read, decode and transform. None: the available cores "
               "divided by the ranks on this machine.",
        .minimum = 1,
        .maximum = kInt32},
       kSpeed,
       into([](auto& o) -> auto& { return o.threads; })},
      {{.name = "memory_limit",
        .type = ParamType::kInt,
        .doc = "Limit on all memory used by the engine: bytes, or a string like \"2 GiB\". "
               "None: a quarter of the available memory.",
        .minimum = 1},
       kSpeed,
       into([](auto& o) -> auto& { return o.memory_limit; })},
      {{.name = "cache",
        .type = ParamType::kInt,
        .doc = "Part of memory_limit, in bytes, for a cache of undecoded records; the first "
               "records read stay in the cache for all epochs. The loaders of a process share one "
               "cache, and so do the ranks of a machine, each of which counts an equal part toward "
               "its memory_limit.",
        .minimum = 1},
       kSpeed,
       into([](auto& o) -> auto& { return o.cache; })},
      one_of<CacheScope>(
          {.name = "cache_scope",
           .type = ParamType::kString,
           .doc = "Which processes share cache=. \"auto\": the ranks of this machine "
                  "(LOCAL_WORLD_SIZE); if they cannot share memory, each has its own cache, with "
                  "its share of the bytes. \"node\": all processes of this user on this machine "
                  "that request the same cache size for the same records, or an error. "
                  "\"process\": none; each process has its own cache of the full size. See "
                  "docs/guide/data/combining.md.",
           .fallback = std::string("auto")},
          kSpeed, [](auto& o) -> auto& { return o.cache_scope; },
          {{"auto", CacheScope::kAuto},
           {"node", CacheScope::kNode},
           {"process", CacheScope::kProcess}}),
      {{.name = "disk_cache",
        .type = ParamType::kInt,
        .doc = "Size in bytes of the disk cache for blocks of remote files (in HEADRACE_CACHE), "
               "shared by all processes of the machine and kept for later runs. None: the value of "
               "HEADRACE_DISK_CACHE, else no disk cache.",
        .minimum = 1},
       kSpeed,
       into([](auto& o) -> auto& { return o.disk_cache; })},
      one_of<ResidentUse>(
          {.name = "resident",
           .type = ParamType::kString,
           .doc = "Whether to keep all records in memory as they are before the first random "
                  "transform (uint8), within memory_limit: the same batches, but each record is "
                  "decoded only once. \"auto\": if they take at most half of memory_limit. Records "
                  "are loaded when the first batch is requested; later changes to files are not "
                  "read, but cause a warning at the start of the next epoch. See "
                  "docs/guide/small-data.md.",
           .fallback = std::string("off")},
          kSpeed, [](auto& o) -> auto& { return o.resident; },
          {{"off", ResidentUse::kOff}, {"auto", ResidentUse::kAuto}, {"on", ResidentUse::kOn}}),
      one_of<RowIndexUse>(
          {.name = "index",
           .type = ParamType::kString,
           .doc = "Row index for JPEGs: crops decode fewer rows, to the same pixels. \"use\": the "
                  "index made by headrace.index, if there is one; \"auto\": also build one while "
                  "decoding, for the following epochs; a path: the index at that path; False: no "
                  "index.",
           .fallback = std::string("use")},
          kSpeed, [](auto& o) -> auto& { return o.row_index; },
          {{"off", RowIndexUse::kOff}, {"use", RowIndexUse::kUse}, {"auto", RowIndexUse::kAuto}}),
      {{.name = "index_file", .type = ParamType::kString, .doc = {}, .fallback = std::string()},
       kInternal,
       into([](auto& o) -> auto& { return o.row_index_file; })},
      one_of<FinishUse>(
          {.name = "finish",
           .type = ParamType::kString,
           .doc = "Where batches copied to a device are finished (ToDtype, Normalize, lookup "
                  "tables, the last flip, erasing, layout, MixUp). \"auto\": on the device, if "
                  "uint8 can be copied instead of floats; \"cpu\": by the threads; \"device\": on "
                  "the device, or an error. T.ToDevice() in the list of transforms marks where "
                  "this part starts. Same batches; see docs/guide/gpu.md.",
           .fallback = std::string("auto")},
          kSpeed, [](auto& o) -> auto& { return o.finish; },
          {{"auto", FinishUse::kAuto}, {"cpu", FinishUse::kHost}, {"device", FinishUse::kDevice}}),
      one_of<DecodeUse>(
          {.name = "decode",
           .type = ParamType::kString,
           .doc =
               "Where baseline JPEGs with a row index (index=, dense packs) are decoded and "
               "resized when batches are copied to a device. \"cpu\": by the threads; \"device\": "
               "on the device, while threads decode images that it does not support; an error if "
               "it supports none; \"auto\": on the GPU, if it can decode at least 90 % of the "
               "images. Same batches; see docs/guide/gpu.md.",
           .fallback = std::string("auto")},
          kSpeed, [](auto& o) -> auto& { return o.decode; },
          {{"auto", DecodeUse::kAuto}, {"cpu", DecodeUse::kCpu}, {"device", DecodeUse::kDevice}}),
      {{.name = "python_workers",
        .type = ParamType::kInt,
        .doc = "Number of worker processes that run Python transforms, instead of one thread of "
               "this process; useful for transforms that hold the GIL. Same batches; see "
               "docs/guide/transforms/python-workers.md.",
        .fallback = int64_t{0},
        .minimum = 0,
        .maximum = kInt32},
       kSpeed,
       into([](auto& o) -> auto& { return o.python_workers; })},
      {{.name = "patience",
        .type = ParamType::kFloat,
        .doc =
            "Seconds to wait for a batch before a warning says what the loader is waiting for. 0: "
            "never warn.",
        .fallback = 60.0,
        .minimum = 0},
       kSpeed,
       into([](auto& o) -> auto& { return o.patience_seconds; })},
      {{.name = "view", .type = ParamType::kBool, .doc = {}, .fallback = false},
       kInternal,
       into([](auto& o) -> auto& { return o.view; })},
      {{.name = "fraction", .type = ParamType::kFloat, .doc = {}, .fallback = 1.0},
       kInternal,
       into([](auto& o) -> auto& { return o.fraction; })},
      {{.name = "resident_on_device", .type = ParamType::kBool, .doc = {}, .fallback = true},
       kInternal,
       into([](auto& o) -> auto& { return o.resident_on_device; })},
      {{.name = "on_demand", .type = ParamType::kBool, .doc = {}, .fallback = false},
       kInternal,
       into([](auto& o) -> auto& { return o.on_demand; })},
      {{.name = "for_inspection", .type = ParamType::kBool, .doc = {}, .fallback = false},
       kInternal,
       into([](auto& o) -> auto& { return o.plan.for_inspection; })},
  };
}

std::vector<LoaderOption> bad_data_options() {
  return {
      one_of<OnError>(
          {.name = "on_error",
           .type = ParamType::kString,
           .doc =
               "What to do with a bad record: \"raise\" ends the run, \"substitute\" replaces it "
               "with another record, \"skip\" removes its row from the batch.",
           .fallback = std::string("raise")},
          kBadData, [](auto& o) -> auto& { return o.on_error; },
          {{"raise", OnError::kRaise},
           {"substitute", OnError::kSubstitute},
           {"skip", OnError::kSkip}}),
      {{.name = "error_budget",
        .type = ParamType::kInt,
        .doc = "How many bad records are allowed per epoch: a count, a fraction or both. None: "
               "(1000, 0.01).",
        .fallback = int64_t{1000},
        .minimum = 0},
       kBadData,
       into([](auto& o) -> auto& { return o.error_budget; })},
      {{.name = "error_rate", .type = ParamType::kFloat, .doc = {}, .fallback = 0.01},
       kInternal,
       into([](auto& o) -> auto& { return o.error_rate; })},
      {{.name = "record_timeout",
        .type = ParamType::kFloat,
        .doc = "Seconds to wait for the bytes of one record from an object store, a web server or "
               "a filesystem object; a record that takes longer is a bad record. For a stream: "
               "seconds for its next record, after which the run ends. None: no limit, so batches "
               "never depend on timing.",
        .minimum = 0.001,
        .maximum = 86400},
       kBadData,
       into([](auto& o) -> auto& { return o.record_timeout; })},
      {{.name = "quarantine",
        .type = ParamType::kString,
        .doc = "A JSON-lines file to which bad records are written."},
       kBadData,
       into([](auto& o) -> auto& { return o.quarantine; })},
      one_of<bool>(
          {.name = "damaged",
           .type = ParamType::kString,
           .doc = "\"error\": a JPEG or PNG that lacks rows inside the crop is a bad record; "
                  "other damage is repaired as libjpeg does, counted in stats() and reported once "
                  "per epoch. \"repair\": missing rows are gray.",
           .fallback = std::string("error")},
          kBadData, [](auto& o) -> auto& { return o.plan.repair; },
          {{"error", false}, {"repair", true}}),
      {{.name = "strict",
        .type = ParamType::kBool,
        .doc = "Whether to treat any corruption inside an image as an error, even if the decoder "
               "could repair it.",
        .fallback = false},
       kBadData,
       into([](auto& o) -> auto& { return o.plan.strict; })},
      one_of<PictureMode>(
          {.name = "mode",
           .type = ParamType::kString,
           .doc = "Color mode to which encoded images are converted, named as in Pillow: \"RGB\", "
                  "grayscale \"L\", \"RGBA\" with the file's alpha (255 if it has none); "
                  "\"stored\" keeps the channels and depth (uint8, uint16, float32) of the first "
                  "image, which all others must share.",
           .fallback = std::string("RGB")},
          kBadData, [](auto& o) -> auto& { return o.plan.mode; },
          {{"RGB", PictureMode::kRGB},
           {"L", PictureMode::kL},
           {"RGBA", PictureMode::kRGBA},
           {"stored", PictureMode::kStored}}),
      one_of<SixteenBit>(
          {.name = "sixteen_bit",
           .type = ParamType::kString,
           .doc = "How to convert 16-bit grayscale images to 8 bits: \"high_byte\" delivers value "
                  "/ 256, \"clip\" min(value, 255), as Pillow's convert() does. By default, such "
                  "images raise an error.",
           .fallback = std::string("error")},
          kBadData, [](auto& o) -> auto& { return o.plan.sixteen_bit; },
          {{"error", SixteenBit::kRefuse},
           {"high_byte", SixteenBit::kHighByte},
           {"clip", SixteenBit::kClip}}),
      {{.name = "page",
        .type = ParamType::kInt,
        .doc = "Page of a multi-page file (TIFF), starting at 0.",
        .fallback = int64_t{0},
        .minimum = 0,
        .maximum = 65535},
       kBadData,
       into([](auto& o) -> auto& { return o.plan.page; })},
      {{.name = "exif_orientation",
        .type = ParamType::kBool,
        .doc = "Whether to rotate images upright by their Exif tag. False: deliver them as "
               "stored. None: as stored, with a warning if an Exif tag requires a rotation."},
       kBadData,
       into([](auto& o) -> auto& { return o.plan.exif_orientation; })},
      {{.name = "max_pixels",
        .type = ParamType::kInt,
        .doc = "Maximum number of pixels that an image's header may declare. None: 268,435,456 "
               "pixels (16,384 x 16,384).",
        .minimum = 1},
       kBadData,
       into([](auto& o) -> auto& { return o.plan.limits.max_pixels; })},
      {{.name = "isolate",
        .type = ParamType::kBool,
        .doc = "Whether to decode videos in a sandboxed process (seccomp). False: without the "
               "sandbox, for trusted files on systems that do not support it.",
        .fallback = true},
       kBadData,
       into([](auto& o) -> auto& { return o.plan.video.isolate; })},
      {{.name = "video_timeout",
        .type = ParamType::kFloat,
        .doc = "Time limit for decoding the frames of one record's video, in seconds.",
        .fallback = 60.0,
        .minimum = 0.001,
        .maximum = 86400},
       kBadData,
       into([](auto& o) -> auto& { return o.plan.video.seconds; })},
  };
}

std::vector<LoaderOption> all_options() {
  std::vector<LoaderOption> all;
  for (auto* part : {batch_options, order_options, speed_options, bad_data_options}) {
    for (LoaderOption& option : part()) all.push_back(std::move(option));
  }
  return all;
}

}  // namespace

const std::vector<LoaderOption>& loader_options() {
  static const auto* options = new std::vector<LoaderOption>(all_options());
  return *options;
}

LoaderOptions loader_options_from(const std::map<std::string, ParamValue>& given) {
  std::vector<Param> params;
  for (const LoaderOption& option : loader_options()) params.push_back(option.param);
  const Arguments arguments("Loader", params, given);
  LoaderOptions out;
  for (const LoaderOption& option : loader_options()) {
    if (!arguments.is_none(option.param.name)) {
      option.set(out, arguments.value(option.param.name));
    }
  }
  return out;
}

}  // namespace headrace
