// SPDX-License-Identifier: Apache-2.0
// Measures how long pdep takes: a CPU's name is enough only for known models.
#pragma once

namespace headrace {

// The cost of a pdep that waits for the one before, in dependent multiplications: 1 for a circuit,
// 6 to 100 for microcode. Takes microseconds. REQUIRES: BMI2. 0 on other architectures.
double pdep_cost();
constexpr double kSlowPdepCost = 3;

}  // namespace headrace
