// SPDX-License-Identifier: Apache-2.0
// The steps of a pipeline as operations of batch kernels on each picture: one edit (a crop, a
// flip, a map, a rectangle), or a resize of a window and then the edit.
//
// The operators themselves run on the host, on recipes that are never rendered: so draws and
// their meaning are the same as in streaming, and only the few numbers of each record's edit go
// to the device. Used by one thread.
#pragma once

#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "headrace/delivery/resident_pictures.h"
#include "headrace/image/coded_window.h"
#include "headrace/image/recipe_edit.h"
#include "headrace/pipeline/plan.h"

namespace headrace {

class DeviceSteps {
 public:
  // A picture that is delivered.
  struct Output {
    int output = 0;  // of the plan's
    int source = 0;  // the field, by the plan's number, whose pixels it shows
    Shape stored;    // (C, H, W) there; H and W are -1 where they differ
    RecipeEdit sample;
    std::vector<PictureEdit> edits;  // by row of the batch
    // Windows resized before that, by row; none with Work::kEdit.
    std::vector<CodedWindow> windows = {};
    std::optional<Filter> filter = {};  // of all that change their size
  };
  enum class Work : uint8_t { kEdit, kResizeAndEdit };

  // differing: by field of the plan, of those whose pictures differ in size, which can be resized
  // alone. REQUIRES: no step in Python.
  DeviceSteps(std::shared_ptr<const Plan> plan, Work work,
              std::vector<ResidentPictures> differing = {});

  // The first step that no kernel does, as the user wrote it; empty: there is none.
  const std::string& in_the_way() const { return in_the_way_; }
  bool resizes() const { return work_ == Work::kResizeAndEdit; }
  std::vector<Output>& outputs() { return outputs_; }
  const std::shared_ptr<const Plan>& plan() const { return plan_; }

  // The edits of the batch at these positions, of these records; where all pictures of a field have
  // one size, none need to be named. Throws Exception HR0894 where a record's differs from what was
  // seen of the steps before.
  void begin(uint64_t seed, uint64_t epoch, int64_t position, int64_t rows,
             std::span<const int64_t> records = {});
  // Other steps of this plan have seen pictures of this output filled with these values. False
  // where those that were seen here are filled with others.
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
  std::string first_misfit();

  const std::shared_ptr<const Plan> plan_;  // shared: with the loader
  const Work work_;
  const std::vector<ResidentPictures> differing_;
  std::vector<std::shared_ptr<Picture>> pictures_;  // by field: blank ones of its size
  std::vector<Output> outputs_;
  std::string in_the_way_;
  Record record_;
  Renderer renderer_;
};

}  // namespace headrace
