// SPDX-License-Identifier: Apache-2.0
// A list of pictures as hostile input, as text and as CSV, with inferred and given classes; every
// label is read. The pictures do not exist.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "headrace/formats/format.h"
#include "headrace/sources/source.h"
#include "headrace/storage/temporary_folder.h"

namespace {

using namespace headrace;

void use(const std::string& path, std::map<std::string, ParamValue> arguments) {
  arguments.emplace("format", std::string("list"));
  try {
    const SourcePtr source = open_source(path, arguments);
    const auto classes = static_cast<int64_t>(source->classes().size());
    for (const Field& field : source->schema()) {
      if (field.encoded) continue;
      const std::vector<int64_t> labels = source->integer_column(field.name);
      if (static_cast<int64_t>(labels.size()) != source->size()) std::abort();
      for (const int64_t label : labels) {
        if (classes > 0 && (label < 0 || label >= classes)) std::abort();
      }
    }
    for (int64_t i = 0; i < source->size(); ++i) (void)source->key(i);
    (void)source->description();
  } catch (const Exception& exception) {
    if (exception.error().code->kind == ErrorKind::kStorage) std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const TemporaryFolder folder;
  const std::string far = "memory://none";  // because no file is checked when opening
  for (const char* name : {"list.txt", "list.csv"}) {
    const std::string path =
        folder.write(name, std::string_view(reinterpret_cast<const char*>(data), size));
    use(path, {});
    use(path, {{"root", far}});
    use(path, {{"root", far}, {"classes", std::vector<std::string>{"cat", "dog", "7"}}});
  }
  return 0;
}
