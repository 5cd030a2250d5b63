// SPDX-License-Identifier: Apache-2.0
// A Huffman code of a file in the form that a device makes its table from. Any thread may call it.
#pragma once

#include "headrace/kernels/device_jpeg/device_picture.h"
#include "headrace/kernels/jpeg/huffman.h"

namespace headrace {

// False for a code that libjpeg refuses, and for one whose long codes a device's table has no room
// for.
bool make_device_code(const HuffmanSpec& spec, HuffmanUse use, DeviceCode& code);

}  // namespace headrace
