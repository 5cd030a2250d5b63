// SPDX-License-Identifier: Apache-2.0
// For tests: MDS shards and their index.json, in the layout of streaming's MDSWriter.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace headrace {

template <class Number>
std::string little_endian(Number value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}

struct MdsTestColumn {
  std::string name, encoding;
  uint64_t bytes = 0;  // 0: varies
};

struct MdsTestShard {
  std::string raw = "shard.00000.mds", packed = {}, packing = {};
  uint64_t samples = 0;
};

using MdsTestSample = std::vector<std::string>;  // one value per column

inline std::string mds_sample(const std::vector<MdsTestColumn>& columns,
                              const MdsTestSample& values) {
  std::string head, body;
  for (size_t i = 0; i < columns.size(); ++i) {
    if (columns[i].bytes == 0) head += little_endian(static_cast<uint32_t>(values[i].size()));
    body += values[i];
  }
  return head + body;
}

inline std::string mds_shard(const std::vector<MdsTestColumn>& columns,
                             const std::vector<MdsTestSample>& samples) {
  const std::string config = R"({"format": "mds"})";
  std::string out = little_endian(static_cast<uint32_t>(samples.size())), data;
  uint64_t at = 4 + 4 * (samples.size() + 1) + config.size();
  for (const MdsTestSample& sample : samples) {
    out += little_endian(static_cast<uint32_t>(at + data.size()));
    data += mds_sample(columns, sample);
  }
  return out + little_endian(static_cast<uint32_t>(at + data.size())) + config + data;
}

inline std::string mds_index(const std::vector<MdsTestColumn>& columns,
                             const std::vector<MdsTestShard>& shards) {
  const auto list = [&](const auto& text_of) {
    std::string out;
    for (const MdsTestColumn& column : columns) out += (out.empty() ? "" : ", ") + text_of(column);
    return "[" + out + "]";
  };
  const auto file = [](const std::string& name) {
    return name.empty() ? "null"
                        : R"({"basename": ")" + name + R"(", "bytes": 1, "hashes": {"sha1": "x"}})";
  };
  std::string out;
  for (const MdsTestShard& shard : shards) {
    if (!out.empty()) out += ", ";
    out += R"({"column_encodings": )" +
           list([](const MdsTestColumn& c) { return "\"" + c.encoding + "\""; }) +
           R"(, "column_names": )" +
           list([](const MdsTestColumn& c) { return "\"" + c.name + "\""; }) +
           R"(, "column_sizes": )" + list([](const MdsTestColumn& c) {
             return c.bytes ? std::to_string(c.bytes) : std::string("null");
           }) +
           R"(, "compression": )" + (shard.packing.empty() ? "null" : "\"" + shard.packing + "\"") +
           R"(, "format": "mds", "hashes": [], "raw_data": )" + file(shard.raw) +
           R"(, "samples": )" + std::to_string(shard.samples) +
           R"(, "size_limit": 67108864, "version": 2, "zip_data": )" + file(shard.packed) + "}";
  }
  return R"({"shards": [)" + out + R"(], "version": 2})";
}

}  // namespace headrace
