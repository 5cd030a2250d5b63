// SPDX-License-Identifier: Apache-2.0
// Stored records in batches, for `headrace bench --preset raw`.
#include "headrace/executor/record_stream.h"

#include <algorithm>

#include "bindings/bindings.h"
#include "headrace/executor/threads/thread_pool.h"

namespace headrace::python {
namespace {

struct StreamHandle {
  std::unique_ptr<RecordStream> stream;

  // Its threads may be waiting for the GIL, where the source is Python's.
  ~StreamHandle() {
    if (forked_from_running_engine()) {
      (void)stream.release();  // its threads are the parent's
      return;
    }
    ReleasedGil no_gil;
    stream.reset();
  }
};

// A batch, with the source whose memory its values may be.
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

std::unique_ptr<RecordStream> make_stream(const SourceHandle& source, nb::handle order,
                                          int64_t batch_size, int threads, int64_t depth) {
  throw_if_forked();
  const TensorView view = borrowed_view(order);
  if (view.dtype != DType::kInt64 || view.shape.size() != 1) {
    throw nb::type_error("order: one dense axis of int64");
  }
  if (batch_size < 1 || threads < 1 || depth < 1) {
    throw nb::value_error("batch_size, threads and depth must be positive");
  }
  const auto* first = static_cast<const int64_t*>(view.data);
  std::vector<int64_t> numbers(first, first + view.elements());
  const int64_t size = source.source->size();
  const auto outside = [size](int64_t number) { return number < 0 || number >= size; };
  if (std::any_of(numbers.begin(), numbers.end(), outside)) {
    throw nb::index_error("order names a record that the source has not");
  }
  return std::make_unique<RecordStream>(source.source, std::move(numbers), batch_size, threads,
                                        depth);
}

// None at the end of the epoch. The first bad record of a batch raises.
nb::object next(StreamHandle& self) {
  std::shared_ptr<StoredBatch> batch;
  {
    ReleasedGil no_gil;
    batch = self.stream->next(check_signals);
  }
  if (!batch) return nb::none();
  for (const RecordData& record : batch->records) {
    if (!record.result) throw Exception(record.result.error());
  }
  return nb::cast(
      BatchHandle{std::make_shared<HeldBatch>(HeldBatch{self.stream->source(), std::move(batch)})});
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

void bind_record_stream(nb::module_& module) {
  nb::class_<BatchHandle>(module, "StoredBatch", "Records as they are stored.")
      .def("__len__", [](const BatchHandle& self) { return self.held->batch->records.size(); })
      .def_prop_ro("read_seconds",
                   [](const BatchHandle& self) { return self.held->batch->read_seconds; })
      .def("values", &values, nb::arg("field"),
           nb::sig("def values(self, field: int) -> list[typing.Any]"),
           "Of the field with this number, as Source.read() gives them.")
      .def("views", &views, nb::arg("field"), nb::sig("def views(self, field: int) -> list[Array]"),
           "The bytes of its values, where they lie.");
  nb::class_<StreamHandle>(module, "RecordStream", "Reads records ahead, in a given order.")
      .def(
          "__init__",
          [](StreamHandle* self, const SourceHandle& source, nb::handle order, int64_t batch_size,
             int threads, int64_t depth) {
            new (self) StreamHandle{make_stream(source, order, batch_size, threads, depth)};
          },
          nb::arg("source"), nb::arg("order"), nb::arg("batch_size"), nb::arg("threads"),
          nb::arg("depth"),
          nb::sig("def __init__(self, source: Source, order: typing.Any, batch_size: int, "
                  "threads: int, depth: int) -> None"))
      .def("start", [](StreamHandle& self) { self.stream->start(); })
      .def("next", &next, nb::sig("def next(self) -> StoredBatch | None"));
}

}  // namespace headrace::python
