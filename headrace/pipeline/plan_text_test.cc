// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "headrace/pipeline/plan_test_records.h"

namespace headrace::plan_test {
namespace {

TEST(PlanText, ShowsStepsShapesPassesAndOutputs) {
  const PlanPtr plan =
      plan_of({files("image"), label()},
              {spec("RandomResizedCrop", {{"size", int64_t{224}}}), flip(),
               maybe(0.5, {resize(224, 224)}), to_float(), normalize(), resize(64, 64)});
  EXPECT_EQ(plan->text(), R"(Steps (those of one pass over an image are rendered as one):
  step  what                                fields  after it               pass
  1     RandomResizedCrop(size=224)         image   uint8 (3, 224, 224)    1
  2     RandomHorizontalFlip(p=0.5)         image   uint8 (3, 224, 224)    1
  3     RandomApply(p=0.5)
  4       Resize(size=[224, 224])           image   uint8 (3, 224, 224)    1
  5     ToDtype(dtype=float32, scale=True)  image   float32 (3, 224, 224)  1
  6     Normalize(mean=0.5, std=0.25)       image   float32 (3, 224, 224)  1
  7     Resize(size=[64, 64])               image   float32 (3, 64, 64)    2
Outputs:
  output  from   what                 per record
  image   image  float32 (3, 64, 64)  49152 bytes
  label   label  int64 ()             8 bytes
)");
}

TEST(PlanText, ShowsBranchesListsAndUndecodedFiles) {
  const PlanPtr plan =
      plan_of({files("image"), text("caption")},
              {fork("image", {{"a", {flip(1)}}, {"b", {crop(8), flip(1)}}})}, lists());
  EXPECT_EQ(plan->text(), R"(Steps (those of one pass over an image are rendered as one):
  step  what                                    fields      after it         pass
  1     Fork("image")                           image -> a  uint8 (3, ?, ?)
  2     Fork("image")                           image -> b  uint8 (3, ?, ?)
  3     RandomHorizontalFlip(p=1)               a           uint8 (3, ?, ?)  1
  4     RandomCrop(size=8, pad_if_needed=True)  b           uint8 (3, 8, 8)  1
  5     RandomHorizontalFlip(p=1)               b           uint8 (3, 8, 8)  1
Outputs:
  output   from   what             per record
  a        image  uint8 (3, ?, ?)  list
  b        image  uint8 (3, 8, 8)  192 bytes
  caption  text   text             list
)");
  EXPECT_EQ(plan_of({label()}, {})->text(),
            R"(Steps (those of one pass over an image are rendered as one):
  none
Outputs:
  output  from   what      per record
  label   label  int64 ()  8 bytes
)");
}

}  // namespace
}  // namespace headrace::plan_test
