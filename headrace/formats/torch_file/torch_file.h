// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace headrace {

// Whether it is a zip archive as torch.save writes it, which has a data.pkl.
bool is_torch_archive(const std::string& path);

}  // namespace headrace
