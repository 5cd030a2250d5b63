// SPDX-License-Identifier: Apache-2.0
// The steps of a pipeline as operations of batch kernels on each picture: one edit (a crop, a
// flip, a map, a rectangle), or a resize of a window and then the edit.
//
// The operators themselves run on the host, on recipes that are never rendered. So draws have the
// same meaning as in streaming, and only the few numbers of each record's edit go to the device.
// Used by one thread.
#pragma once

#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "headrace/delivery/resident_field.h"
#include "headrace/image/coded_window.h"
#include "headrace/image/recipe_edit.h"
#include "headrace/pipeline/plan.h"

namespace headrace {

class DeviceSteps {
 public:
  // A delivered picture.
  struct Output {
    int output = 0;  // number of the plan's output
    int source = 0;  // number of the field whose pixels it shows
    Shape stored;    // (C, H, W) in resident data; H and W are -1 if they differ
    RecipeEdit sample;
    std::vector<PictureEdit> edits;  // by row of the batch
    // The windows that are resized before the edits, by row; empty with Work::kEdit.
    std::vector<CodedWindow> windows = {};
    std::optional<Filter> filter = {};  // of all pictures that change size
  };
  enum class Work : uint8_t { kEdit, kResizeAndEdit };

  // differing: by field of the plan, the pictures of fields whose pictures differ in size;
  // supported only with Work::kResizeAndEdit.
  DeviceSteps(std::shared_ptr<const Plan> plan, Work work,
              std::vector<ResidentPictures> differing = {});

  // The first step that no kernel supports, as the user wrote it; empty if all are supported.
  const std::string& obstacle() const { return obstacle_; }
  bool resizes() const { return work_ == Work::kResizeAndEdit; }
  std::vector<Output>& outputs() { return outputs_; }
  const std::shared_ptr<const Plan>& plan() const { return plan_; }

  // Computes the edits of rows at consecutive positions, for these records; `records` may be empty
  // if the pictures of each field have one size. Throws Exception HR0894 if the steps do something
  // to a record that they did not do to the sampled ones.
  void begin(uint64_t seed, uint64_t epoch, int64_t position, int64_t rows,
             std::span<const int64_t> records = {});
  // Call it if another DeviceSteps of this plan has seen pictures of this output filled with these
  // values. False if those seen here are filled with others.
  bool fills_with(size_t output, const ChannelValues& values);
  // HR0894 for the record at this position.
  static std::exception_ptr other_edit(int64_t position, uint64_t epoch);

 private:
  struct Done {
    RecipeEdit edit;
    std::optional<CodedWindow> window = {};
  };
  std::string add_field(size_t field);
  const ResidentPicture* differing(size_t field, int64_t record) const;
  Recipe recipe_of(size_t field, int64_t record) const;
  std::optional<Done> done_of(const Recipe& recipe, size_t field) const;
  static bool takes(Output& output, CodedWindow window);
  Result<void> run(uint64_t seed, uint64_t epoch, int64_t position, int64_t record, int end);
  bool fits(Output& output, bool first);
  std::string first_unsupported();

  const std::shared_ptr<const Plan> plan_;  // shared: with the loader
  const Work work_;
  const std::vector<ResidentPictures> differing_;
  std::vector<std::shared_ptr<Picture>> pictures_;  // by field: a blank picture of its size
  std::vector<Output> outputs_;
  std::string obstacle_;
  Record record_;
  Renderer renderer_;
};

}  // namespace headrace
