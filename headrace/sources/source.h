// SPDX-License-Identifier: Apache-2.0
// A source: a random-access collection of records (a map-style dataset).
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
  kMemory,  // a pointer or a few bytes: read by the thread that processes the record
  kFiles,   // may wait for a disk: read ahead by several threads
  kLater,   // in an asynchronous storage: many pieces() are requested at once
  kPython,  // runs in Python: read ahead by the Python thread, many records per call
};

class Source;

// Where a field of a record comes from.
struct Origin {
  const Source* source;
  int64_t index;  // record number in it
  size_t field;   // field number in its schema
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
  // inside [0, size()). Failures are reported per record, in RecordData::result. Elements of `out`
  // are reused: buffers in `owned` keep their capacity.
  virtual void read(std::span<const int64_t> indices, const std::vector<bool>& wanted,
                    std::span<RecordData> out) const = 0;

  // Adds the file pieces that read() will need for a record, only for asynchronous storages
  // (add_piece). They are staged when read() is called (staged_reads.h). Must be cheap and not read
  // anything. Missing pieces are read one at a time, while the record waits.
  virtual void pieces(int64_t index, const std::vector<bool>& wanted,
                      std::vector<FilePiece>& out) const {
    (void)index, (void)wanted, (void)out;
  }
  // Whether pieces() can tell all pieces of a record. Where they depend on tables of the files
  // (videos), and these are not in memory, starts to read the tables and returns false immediately;
  // or, with `wait`, returns when they are read, or could not be: read() reports why.
  virtual bool prepare_pieces(int64_t index, const std::vector<bool>& wanted, bool wait) const {
    (void)index, (void)wanted, (void)wait;
    return true;
  }

  // The path of a file that pieces() has whole and read() passes through read_file_field() as this
  // field; empty if the field comes from elsewhere. For videos of which less has to be read
  // (executor/reading/clip_reads.h). Cheap.
  virtual std::string separate_file(int64_t index, size_t field) const {
    (void)index, (void)field;
    return {};
  }

  // The distinct sources that records come from, and the one that a field of a record is read from.
  // Views and combinations return the sources that they are made of, which live as long as they do.
  virtual std::vector<const Source*> origins() const { return {this}; }
  virtual Origin origin(int64_t index, size_t field) const { return {this, index, field}; }

  // The record's human-readable name: a path or an archive member. Also the `key` field.
  virtual std::string key(int64_t index) const = 0;
  // The location of the record for errors: file, member, offset.
  virtual Where where(int64_t index) const { return {.file = key(index), .record = index}; }
  // The file that contains a field of a record, if fields are in separate files.
  virtual std::string file(int64_t index, size_t field) const {
    (void)field;
    return where(index).file;
  }
  // If keys are file paths: the folder that they belong to ("." for the current folder), spelled as
  // in the keys; some files may be outside of it. Empty if keys are not paths.
  virtual std::string root() const { return {}; }
  // All values of an integer scalar field, without reading images; empty if the field is not such a
  // column. A bad record has -1 here, so that the others remain usable, and reports its error when
  // it is read. Throws Exception: storage errors.
  virtual std::vector<int64_t> integer_column(std::string_view field) const {
    (void)field;
    return {};
  }
  virtual std::vector<std::string> classes() const { return {}; }
  // All values of a tensor field, contiguous in record order, if the source holds them in memory
  // like that for its lifetime; otherwise null.
  virtual const uint8_t* dense_values(size_t field) const {
    (void)field;
    return nullptr;
  }
  // Whether many records read parts of the same file for this field: then facts about a file are
  // not stored per record.
  virtual bool shares_files(size_t field) const {
    (void)field;
    return false;
  }
  // Blocks of consecutive records that are cheap to read together, a few MiB each: the end of each
  // block, as a record number (exclusive). Determines the order of shuffle="blocks".
  virtual std::vector<int64_t> block_ends() const;
  // Whether the source shuffles its records itself: in a mix, every range of positions has the
  // mix's proportions, and must keep them when shuffled. Then the next two functions are called,
  // from any thread.
  virtual bool shuffles_itself() const { return false; }
  // The record at a position of a permutation that is a function of the key. REQUIRES: 0 <=
  // position < size().
  virtual int64_t shuffled(uint64_t key, int64_t position) const {
    (void)key;
    return position;
  }
  // Shuffling exchanges records only within a part. Returns the part of a record.
  virtual int64_t shuffle_part(int64_t index) const {
    (void)index;
    return 0;
  }
  // Hint: the wanted fields of all records of [begin, end) will be read soon, so storage may fetch
  // them together.
  virtual void will_read(int64_t begin, int64_t end, const std::vector<bool>& wanted) const {
    (void)begin, (void)end, (void)wanted;
  }
  // Changes when the records change; part of every resume state. The same for a copy of the dataset
  // elsewhere.
  virtual uint64_t fingerprint() const = 0;
  // Equal for two sources of this process only if both read the same records from the same
  // locations: the key of the record cache (cache=). By default a source equals only itself: see
  // Note [Identity of a source] in formats/opening/opened_source.h.
  virtual std::string identity() const;
  // One line for repr: "folder train/ (1,281,167 records, 1,000 classes)".
  virtual std::string description() const = 0;
  // Warnings for the user: records that will be bad, files that were left out.
  virtual std::vector<std::string> cautions() const { return {}; }

 private:
  const uint64_t serial_ = next_serial();
  static uint64_t next_serial();
};

// Adds the origins of `source` that `out` does not contain yet.
inline void add_origins(const Source& source, std::vector<const Source*>& out) {
  for (const Source* origin : source.origins()) {
    if (std::ranges::find(out, origin) == out.end()) out.push_back(origin);
  }
}

// shared: by loaders, views (subset) and the Python object.
using SourcePtr = std::shared_ptr<const Source>;

// The source in a parameter; null if it is None.
inline SourcePtr source_from(const ParamObjectPtr& object) {
  return std::dynamic_pointer_cast<const Source>(object);
}

// Called occasionally with (done, total or -1) during a long operation; may throw to cancel.
using Progress = std::function<void(int64_t, int64_t)>;

// Source::block_ends() of sources that have no blocks: the same number of records in each.
std::vector<int64_t> usual_block_ends(int64_t size);

// True for sources opened by path, false for objects that exist only in this process.
bool has_shared_identity(const Source& source);

}  // namespace headrace
