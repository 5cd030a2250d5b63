// SPDX-License-Identifier: Apache-2.0
#include "headrace/plugin/plugin_call.h"

#include <algorithm>
#include <cstring>
#include <string_view>

#include "headrace/base/utf8.h"

namespace headrace {
namespace {

uint32_t draw_bits(headrace_draws* from) {
  from->misused |= !from->allowed;
  return from->allowed ? from->draws.bits() : 0;
}
double draw_uniform(headrace_draws* from) {
  from->misused |= !from->allowed;
  return from->allowed ? from->draws.uniform() : 0;
}
int64_t draw_below(headrace_draws* from, int64_t n) {
  from->misused |= !from->allowed;
  return from->allowed && n > 0 ? from->draws.below(n) : 0;
}

headrace_value value_of(const Param& param, const Arguments& arguments) {
  headrace_value out{};
  out.count = 1;
  switch (param.type) {
    case ParamType::kBool:
      out.type = HEADRACE_PARAM_BOOL;
      out.integer = arguments.flag(param.name);
      break;
    case ParamType::kInt:
      out.type = HEADRACE_PARAM_INT;
      out.integer = arguments.integer(param.name);
      break;
    case ParamType::kFloat:
      out.type = HEADRACE_PARAM_FLOAT;
      out.number = arguments.number(param.name);
      break;
    case ParamType::kString:
      out.type = HEADRACE_PARAM_TEXT;
      out.text = arguments.text(param.name).c_str();
      break;
    case ParamType::kInts: {
      const std::vector<int64_t>& list = arguments.integers(param.name);
      out.type = HEADRACE_PARAM_INTS;
      out.integers = list.data();
      out.count = uint32_t(list.size());
      break;
    }
    default: {  // set_type() in declared.cc allows no others
      const std::vector<double>& list = arguments.numbers(param.name);
      out.type = HEADRACE_PARAM_FLOATS;
      out.numbers = list.data();
      out.count = uint32_t(list.size());
    }
  }
  return out;
}

}  // namespace

PluginRecord::PluginRecord(const Record& record, const Draws& draws, bool random)
    : draws_{draws, random, false} {
  record_.struct_size = sizeof record_;
  record_.index = record.index;
  record_.position = record.position;
  if (random) record_.seed = draws_.draws.key();
  record_.draws = &draws_;
  record_.bits = draw_bits;
  record_.uniform = draw_uniform;
  record_.below = draw_below;
}

std::string PluginMessage::text() const {
  std::string out;
  std::string_view rest(text_, strnlen(text_, sizeof text_));
  while (!rest.empty()) {
    const size_t length = utf8_length(rest);
    out += length > 0 ? rest.substr(0, length) : "?";
    rest.remove_prefix(std::max<size_t>(length, 1));
  }
  return out;
}

std::vector<headrace_value> values_of(const std::vector<Param>& params,
                                      const Arguments& arguments) {
  std::vector<headrace_value> out;
  for (const Param& param : params) out.push_back(value_of(param, arguments));
  return out;
}

}  // namespace headrace
