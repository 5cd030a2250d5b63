// SPDX-License-Identifier: Apache-2.0
// Runs a fuzz target over the inputs that are kept for it, each once: `target_replay fuzz/target`.
// So they are tests, built by g++ with the sanitizers; `./dev fuzz` is what looks for new ones.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

int main(int count, char** arguments) {
  std::vector<std::filesystem::path> inputs;
  for (int i = 1; i < count; ++i) {
    for (const auto& entry : std::filesystem::directory_iterator(arguments[i])) {
      inputs.push_back(entry.path());
    }
  }
  std::sort(inputs.begin(), inputs.end());
  for (const std::filesystem::path& input : inputs) {
    std::printf("%s\n", input.c_str());  // the last one, where it ends the process
    std::fflush(stdout);
    std::ifstream file(input, std::ios::binary);
    const std::vector<char> bytes{std::istreambuf_iterator<char>(file), {}};
    LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size());
  }
  return inputs.empty();  // a corpus that is not there proves nothing
}

// What libFuzzer would offer to targets with a mutator of their own; nothing is mutated here.
extern "C" size_t LLVMFuzzerMutate(uint8_t*, size_t size, size_t) { return size; }
