// SPDX-License-Identifier: Apache-2.0
// How long pdep takes, measured: a CPU's name says it only of those that were known.
#pragma once

namespace headrace {

// The cost of a pdep that waits for the one before, in dependent multiplications: 1 for a circuit,
// 6 to 100 for microcode. Takes microseconds. REQUIRES: BMI2. 0 on other architectures.
double pdep_cost();
constexpr double kSlowPdepCost = 3;

}  // namespace headrace
