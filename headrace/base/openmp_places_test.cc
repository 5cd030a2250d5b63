// SPDX-License-Identifier: Apache-2.0
#include "headrace/base/openmp_places.h"

#include <gtest/gtest.h>

#include <initializer_list>
#include <vector>

namespace headrace {
namespace {

cpu_set_t cores(std::initializer_list<size_t> numbers) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const size_t number : numbers) CPU_SET(number, &set);
  return set;
}

bool equal(const cpu_set_t& a, const cpu_set_t& b) { return CPU_EQUAL(&a, &b); }

TEST(OpenmpPlaces, AThreadBoundToOnePlaceMayRunOnAllPlaces) {
  const std::vector<cpu_set_t> places = {cores({2, 10}), cores({3, 11}), cores({4, 12})};
  EXPECT_TRUE(equal(widened(cores({3, 11}), places), cores({2, 3, 4, 10, 11, 12})));
  EXPECT_TRUE(equal(widened(cores({11}), places), cores({2, 3, 4, 10, 11, 12})));
}

TEST(OpenmpPlaces, AMaskSetElsewhereIsRespected) {
  const std::vector<cpu_set_t> places = {cores({2, 10}), cores({3, 11}), cores({4, 12})};
  EXPECT_TRUE(equal(widened(cores({2, 3}), places), cores({2, 3})));
  EXPECT_TRUE(equal(widened(cores({7}), places), cores({7})));
  EXPECT_TRUE(equal(widened(cores({7}), {}), cores({7})));
  EXPECT_TRUE(equal(widened(cores({}), places), cores({}))) << "what the system does not tell";
}

}  // namespace
}  // namespace headrace
