// SPDX-License-Identifier: Apache-2.0
// Sources: opening, inspecting, reading single records.
#include "headrace/sources/source.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "bindings/bindings.h"
#include "headrace/base/error.h"
#include "headrace/codecs/audio/audio_clip.h"
#include "headrace/fields/kind.h"
#include "headrace/fields/media.h"
#include "headrace/fields/pictures.h"
#include "headrace/formats/format.h"
#include "headrace/formats/shards/shard_files.h"
#include "headrace/image/render.h"
#include "headrace/sources/image_sizes.h"
#include "headrace/sources/named_files.h"
#include "headrace/sources/simulated.h"
#include "headrace/sources/sound_forms.h"
#include "headrace/sources/value_parts.h"

namespace headrace::python {
namespace {

SourceHandle open(const nb::str& name, const nb::dict& arguments, nb::handle progress) {
  const std::string path = bytes_from_str(name);
  auto given = params_from_dict(arguments);
  const Progress report = progress_from(progress);
  ReleasedGil no_gil;
  return {open_source(path, given, report)};
}

const MediaRecord& media_of_kind(std::string_view kind) {
  const MediaRecord* const media = media_of(kind_from_name(kind));
  if (!media) throw nb::value_error((std::string(kind) + " has no files").c_str());
  return *media;
}

int64_t checked_record(const SourceHandle& self, int64_t index) {
  return checked_index(index, self.source->size(), "record");
}

// The fields of one record, or the field of this name, with pictures as stored.
nb::dict read_record(const SourceHandle& self, int64_t index, std::string_view only) {
  const Source& source = *self.source;
  checked_record(self, index);
  std::vector<bool> wanted;
  for (const Field& field : source.schema()) wanted.push_back(only.empty() || field.name == only);
  RecordData record;
  {
    ReleasedGil no_gil;
    source.read({&index, 1}, wanted, {&record, 1});
  }
  if (!record.result) throw Exception(record.result.error());
  nb::dict out;
  for (size_t i = 0; i < source.schema().size(); ++i) {
    const Field& field = source.schema()[i];
    if (wanted[i]) out[field.name.c_str()] = value_of(field, record.fields[i]);
  }
  return out;
}

// Why it cannot be decoded, judging by its header: "HR0340 ..."; empty if it can.
std::string media_error(const nb::bytes& encoded, std::string_view kind) {
  Buffer bytes(encoded.size());
  std::memcpy(bytes.data(), encoded.c_str(), encoded.size());
  ReleasedGil no_gil;
  Renderer renderer;
  const Result<void> good = media_of_kind(kind).check(bytes.bytes(), renderer);
  return good ? "" : std::string(good.error().code->id) + " " + good.error().what;
}

// Suffix of the codec that reads it: "png"; empty if none does.
std::string media_suffix(const nb::bytes& first_bytes, std::string_view kind) {
  const auto* bytes = reinterpret_cast<const uint8_t*>(first_bytes.c_str());
  const std::string suffix = suffix_for(media_of_kind(kind), {bytes, first_bytes.size()});
  return suffix.empty() ? suffix : suffix.substr(1);
}

Array integer_column(const SourceHandle& self, std::string_view field) {
  std::vector<int64_t> values;
  {
    ReleasedGil no_gil;
    values = self.source->integer_column(field);
  }
  Array out = make_array(DType::kInt64, {static_cast<int64_t>(values.size())});
  if (!values.empty()) std::memcpy(out.view.data, values.data(), out.view.dense_bytes());
  return out;
}

size_t checked_field(const Source& source, const std::string& name) {
  const size_t number = field_number(source.schema(), name);
  if (number == source.schema().size()) throw nb::value_error(("no field " + name).c_str());
  return number;
}

// Three numbers per record. numbers: returns the three numbers of one record, as a std::array.
template <class Records, class Numbers>
Array rows_of_three(const Records& records, Numbers numbers) {
  Array out = make_array(DType::kInt64, {std::ssize(records), 3});
  auto* to = static_cast<int64_t*>(out.view.data);
  for (const auto& record : records) to = std::ranges::copy(numbers(record), to).out;
  return out;
}

// Frames, sample rate and channels of every record's audio.
Array sound_forms_of(const SourceHandle& self, const std::string& name, nb::handle progress) {
  const size_t number = checked_field(*self.source, name);
  const Field& field = self.source->schema()[number];
  if (field.kind != FieldKind::kAudio || !field.encoded) {
    throw nb::value_error(("\"" + name + "\" is not a field of encoded audio clips").c_str());
  }
  const Progress report = progress_from(progress);
  SoundForms forms;
  {
    ReleasedGil no_gil;
    forms = read_sound_forms(*self.source, number, report);
  }
  return rows_of_three(*forms, [](const SoundForm& form) {
    return std::array<int64_t, 3>{form.frames, form.sample_rate, form.channels};
  });
}

// Height, width and Exif orientation of every record's image.
Array image_sizes_of(const SourceHandle& self, const std::string& name, int threads,
                     nb::handle progress) {
  const size_t number = checked_field(*self.source, name);
  const Field& field = self.source->schema()[number];
  if (!is_picture(field.kind) || !field.encoded || threads < 1) {
    throw nb::value_error(("\"" + name + "\" is not a field of encoded images").c_str());
  }
  const Progress report = progress_from(progress);
  std::vector<ImageSize> sizes;
  {
    ReleasedGil no_gil;
    sizes = read_image_sizes(*self.source, number, threads, report);
  }
  return rows_of_three(sizes, [](const ImageSize& size) {
    return std::array<int64_t, 3>{size.height, size.width, size.orientation};
  });
}

// Elements of every record's value of a one-dimensional field.
Array value_lengths_of(const SourceHandle& self, const std::string& name, nb::handle progress) {
  const size_t number = checked_field(*self.source, name);
  const Field& field = self.source->schema()[number];
  if (field.encoded || is_string(field.kind) || field.shape.size() != 1) {
    throw nb::value_error(("\"" + name + "\" is not a field of one-dimensional values").c_str());
  }
  const Progress report = progress_from(progress);
  std::vector<int64_t> values;
  {
    ReleasedGil no_gil;
    values = value_lengths(*self.source, number, report);
  }
  Array out = make_array(DType::kInt64, {std::ssize(values)});
  if (!values.empty()) std::memcpy(out.view.data, values.data(), out.view.dense_bytes());
  return out;
}

// All values of one field that is not a file: an array with one row per record if all have the same
// shape, otherwise a list. Throws a bad record's error.
nb::object values_of(const SourceHandle& self, const std::string& name) {
  constexpr int64_t kAtOnce = 256;
  const Source& source = *self.source;
  const size_t number = checked_field(source, name);
  const Field& field = source.schema()[number];
  const bool is_dense = !field.encoded && !is_string(field.kind) &&
                        std::ranges::all_of(field.shape, [](int64_t size) { return size >= 0; });
  Shape shape = field.shape;
  shape.insert(shape.begin(), source.size());
  Array dense = make_array(is_dense ? field.dtype : DType::kUInt8, is_dense ? shape : Shape{0});
  const size_t bytes = source.size() > 0 ? dense.view.dense_bytes() / size_t(source.size()) : 0;
  nb::list out;
  std::vector<bool> wanted(source.schema().size());
  wanted[number] = true;
  std::vector<RecordData> records(kAtOnce);
  for (int64_t first = 0; first < source.size(); first += kAtOnce) {
    check_signals();
    std::vector<int64_t> indices;
    for (int64_t i = first; i < std::min(first + kAtOnce, source.size()); ++i) indices.push_back(i);
    const auto read = std::span(records).first(indices.size());
    {
      ReleasedGil no_gil;
      source.read(indices, wanted, read);
    }
    for (size_t i = 0; i < read.size(); ++i) {
      if (!read[i].result) throw Exception(read[i].result.error());
      const FieldData& data = read[i].fields[number];
      if (!is_dense) {
        out.append(value_of(field, data));
        continue;
      }
      const bool is_scalar = data.bytes.empty() && field.dtype == DType::kInt64;
      auto* to = static_cast<uint8_t*>(dense.view.data) + size_t(indices[i]) * bytes;
      if (!is_scalar && data.bytes.size() != bytes) throw nb::value_error("values differ in size");
      std::memcpy(to,
                  is_scalar ? reinterpret_cast<const uint8_t*>(&data.scalar) : data.bytes.data(),
                  bytes);
    }
  }
  if (is_dense) return nb::cast(std::move(dense));
  return out;
}

}  // namespace

int64_t checked_index(int64_t index, int64_t size, std::string_view what) {
  if (index >= 0 && index < size) return index;
  const std::string text = std::string(what) + " " + std::to_string(index) + " of " +
                           std::to_string(size) +
                           ": indices go from 0 to the number of records minus one";
  throw nb::index_error(text.c_str());
}

nb::object value_of(const Field& field, const FieldData& data) {
  if (data.bytes.empty() && field.dtype == DType::kInt64 && field.shape.empty() &&
      !is_string(field.kind))
    return nb::cast(data.scalar);
  const char* text = reinterpret_cast<const char*>(data.bytes.data());
  if (field.kind == FieldKind::kText) return str_from_bytes({text, data.bytes.size()});
  if (field.kind == FieldKind::kBytes || field.encoded) return nb::bytes(text, data.bytes.size());
  Array array = make_array(field.dtype, data.shape.empty() ? field.shape : data.shape);
  if (!data.bytes.empty()) std::memcpy(array.view.data, data.bytes.data(), data.bytes.size());
  return nb::cast(std::move(array));
}

Progress progress_from(nb::handle callable) {
  return [callable](int64_t done, int64_t total) {
    nb::gil_scoped_acquire gil;
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
    if (!callable.is_none()) callable(done, total);
  };
}

void bind_source(nb::module_& module) {
  nb::class_<Field>(module, "Field", "One field of a source's records.")
      .def_ro("name", &Field::name)
      .def_prop_ro("kind", [](const Field& self) { return name_of(self.kind); })
      .def_prop_ro("dtype", [](const Field& self) { return name_of(self.dtype); })
      .def_prop_ro(
          "shape", [](const Field& self) { return nb::tuple(nb::cast(self.shape)); },
          nb::sig("def shape(self) -> tuple[int, ...]"),
          "Shape of a record's value, without the batch; -1 where records differ.")
      .def_prop_ro(
          "media",
          [](const Field& self) {
            const MediaRecord* const media = media_of(self.kind);
            return media ? media->name : std::string_view();
          },
          "The media type of its encoded values, a name of media(); empty if it has none.")
      .def_ro("encoded", &Field::encoded, "Stored as an encoded image or audio.")
      .def_prop_ro(
          "is_picture", [](const Field& self) { return is_picture(self.kind); },
          "Whether its values are images: an image, a mask.")
      .def_prop_ro(
          "is_spatial", [](const Field& self) { return is_spatial(self.kind); },
          "Whether its values are images, or are in the coordinates of the record's images.")
      .def_prop_ro(
          "box_format", [](const Field& self) { return name_of(self.box_format); },
          "Box format: \"xyxy\", \"xywh\" or \"cxcywh\", in pixels, or with \"_normalized\", in "
          "fractions of the image; \"\" if undeclared.")
      .def_ro("sample_rate", &Field::sample_rate,
              "Sample rate of audio in Hz; 0: unknown, or records differ.")
      .def_ro("row_group", &Field::row_group,
              "Fields whose rows describe the same objects share a number; 0: none.")
      .def("__repr__", [](const Field& self) {
        return nb::str("Field({!r}, {!r}, {!r}, {})")
            .format(self.name, name_of(self.kind), name_of(self.dtype),
                    nb::tuple(nb::cast(self.shape)));
      });
  nb::class_<SourceHandle>(module, "Source", "The engine's side of headrace.Source.")
      .def("__len__", [](const SourceHandle& self) { return self.source->size(); })
      .def_prop_ro("schema", [](const SourceHandle& self) { return self.source->schema(); })
      .def_prop_ro(
          "classes",
          [](const SourceHandle& self) {
            nb::list out;
            for (const std::string& name : self.source->classes()) out.append(str_from_bytes(name));
            return out;
          },
          nb::sig("def classes(self) -> list[str]"))
      .def_prop_ro("fingerprint",
                   [](const SourceHandle& self) { return self.source->fingerprint(); })
      .def_prop_ro("description",
                   [](const SourceHandle& self) {
                     return str_from_bytes(without_secrets(self.source->description()));
                   })
      .def_prop_ro(
          "cautions",
          [](const SourceHandle& self) {
            nb::list out;
            for (const std::string& text : self.source->cautions())
              out.append(str_from_bytes(text));
            return out;
          },
          nb::sig("def cautions(self) -> list[str]"), "Warnings to show when it is opened.")
      .def(
          "key",
          [](const SourceHandle& self, int64_t index) {
            const int64_t record = checked_record(self, index);
            return str_from_bytes(waited_for([&] { return self.source->key(record); }));
          },
          nb::arg("index"))
      .def(
          "file",
          [](const SourceHandle& self, int64_t index) {
            const int64_t record = checked_record(self, index);
            return str_from_bytes(waited_for([&] { return self.source->where(record).file; }));
          },
          nb::arg("index"), "The file that contains the record, if any.")
      .def(
          "files_outside", [](const SourceHandle& self) { return files_outside(*self.source); },
          nb::call_guard<ReleasedGil>(), "How many records are files outside the source's folder.")
      .def("integer_column", &integer_column, nb::arg("field"))
      .def("sound_forms", &sound_forms_of, nb::arg("field"), nb::arg("progress").none(),
           nb::sig("def sound_forms(self, field: str, progress: "
                   "collections.abc.Callable[[int, int], object] | None) -> Array"),
           "Frames, sample rate and channels of every record's audio, by its header; -1 frames for "
           "a bad record.")
      .def("value_lengths", &value_lengths_of, nb::arg("field"), nb::arg("progress").none(),
           nb::sig("def value_lengths(self, field: str, progress: "
                   "collections.abc.Callable[[int, int], object] | None) -> Array"),
           "Elements of every record's value of a one-dimensional field.")
      .def("image_sizes", &image_sizes_of, nb::arg("field"), nb::arg("threads"),
           nb::arg("progress").none(),
           nb::sig("def image_sizes(self, field: str, threads: int, progress: "
                   "collections.abc.Callable[[int, int], object] | None) -> Array"),
           "Height, width and Exif orientation of every record's image, by its header; -1 for a "
           "bad record.")
      .def("values", &values_of, nb::arg("field"),
           nb::sig("def values(self, field: str) -> typing.Any"),
           "All values of one field: an array where all have one shape, else a list.")
      .def("read", &read_record, nb::arg("index"), nb::arg("only") = "",
           nb::sig("def read(self, index: int, only: str = '') -> dict[str, typing.Any]"),
           "One record, or one field of it, images as they are stored.");
  module.def("open", &open, nb::arg("path"), nb::arg("arguments"), nb::arg("progress").none(),
             nb::sig("def open(path: str, arguments: dict[str, typing.Any], progress: "
                     "collections.abc.Callable[[int, int], object] | None) -> Source"));
  module.def(
      "simulated",
      [](int64_t records, int64_t record_bytes, int64_t shards, int64_t classes, Shape image) {
        return SourceHandle{simulated({records, record_bytes, shards, classes, std::move(image)})};
      },
      nb::arg("records"), nb::arg("record_bytes"), nb::arg("shards"), nb::arg("classes"),
      nb::arg("image"),
      nb::sig("def simulated(records: int, record_bytes: int, shards: int, classes: int, image: "
              "collections.abc.Sequence[int]) -> Source"));
  module.def(
      "shard_files",
      [](const nb::str& path) {
        nb::list out;
        const std::string bytes = bytes_from_str(path);
        for (const std::string& file : waited_for([&] { return shard_files(bytes); })) {
          out.append(str_from_bytes(file));
        }
        return out;
      },
      nb::arg("path"), nb::sig("def shard_files(path: str) -> list[str]"),
      "The files that a pattern expands to: braces, wildcards.");
  module.def(
      "media_error", &media_error, nb::arg("encoded"), nb::arg("kind"),
      "Why the header of an encoded image, audio or video is invalid; empty if it is valid.");
  module.def("media_suffix", &media_suffix, nb::arg("first_bytes"), nb::arg("kind"),
             "The codec of an image, audio or video, \"png\"; empty if this build has none.");
  module.def(
      "picture_kinds",
      [] {
        std::vector<std::string_view> names;
        for (const KindRecord* kind : all_kinds()) {
          if (kind->form == ValueForm::kPicture) names.push_back(kind->name);
        }
        return names;
      },
      "The kinds of fields whose values are images.");
}

}  // namespace headrace::python
