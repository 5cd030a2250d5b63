// SPDX-License-Identifier: Apache-2.0
// One registry for each type of record (operator, codec, format, error code).
//
// A record is a constant that lives as long as its library; it registers itself at the end of the
// file that declares it: `static const Register<OpRecord> registered(kFlip);`. Registration happens
// while libraries load; afterwards the registry is read by any thread.
#pragma once

#include <algorithm>
#include <mutex>
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

template <class Record>
class Registry {
 public:
  static void add(const Record& record) {
    Table& table = instance();
    std::lock_guard lock(table.mutex);
    auto at = std::lower_bound(
        table.records.begin(), table.records.end(), record_name(record),
        [](const Record* r, std::string_view name) { return record_name(*r) < name; });
    table.records.insert(at, &record);
  }

  // Sorted by name: the order of static constructors never shows.
  static std::vector<const Record*> all() {
    Table& table = instance();
    std::lock_guard lock(table.mutex);
    return table.records;
  }

  static const Record* find(std::string_view name) {
    for (const Record* record : all()) {
      if (record_name(*record) == name) return record;
    }
    return nullptr;
  }

 private:
  struct Table {
    std::mutex mutex;
    std::vector<const Record*> records;
  };
  static Table& instance() {
    static Table* const table = new Table;  // never destroyed: records outlive static destructors
    return *table;
  }
};

template <class Record>
struct Register {
  explicit Register(const Record& record) { Registry<Record>::add(record); }
};

}  // namespace headrace
