// SPDX-License-Identifier: Apache-2.0
// Measures how long pdep takes, because a CPU's name only identifies known models.
#pragma once

namespace headrace {

// The cost of a dependent pdep, in dependent multiplications: 1 in hardware, 6 to 100 in microcode.
// Takes microseconds. REQUIRES: BMI2. 0 on other architectures.
double pdep_cost();
constexpr double kSlowPdepCost = 3;

}  // namespace headrace
