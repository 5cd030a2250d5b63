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

// `member` says where the value goes: LoaderOptions& -> a reference.
template <class Member>
Set into(Member member) {
  return [member](LoaderOptions& options, const ParamValue& value) {
    auto& target = member(options);
    using T = std::remove_reference_t<decltype(target)>;
    if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
      target = static_cast<T>(std::get<int64_t>(value));  // of a seed: the same 64 bits
    } else if constexpr (std::is_same_v<T, std::optional<bool>>) {
      target = std::get<bool>(value);
    } else {
      target = std::get<T>(value);
    }
  };
}

// An option that is one of a few words, each a value of an enumeration.
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
        .doc = "Records a batch of this process; exactly one of batch_size and global_batch_size "
               "is given, and none where the sampler decides (hr.sampling.budget).",
        .minimum = 1},
       kBatches,
       into([](auto& o) -> auto& { return o.batch_size; })},
      {{.name = "global_batch_size",
        .type = ParamType::kInt,
        .doc = "Records a batch of all ranks together.",
        .minimum = 1},
       kBatches,
       into([](auto& o) -> auto& { return o.global_batch_size; })},
      one_of<LastBatch>(
          {.name = "last_batch",
           .type = ParamType::kString,
           .doc = "\"keep\", \"drop\" or \"pad\" the incomplete batch of an epoch; the field "
                  "valid then says which records count.",
           .fallback = std::string("keep")},
          kBatches, [](auto& o) -> auto& { return o.last_batch; },
          {{"keep", LastBatch::kKeep}, {"drop", LastBatch::kDrop}, {"pad", LastBatch::kPad}}),
      one_of<Uneven>(
          {.name = "uneven",
           .type = ParamType::kString,
           .doc = "Allow ranks that do not divide the global batch: their batches differ by one "
                  "record, and batch.weight scales the loss. \"pad\": those that are shorter get "
                  "a row more, whose valid is false. See docs/elastic.md.",
           .fallback = std::string("off")},
          kBatches, [](auto& o) -> auto& { return o.uneven; },
          {{"off", Uneven::kNo}, {"on", Uneven::kYes}, {"pad", Uneven::kPad}}),
      {{.name = "fields",
        .type = ParamType::kStrings,
        .doc = "Names and order of what is delivered; beside the source's fields also id, key and "
               "valid. None: all of the source's."},
       kBatches,
       into([](auto& o) -> auto& { return o.plan.fields; })},
      one_of<MemoryFormat>(
          {.name = "memory_format",
           .type = ParamType::kString,
           .doc = "\"channels_first\" or \"channels_last\" in memory; the shape is (B, C, H, W).",
           .fallback = std::string("channels_first")},
          kBatches, [](auto& o) -> auto& { return o.plan.memory_format; },
          {{"channels_first", MemoryFormat::kChannelsFirst},
           {"channels_last", MemoryFormat::kChannelsLast}}),
      one_of<Ragged>({.name = "ragged",
                      .type = ParamType::kString,
                      .doc = "What becomes of fields whose records differ in shape: \"list\" "
                             "delivers them as lists, \"pad\" as one tensor with lengths and a "
                             "mask, \"packed\" as rows one after another with offsets. None, or "
                             "\"refuse\", refuses them."},
                     kBatches, [](auto& o) -> auto& { return o.plan.ragged; },
                     {{"refuse", Ragged::kRefuse},
                      {"list", Ragged::kList},
                      {"pad", Ragged::kPad},
                      {"packed", Ragged::kPacked}}),
      {{.name = "pad_value",
        .type = ParamType::kStrings,
        .doc = "With ragged=\"pad\": a number for fields by name. Elsewhere signed integers are "
               "padded with -1, class ids of a mask with the dtype's -1, all else with 0."},
       kBatches,
       into([](auto& o) -> auto& { return o.plan.pad_values; })},
      {{.name = "pad_to_multiple_of",
        .type = ParamType::kInt,
        .doc = "With ragged=\"pad\": extents are rounded up to a multiple of it.",
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
        .doc = "Each epoch in another order, a function of (seed, epoch). True: all records. "
               "\"blocks\": blocks of neighbouring records (a few MiB each), and the records in "
               "shuffle_window of them at a time: for disks on which random reads are slow. "
               "\"streams\": blocks dealt to streams, of which each machine reads its own: for "
               "data far away and several machines; see docs/combining.md.",
        .fallback = false},
       kOrder,
       into([](auto& o) -> auto& { return o.shuffle; })},
      {{.name = "shuffle_window",
        .type = ParamType::kInt,
        .doc = "Blocks whose records are mixed: with shuffle=\"blocks\" of all (None: 32), with "
               "\"streams\" of each stream (None: 8).",
        .fallback = int64_t{0},
        .minimum = 0,
        .maximum = kInt32},
       kOrder,
       into([](auto& o) -> auto& { return o.shuffle_window; })},
      {{.name = "seed",
        .type = ParamType::kInt,
        .doc = "Of every order and every random draw: any 64 bits.",
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
        .doc = "Threads that read, decode and transform. None: the allowed cores, divided by the "
               "ranks on the machine.",
        .minimum = 1,
        .maximum = kInt32},
       kSpeed,
       into([](auto& o) -> auto& { return o.threads; })},
      {{.name = "memory_limit",
        .type = ParamType::kInt,
        .doc = "All that the engine may hold: bytes, or \"2 GiB\". None: a quarter of what is "
               "available.",
        .minimum = 1},
       kSpeed,
       into([](auto& o) -> auto& { return o.memory_limit; })},
      {{.name = "cache",
        .type = ParamType::kInt,
        .doc = "Bytes of memory_limit for records as they are stored: what was read first stays in "
               "memory for all epochs, shared by the loaders of this process.",
        .minimum = 1},
       kSpeed,
       into([](auto& o) -> auto& { return o.cache; })},
      {{.name = "disk_cache",
        .type = ParamType::kInt,
        .doc =
            "Bytes of local disk, in HEADRACE_CACHE, for blocks of files in storages that answer "
            "late: shared by all processes of the machine, for all epochs and later runs. None: "
            "as HEADRACE_DISK_CACHE says, or no such cache.",
        .minimum = 1},
       kSpeed,
       into([](auto& o) -> auto& { return o.disk_cache; })},
      one_of<ResidentUse>(
          {.name = "resident",
           .type = ParamType::kString,
           .doc = "Keep all records in memory as the steps before the first random one leave them "
                  "(uint8), inside memory_limit: the same batches, decoded once. \"auto\": where "
                  "they take at most half of memory_limit. They are made when the first batch is "
                  "asked for; files that change after that are not read again, and one that is "
                  "found changed at the start of an epoch is warned of. See docs/resident.md.",
           .fallback = std::string("off")},
          kSpeed, [](auto& o) -> auto& { return o.resident; },
          {{"off", ResidentUse::kOff}, {"auto", ResidentUse::kAuto}, {"on", ResidentUse::kOn}}),
      one_of<RowIndexUse>(
          {.name = "index",
           .type = ParamType::kString,
           .doc = "Where in each JPEG its rows begin, for less decoding and the same pixels. "
                  "\"use\" the one that headrace.index made, if it did; \"auto\": also note it "
                  "while decoding, so that the next epochs are faster; a path of one made "
                  "elsewhere; False.",
           .fallback = std::string("use")},
          kSpeed, [](auto& o) -> auto& { return o.row_index; },
          {{"off", RowIndexUse::kOff}, {"use", RowIndexUse::kUse}, {"auto", RowIndexUse::kAuto}}),
      {{.name = "index_file", .type = ParamType::kString, .doc = {}, .fallback = std::string()},
       kInternal,
       into([](auto& o) -> auto& { return o.row_index_file; })},
      one_of<FinishUse>(
          {.name = "finish",
           .type = ParamType::kString,
           .doc =
               "Of batches that are copied to a device: who does the last of the work on "
               "pictures (ToDtype, Normalize, tables, the last flip, an erased rectangle, layout, "
               "MixUp). \"auto\": the device, where bytes can cross in place of floats; \"host\": "
               "the threads; \"device\", or an error. T.ToDevice() in the list says where it "
               "begins. The same batches; see docs/cuda.md.",
           .fallback = std::string("auto")},
          kSpeed, [](auto& o) -> auto& { return o.finish; },
          {{"auto", FinishUse::kAuto}, {"host", FinishUse::kHost}, {"device", FinishUse::kDevice}}),
      one_of<DecodeUse>(
          {.name = "decode",
           .type = ParamType::kString,
           .doc = "Of batches that are copied to a device: who decodes baseline JPEGs whose rows "
                  "are known (index=, dense packs) and resizes them. \"cpu\": the threads; "
                  "\"device\": the device, and the threads whatever it does not take, or an error "
                  "where that is all; \"auto\": a GPU that can decode at least nine of ten. The "
                  "same batches; see docs/cuda.md.",
           .fallback = std::string("auto")},
          kSpeed, [](auto& o) -> auto& { return o.decode; },
          {{"auto", DecodeUse::kAuto}, {"cpu", DecodeUse::kCpu}, {"device", DecodeUse::kDevice}}),
      {{.name = "python_workers",
        .type = ParamType::kInt,
        .doc = "Processes for the steps in Python, instead of one thread of this one: for steps "
               "that hold the GIL. The same batches; see docs/migrating.md.",
        .fallback = int64_t{0},
        .minimum = 0,
        .maximum = kInt32},
       kSpeed,
       into([](auto& o) -> auto& { return o.python_workers; })},
      {{.name = "patience",
        .type = ParamType::kFloat,
        .doc = "Seconds that a wait for a batch may take before a warning says what it waits for. "
               "0: never.",
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
      {{.name = "looks", .type = ParamType::kBool, .doc = {}, .fallback = false},
       kInternal,
       into([](auto& o) -> auto& { return o.plan.looks; })},
  };
}

std::vector<LoaderOption> bad_data_options() {
  return {
      one_of<OnError>(
          {.name = "on_error",
           .type = ParamType::kString,
           .doc = "What a bad record does: \"raise\" ends the run, \"substitute\" puts another "
                  "record in its row, \"skip\" leaves the row out of its batch.",
           .fallback = std::string("raise")},
          kBadData, [](auto& o) -> auto& { return o.on_error; },
          {{"raise", OnError::kRaise},
           {"substitute", OnError::kSubstitute},
           {"skip", OnError::kSkip}}),
      {{.name = "error_budget",
        .type = ParamType::kInt,
        .doc = "How many bad records an epoch may have, as a count, a share or both. None is "
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
        .doc = "Seconds that one record's bytes are waited for in an object store, on a web server "
               "or in a filesystem object; later it is a bad record. None: no limit, and the order "
               "never depends on how quick they are.",
        .minimum = 0.001,
        .maximum = 86400},
       kBadData,
       into([](auto& o) -> auto& { return o.record_timeout; })},
      {{.name = "quarantine",
        .type = ParamType::kString,
        .doc = "A JSON-lines file that lists the bad records."},
       kBadData,
       into([](auto& o) -> auto& { return o.quarantine; })},
      one_of<bool>(
          {.name = "damaged",
           .type = ParamType::kString,
           .doc = "\"refuse\": a JPEG that lacks rows which are wanted is a bad record, as "
                  "every PNG that does; other damage is repaired as libjpeg does it, "
                  "counted in stats() and said once an epoch. \"repair\" delivers grey "
                  "where rows are missing.",
           .fallback = std::string("refuse")},
          kBadData, [](auto& o) -> auto& { return o.plan.repair; },
          {{"refuse", false}, {"repair", true}}),
      {{.name = "strict",
        .type = ParamType::kBool,
        .doc = "Any damage inside a picture is an error, also what decoders repair.",
        .fallback = false},
       kBadData,
       into([](auto& o) -> auto& { return o.plan.strict; })},
      one_of<PictureMode>(
          {.name = "mode",
           .type = ParamType::kString,
           .doc =
               "What encoded images become, as Pillow names it: \"RGB\", grey \"L\", \"RGBA\" "
               "with the file's alpha, or 255; \"stored\" keeps channels and depth (uint8, uint16, "
               "float32) of the first picture, which all others must have too.",
           .fallback = std::string("RGB")},
          kBadData, [](auto& o) -> auto& { return o.plan.mode; },
          {{"RGB", PictureMode::kRGB},
           {"L", PictureMode::kL},
           {"RGBA", PictureMode::kRGBA},
           {"stored", PictureMode::kStored}}),
      one_of<SixteenBit>({.name = "sixteen_bit",
                          .type = ParamType::kString,
                          .doc = "Grey pictures of 16 bits are refused; \"high_byte\" delivers "
                                 "value / 256, \"clip\" min(value, 255), as Pillow's convert() "
                                 "does.",
                          .fallback = std::string("refuse")},
                         kBadData, [](auto& o) -> auto& { return o.plan.sixteen_bit; },
                         {{"refuse", SixteenBit::kRefuse},
                          {"high_byte", SixteenBit::kHighByte},
                          {"clip", SixteenBit::kClip}}),
      {{.name = "page",
        .type = ParamType::kInt,
        .doc = "Which picture of a file that holds several pages (TIFF), from 0.",
        .fallback = int64_t{0},
        .minimum = 0,
        .maximum = 65535},
       kBadData,
       into([](auto& o) -> auto& { return o.plan.page; })},
      {{.name = "exif_orientation",
        .type = ParamType::kBool,
        .doc = "Turn pictures upright as their Exif tag says. False: deliver them as they are "
               "stored. None: the same, and a warning where a tag says that they lie on a side."},
       kBadData,
       into([](auto& o) -> auto& { return o.plan.exif_orientation; })},
      {{.name = "max_pixels",
        .type = ParamType::kInt,
        .doc = "A cap on a picture's declared size. None: 268,435,456, a square of 16,384.",
        .minimum = 1},
       kBadData,
       into([](auto& o) -> auto& { return o.plan.limits.max_pixels; })},
      {{.name = "isolate",
        .type = ParamType::kBool,
        .doc =
            "Processes that decode videos give up the right to do anything else. False: they keep "
            "it, for files that you trust, where the system does not let them give it up.",
        .fallback = true},
       kBadData,
       into([](auto& o) -> auto& { return o.plan.video.isolate; })},
      {{.name = "video_timeout_s",
        .type = ParamType::kFloat,
        .doc = "Seconds that decoding the frames of one record's video may take.",
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
