// SPDX-License-Identifier: Apache-2.0
// One registry for each type of record (operator, codec, format, error code).
//
// A record is a constant that lives as long as its library; it registers itself at the end of the
// file that declares it: `static const Register<OpRecord> registered(kFlip);`. Registration happens
// while libraries load, and when a plug-in is loaded; any thread may read at any time.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace headrace {

template <class Record>
concept NamedRecord = requires(const Record& r) { r.name; };

template <class Record>
std::string_view record_name(const Record& record) {
  if constexpr (NamedRecord<Record>) {
    return record.name;
  } else {
    return record.id;
  }
}

// The type-independent part of a registry: about a hundred files register a record, and this keeps
// the implementation out of their compilation.
class NameTable {
 public:
  NameTable();
  void add(std::string_view name, const void* record);
  // Sorted by name: the order of static constructors has no effect.
  std::vector<const void*> all() const;
  const void* find(std::string_view name) const;  // null if there is none

 private:
  struct Entries;
  Entries* const entries_;  // never freed: records outlive static destructors
};

// Number of records in all registries.
uint64_t registered_records();

template <class Record>
class Registry {
 public:
  static void add(const Record& record) { table().add(record_name(record), &record); }

  static std::vector<const Record*> all() {
    std::vector<const Record*> records;
    for (const void* record : table().all()) records.push_back(static_cast<const Record*>(record));
    return records;
  }

  static const Record* find(std::string_view name) {
    return static_cast<const Record*>(table().find(name));
  }

 private:
  static NameTable& table() {
    static NameTable table;
    return table;
  }
};

template <class Record>
struct Register {
  explicit Register(const Record& record) { Registry<Record>::add(record); }
};

}  // namespace headrace
