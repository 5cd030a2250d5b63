// SPDX-License-Identifier: Apache-2.0
// A source: a random-access collection of records, of any origin.
//
// All const members may be called from any thread at any time.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "headrace/base/param_object.h"
#include "headrace/sources/schema.h"
#include "headrace/storage/storage.h"

namespace headrace {

// How reads behave, so that the executor can schedule them.
enum class ReadStyle : uint8_t {
  kMemory,  // a pointer or a few bytes: read where the record is processed
  kFiles,   // may wait for a device: read ahead by several threads
  kLater,   // in an asynchronous storage: pieces() are requested, many at once
  kPython,  // runs in Python: read ahead by its one thread, many records per call
};

class Source;

// Where a field of a record comes from.
struct Origin {
  const Source* source;
  int64_t index;  // of the record there
  size_t field;   // number in its schema
};

class Source : public ParamObject {
 public:
  std::string_view noun() const override { return "a source"; }
  Source() = default;
  Source(const Source&) = delete;
  Source& operator=(const Source&) = delete;

  virtual int64_t size() const = 0;
  virtual const Schema& schema() const = 0;
  virtual ReadStyle read_style() const = 0;

  // Reads the wanted fields (wanted[i] for schema field i) of out.size() records. REQUIRES: indices
  // inside [0, size()). Failures are each record's own result. `out` elements are re-used: buffers
  // in `owned` keep their capacity.
  virtual void read(std::span<const int64_t> indices, const std::vector<bool>& wanted,
                    std::span<RecordData> out) const = 0;

  // Adds the file pieces that read() will need for a record, only for asynchronous storages
  // (add_piece): they are staged when it is called (staged_reads.h). Must be cheap, and read
  // nothing. Pieces that are not listed are read one at a time, while the record waits.
  virtual void pieces(int64_t index, const std::vector<bool>& wanted,
                      std::vector<FilePiece>& out) const {
    (void)index, (void)wanted, (void)out;
  }

  // The sources that records come from, each once; and the one that a field of a record is read
  // from. Views and combinations look through to what they are made of, which lives as long as
  // they.
  virtual std::vector<const Source*> origins() const { return {this}; }
  virtual Origin origin(int64_t index, size_t field) const { return {this, index, field}; }

  // The record's readable name: a path, a member. Also the `key` field.
  virtual std::string key(int64_t index) const = 0;
  // The location of the record for errors: file, member, offset.
  virtual Where where(int64_t index) const { return {.file = key(index), .record = index}; }
  // The file that a field of a record is in, where fields have files of their own.
  virtual std::string file(int64_t index, size_t field) const {
    (void)field;
    return where(index).file;
  }
  // Where keys are paths of files: the folder that they belong to ("." for the current one), as
  // keys begin, though single ones may lie elsewhere. Empty where they are no paths.
  virtual std::string root() const { return {}; }
  // All values of an integer scalar field without reading a picture; empty when the field is no
  // such column. A bad record has -1, and says what is wrong with it when it is read: one must not
  // cost the column. Throws Exception: storage errors.
  virtual std::vector<int64_t> integer_column(std::string_view field) const {
    (void)field;
    return {};
  }
  virtual std::vector<std::string> classes() const { return {}; }
  // All values of a tensor field, record by record, if they are stored so in memory for as long as
  // the source lives; else null.
  virtual const uint8_t* dense_values(size_t field) const {
    (void)field;
    return nullptr;
  }
  // Whether many records read parts of one file of this field: what is known of such a file is not
  // stored once per record.
  virtual bool shares_files(size_t field) const {
    (void)field;
    return false;
  }
  // Blocks of neighboring records that are cheap to read together, a few MiB each: the number of
  // the record after each one's last. Part of the order of shuffle="blocks".
  virtual std::vector<int64_t> block_ends() const;
  // Whether its records are not all alike to a shuffle: in a mix every stretch has its proportions,
  // and must have them still when the records are shuffled. Then the next two are called, from any
  // thread.
  virtual bool shuffles_itself() const { return false; }
  // The record at a position of an order that is a function of the key and has each record once.
  // REQUIRES: 0 <= position < size().
  virtual int64_t shuffled(uint64_t key, int64_t position) const {
    (void)key;
    return position;
  }
  // A shuffle replaces a record only by another one of its part.
  virtual int64_t shuffle_part(int64_t index) const {
    (void)index;
    return 0;
  }
  // All records of [begin, end) will be read soon: storage may fetch them together.
  virtual void will_read(int64_t begin, int64_t end) const { (void)begin, (void)end; }
  // Changes when the records change: part of every resume state. Equal for a copy elsewhere.
  virtual uint64_t fingerprint() const = 0;
  // Equal for two sources of this process only where both read the same records from the same
  // places: what a memory of records (cache=) is kept by. A source is itself and no other, unless
  // it can prove more: see Note [Identity of a source] in formats/opening/opened_source.h.
  virtual std::string identity() const;
  // One line for repr: "folder train/ (1,281,167 records, 1,000 classes)".
  virtual std::string description() const = 0;
  // Warnings for the user: records that will be bad, files that were left out.
  virtual std::vector<std::string> cautions() const { return {}; }

 private:
  const uint64_t serial_ = next_serial();
  static uint64_t next_serial();
};

// Adds those of `source` that are not yet there.
inline void add_origins(const Source& source, std::vector<const Source*>& out) {
  for (const Source* origin : source.origins()) {
    if (std::ranges::find(out, origin) == out.end()) out.push_back(origin);
  }
}

// shared: loaders, views (subset) and Python's object hold the same source.
using SourcePtr = std::shared_ptr<const Source>;

// The source that a parameter holds; null where it is None.
inline SourcePtr source_from(const ParamObjectPtr& object) {
  return std::dynamic_pointer_cast<const Source>(object);
}

// Called now and then with (done, total or -1) while a long operation runs; may throw to cancel.
using Progress = std::function<void(int64_t, int64_t)>;

}  // namespace headrace
