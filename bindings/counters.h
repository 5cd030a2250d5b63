// SPDX-License-Identifier: Apache-2.0
// Tables of counters (base/counter.h) and their values as plain dictionaries.
#pragma once

#include <span>
#include <string_view>
#include <type_traits>
#include <variant>

#include "bindings/bindings.h"
#include "headrace/base/counter.h"

namespace headrace::python {

inline nb::object object_from_counter(const CounterValue& value) {
  return std::visit(
      []<class T>(const T& held) -> nb::object {
        if constexpr (std::is_same_v<T, std::string>) {
          return str_from_bytes(held);
        } else if constexpr (std::is_same_v<T, CountsByReason>) {
          nb::dict out;
          for (const auto& [reason, number] : held) out[nb::cast(reason)] = number;
          return out;
        } else {
          return nb::cast(held);
        }
      },
      value);
}

// Values by name; "stages.read" is in a dictionary "stages".
template <class Stats>
nb::dict dict_from_counters(std::span<const Counter<Stats>> counters, const Stats& stats) {
  nb::dict out;
  for (const Counter<Stats>& counter : counters) {
    const size_t dot = counter.name.find('.');
    nb::dict into = out;
    std::string_view name = counter.name;
    if (dot != std::string_view::npos) {
      const nb::str group = nb::cast<nb::str>(nb::cast(name.substr(0, dot)));
      if (!out.contains(group)) out[group] = nb::dict();
      into = nb::cast<nb::dict>(out[group]);
      name.remove_prefix(dot + 1);
    }
    into[nb::cast(name)] = object_from_counter(counter.value(stats));
  }
  return out;
}

template <class Stats>
nb::list describe_counters(std::span<const Counter<Stats>> counters) {
  nb::list out;
  for (const Counter<Stats>& counter : counters) {
    nb::dict entry;
    entry["name"] = counter.name;
    entry["unit"] = counter.unit;
    entry["doc"] = counter.doc;
    entry["grows"] = counter.tells == CounterKind::kCumulative;
    entry["adds"] = counter.adds == Aggregation::kSum ? "sum" : "most";
    entry["metric"] = counter.metric;
    entry["work"] = counter.work;
    out.append(entry);
  }
  return out;
}

}  // namespace headrace::python
