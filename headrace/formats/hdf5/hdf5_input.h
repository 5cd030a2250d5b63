// SPDX-License-Identifier: Apache-2.0
// One file of an HDF5 source: the datasets that are its fields, and the values of their rows.
//
// Opening throws Exception; reading may be done from any thread.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "headrace/formats/hdf5/hdf5_fields.h"
#include "headrace/formats/hdf5/hdf5_heap.h"

namespace headrace {

class Hdf5Input {
 public:
  // Opens the datasets selected by `fields` (null: all with the most common number of rows). If
  // `plans` is empty, it is filled; otherwise the datasets must have the types in it. `loaded`
  // counts bytes of columns that are kept in memory. REQUIRES: `cache` outlives this, `budget`
  // until opened().
  Hdf5Input(const std::string& path, const std::vector<std::string>* fields,
            std::vector<Hdf5FieldPlan>& plans, Hdf5ChunkCache& cache, uint64_t& loaded,
            OpenBudget& budget);
  void opened() { file_->charge_to(nullptr); }

  const Hdf5File& file() const { return *file_; }
  int64_t records() const { return records_; }
  void add_to(Fingerprint& print) const;

  // Read a field's value in a row. A record has two buffers per field. `place`: the position after
  // the field's previously read value. REQUIRES: the function matches the plan's form.
  Result<void> read_numbers(const Hdf5FieldPlan& plan, size_t field, uint64_t row,
                            RecordData& out) const;
  Result<void> read_text(size_t field, uint64_t row, RecordData& out, Hdf5Place& place) const;
  Result<void> read_sequence(const Hdf5FieldPlan& plan, size_t field, uint64_t row, RecordData& out,
                             Hdf5Place& place) const;
  Result<void> read_bytes(size_t field, uint64_t row, RecordData& out) const;
  Result<int64_t> integer(size_t field, uint64_t row) const;
  // Replaces the field's values, one per row: text labels become numbers.
  void replace(size_t field, std::vector<int64_t> numbers);

 private:
  struct Column {
    std::unique_ptr<Hdf5Dataset> dataset;
    std::vector<uint8_t> rows = {};     // all rows, in the file's format; or empty
    std::vector<int64_t> numbers = {};  // their values as integers
  };

  void check_same(const Hdf5FieldPlan& plan, const Hdf5Dataset& dataset) const;
  void load(Column& column, uint64_t& loaded, OpenBudget& budget) const;
  Result<void> check_size(const Hdf5Dataset& dataset, uint64_t bytes, size_t most) const;
  // The row in the file's format: from memory, or read into `buffer`.
  Result<std::span<const uint8_t>> row_of(size_t field, uint64_t row, size_t most,
                                          Buffer& buffer) const;
  Result<std::span<uint8_t>> read_value(size_t field, std::span<const uint8_t> element,
                                        size_t number_bytes, size_t most, Buffer& buffer,
                                        Hdf5Place& place) const;

  std::unique_ptr<Hdf5File> file_;  // datasets refer to it
  std::vector<Column> columns_;     // one per field
  int64_t records_ = 0;
};

}  // namespace headrace
