// SPDX-License-Identifier: Apache-2.0
// The loader's options declared as data: the keywords of Python's Loader with their docstring,
// checks and type stubs, the reference and the command line's options are made from this table, and
// it converts Python's arguments to LoaderOptions.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "headrace/base/parameters.h"
#include "headrace/loader.h"

namespace headrace {

struct LoaderOption {
  Param param;
  // The heading in the reference; empty: internal, not a keyword.
  std::string_view group;
  // Stores a value other than None, already checked by `param`, in LoaderOptions.
  std::function<void(LoaderOptions&, const ParamValue&)> set;
};

// In the order of the reference.
const std::vector<LoaderOption>& loader_options();

// Options by name; those not given get the defaults of the table. Throws Exception HR0101..HR0104.
LoaderOptions loader_options_from(const std::map<std::string, ParamValue>& given);

}  // namespace headrace
