// SPDX-License-Identifier: Apache-2.0
// The source of a test that reads ahead: records of bytes in asynchronous storage. The test says
// which pieces a record needs, and reads them.
#pragma once

#include <cstdint>
#include <string>

#include "headrace/sources/source.h"

namespace headrace {

class BytesTestSource : public Source {
 public:
  explicit BytesTestSource(int64_t records) : records_(records) {}
  int64_t size() const override { return records_; }
  const Schema& schema() const override { return schema_; }
  ReadStyle read_style() const override { return ReadStyle::kLater; }
  std::string key(int64_t index) const override { return std::to_string(index); }
  uint64_t fingerprint() const override { return 0; }
  std::string description() const override { return "bytes"; }

 private:
  const int64_t records_;
  const Schema schema_{{.name = "data", .kind = FieldKind::kBytes}};
};

}  // namespace headrace
