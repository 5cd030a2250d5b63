// SPDX-License-Identifier: Apache-2.0
// How long pdep takes, measured: a CPU's name says it only of those that were known.
#pragma once

namespace headrace {

// Of one pdep that waits for the one before, in multiplications that do: 1 where it is a circuit,
// 6 to 100 where it is microcode. Takes microseconds. REQUIRES: BMI2. 0 on other architectures.
double pdep_cost();
constexpr double kSlowPdepCost = 3;

}  // namespace headrace
