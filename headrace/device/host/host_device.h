// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "headrace/device/device.h"

namespace headrace {

// The host as a device; one object per process.
DevicePtr host_device();

}  // namespace headrace
