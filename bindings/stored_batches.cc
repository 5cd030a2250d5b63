// SPDX-License-Identifier: Apache-2.0
// Stored records in batches, for `headrace bench --preset raw`.
#include <algorithm>

#include "bindings/bindings.h"
#include "headrace/sources/stored_reader.h"

namespace headrace::python {
namespace {

// A batch, with the source that may own the memory of its values.
struct HeldBatch {
  SourcePtr source;
  std::shared_ptr<StoredBatch> batch;  // shared: with the views of its values
};

struct BatchHandle {
  std::shared_ptr<HeldBatch> held;  // shared: with the views of its values

  const Field& field(size_t number) const {
    if (number >= held->source->schema().size()) throw nb::index_error();
    return held->source->schema()[number];
  }
};

// The first bad record of a batch raises.
BatchHandle read(const StoredReader& reader, nb::handle numbers) {
  const TensorView view = borrowed_view(numbers);
  if (view.dtype != DType::kInt64 || view.shape.size() != 1) {
    throw nb::type_error("numbers: a dense one-dimensional int64 array");
  }
  const std::span<const int64_t> wanted(static_cast<const int64_t*>(view.data),
                                        static_cast<size_t>(view.elements()));
  const int64_t size = reader.source()->size();
  if (std::ranges::any_of(wanted, [&](int64_t one) { return one < 0 || one >= size; })) {
    throw nb::index_error("a record number outside the source");
  }
  std::shared_ptr<StoredBatch> batch;
  {
    ReleasedGil no_gil;
    batch = reader.read(wanted);
  }
  for (const RecordData& record : batch->records) {
    if (!record.result) throw Exception(record.result.error());
  }
  return {std::make_shared<HeldBatch>(HeldBatch{reader.source(), std::move(batch)})};
}

nb::list values(const BatchHandle& self, size_t number) {
  const Field& field = self.field(number);
  nb::list out;
  for (const RecordData& record : self.held->batch->records) {
    out.append(value_of(field, record.fields[number]));
  }
  return out;
}

nb::list views(const BatchHandle& self, size_t number) {
  (void)self.field(number);
  nb::list out;
  for (const RecordData& record : self.held->batch->records) {
    const std::span<const uint8_t> bytes = record.fields[number].bytes;
    Array array;
    array.view.data = const_cast<uint8_t*>(bytes.data());
    array.view.dtype = DType::kUInt8;
    array.view.shape = {static_cast<int64_t>(bytes.size())};
    array.lease = self.held;
    out.append(nb::cast(std::move(array)));
  }
  return out;
}

}  // namespace

void bind_stored_batches(nb::module_& module) {
  nb::class_<BatchHandle>(module, "StoredBatch", "Records as they are stored.")
      .def("__len__", [](const BatchHandle& self) { return self.held->batch->records.size(); })
      .def_prop_ro("read_seconds",
                   [](const BatchHandle& self) { return self.held->batch->read_seconds; })
      .def("values", &values, nb::arg("field"),
           nb::sig("def values(self, field: int) -> list[typing.Any]"),
           "Values of the field with this number, as from Source.read().")
      .def("views", &views, nb::arg("field"), nb::sig("def views(self, field: int) -> list[Array]"),
           "The bytes of its values, without a copy.");
  nb::class_<StoredReader>(module, "StoredReader", "Reads records as they are stored.")
      .def(
          "__init__",
          [](StoredReader* self, const SourceHandle& source) {
            new (self) StoredReader(source.source);
          },
          nb::arg("source"), nb::sig("def __init__(self, source: Source) -> None"))
      .def("read", &read, nb::arg("numbers"),
           nb::sig("def read(self, numbers: typing.Any) -> StoredBatch"),
           "Records by their numbers, int64; without the GIL, so that threads may read ahead.");
}

}  // namespace headrace::python
