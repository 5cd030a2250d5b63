// SPDX-License-Identifier: Apache-2.0
// Parses tf.train.Example and tf.train.SequenceExample from untrusted bytes: iterates over
// features, and reads the values of a feature. Values are copied only on request.
//
//   message Example         { Features features = 1; }
//   message SequenceExample { Features context = 1; FeatureLists feature_lists = 2; }
//   message Features        { map<string, Feature> feature = 1; }
//   message FeatureLists    { map<string, FeatureList> feature_list = 1; }
//   message FeatureList     { repeated Feature feature = 1; }
//   message Feature         { oneof kind { BytesList bytes_list = 1; FloatList float_list = 2;
//                                          Int64List int64_list = 3; } }
//
// So an Example is a SequenceExample without lists. As in protobuf, unknown fields are skipped. If
// two entries have the same name, the later one counts; the caller must ensure that.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "headrace/formats/shards/proto_wire.h"

namespace headrace {

// Numbered like the fields of Feature.
enum class TfKind : uint8_t { kNone, kBytes, kFloat, kInt64 };

// An error, and its position; `what` is null if there is none.
struct TfProblem {
  const char* what = nullptr;
  const uint8_t* place = nullptr;
};

// An entry of one of the maps.
struct TfEntry {
  std::string_view name;
  std::span<const uint8_t> value;  // a Feature or FeatureList; data() is not null even if empty
  bool is_list = false;            // from feature_lists
};

class TfEntries {
 public:
  explicit TfEntries(std::span<const uint8_t> message) : bytes_(message), outer_(message) {}
  // False at the end, and at the first error.
  bool next(TfEntry& out);
  const TfProblem& problem() const { return problem_; }

 private:
  bool fail(const char* what, const uint8_t* place);
  bool next_map();
  bool read_entry(std::span<const uint8_t> entry, TfEntry& out);

  std::span<const uint8_t> bytes_, map_bytes_;
  ProtoReader outer_, map_{{}};
  bool is_list_ = false;
  TfProblem problem_;
};

// A Feature: a list of values, all of one kind.
class TfFeature {
 public:
  // False if it is invalid.
  bool parse(std::span<const uint8_t> feature, TfProblem& problem);

  TfKind kind() const { return kind_; }
  int64_t count() const { return count_; }
  std::span<const uint8_t> first_bytes() const { return first_; }  // of kBytes with count > 0
  // For kFloat and kInt64: writes count() values, 4 or 8 bytes each, to unaligned memory.
  void copy_numbers(uint8_t* out) const;
  // For kBytes: all values, concatenated.
  uint64_t total_bytes() const { return total_; }
  void copy_bytes(uint8_t* out) const;
  int64_t first_number() const;  // of kInt64 with count > 0

 private:
  bool count_values(std::span<const uint8_t> list, TfProblem& problem);
  template <class Found>
  void each_value(const Found& found) const;

  std::span<const uint8_t> lists_;  // starting at the first list of the kind; no other kind follows
  TfKind kind_ = TfKind::kNone;
  int64_t count_ = 0;
  uint64_t total_ = 0;
  std::span<const uint8_t> first_;
};

}  // namespace headrace
