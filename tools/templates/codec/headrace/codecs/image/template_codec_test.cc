// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cstring>
#include <string>

#include "headrace/base/registry.h"
#include "headrace/image/recipe_test_images.h"

namespace headrace {
namespace {

Result<Recipe> opened(const std::string& file, Buffer& bytes, Renderer& renderer) {
  bytes.resize(file.size());
  std::memcpy(bytes.data(), file.data(), file.size());
  Result<EncodedImage> picture = renderer.open(bytes.bytes(), {});
  if (!picture) return std::move(picture.error());
  return Recipe(*picture);
}

TEST(TemplateCodec, GivesTheWindow) {
  Renderer renderer;
  Buffer bytes;
  Result<Recipe> recipe = opened(
      "HRTEMPLATE\x03\x02"
      "abcdef",
      bytes, renderer);
  ASSERT_TRUE(recipe);
  ASSERT_TRUE(recipe->crop({1, 1, 2, 1}));
  const recipe_test::Grid grid = recipe_test::render(*recipe, renderer);
  EXPECT_EQ(grid.at(0, 0, 0), 'e');
  EXPECT_EQ(grid.at(2, 0, 1), 'f');
}

TEST(TemplateCodec, ReportsTheCauseOfDamage) {
  Renderer renderer;
  Buffer bytes;
  Result<Recipe> recipe = opened(
      "HRTEMPLATE\x03\x02"
      "abc",
      bytes, renderer);
  ASSERT_TRUE(recipe);
  Result<void> made = renderer.materialize(*recipe);
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code, Registry<ErrorCode>::find("HR9990"));
}

}  // namespace
}  // namespace headrace
