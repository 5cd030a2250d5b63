// SPDX-License-Identifier: Apache-2.0
// Base class of a wrapper around a source: the same records with the same numbers, read in a
// different way. Functions that are not overridden return the inner source's result, except
// identity(): a subclass that does not change any value must override it to return the inner
// source's identity(). (For wrappers with different record numbers: view.h.)
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "headrace/sources/source.h"

namespace headrace {

class SourceAround : public Source {
 public:
  explicit SourceAround(SourcePtr inner) : inner_(std::move(inner)) {}

  int64_t size() const override { return inner_->size(); }
  const Schema& schema() const override { return inner_->schema(); }
  ReadStyle read_style() const override { return inner_->read_style(); }
  void read(std::span<const int64_t> indices, const std::vector<bool>& wanted,
            std::span<RecordData> out) const override {
    inner_->read(indices, wanted, out);
  }
  void pieces(int64_t index, const std::vector<bool>& wanted,
              std::vector<FilePiece>& out) const override {
    inner_->pieces(index, wanted, out);
  }
  bool prepare_pieces(int64_t index, const std::vector<bool>& wanted, bool wait) const override {
    return inner_->prepare_pieces(index, wanted, wait);
  }
  std::string separate_file(int64_t index, size_t field) const override {
    return inner_->separate_file(index, field);
  }
  // If the inner source is its own origin, this source takes its place.
  std::vector<const Source*> origins() const override {
    std::vector<const Source*> out = inner_->origins();
    if (out.size() == 1 && out[0] == inner_.get()) out[0] = this;
    return out;
  }
  Origin origin(int64_t index, size_t field) const override {
    Origin out = inner_->origin(index, field);
    if (out.source == inner_.get()) out.source = this;
    return out;
  }
  std::string key(int64_t index) const override { return inner_->key(index); }
  Where where(int64_t index) const override { return inner_->where(index); }
  std::string file(int64_t index, size_t field) const override {
    return inner_->file(index, field);
  }
  std::string root() const override { return inner_->root(); }
  std::vector<int64_t> integer_column(std::string_view field) const override {
    return inner_->integer_column(field);
  }
  std::vector<std::string> cautions() const override { return inner_->cautions(); }
  std::vector<std::string> classes() const override { return inner_->classes(); }
  const uint8_t* dense_values(size_t field) const override { return inner_->dense_values(field); }
  bool shares_files(size_t field) const override { return inner_->shares_files(field); }
  std::vector<int64_t> block_ends() const override { return inner_->block_ends(); }
  bool shuffles_itself() const override { return inner_->shuffles_itself(); }
  int64_t shuffled(uint64_t key, int64_t position) const override {
    return inner_->shuffled(key, position);
  }
  int64_t shuffle_part(int64_t index) const override { return inner_->shuffle_part(index); }
  void will_read(int64_t begin, int64_t end, const std::vector<bool>& wanted) const override {
    inner_->will_read(begin, end, wanted);
  }
  uint64_t fingerprint() const override { return inner_->fingerprint(); }
  std::string description() const override { return inner_->description(); }

  const SourcePtr& inner() const { return inner_; }

 private:
  const SourcePtr inner_;
};

}  // namespace headrace
