// SPDX-License-Identifier: Apache-2.0
// Runs a fuzz target over its stored inputs, also truncated at every 1/64 of their length and with
// some bytes changed: `target_replay fuzz/target`. These are tests, built by g++ with the
// sanitizers; `./dev fuzz` looks for new inputs.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace {

using Bytes = std::vector<uint8_t>;

// In separate memory, so that reads past the end are detected.
void run(const uint8_t* data, size_t size) {
  const Bytes bytes(data, data + size);
  LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
}

void run_damaged(const Bytes& bytes) {
  constexpr size_t kCuts = 64, kMutations = 16;
  size_t last = bytes.size();
  for (size_t i = kCuts; i-- > 0;) {
    const size_t cut = bytes.size() * i / kCuts;
    if (cut != last) run(bytes.data(), cut);
    last = cut;
  }
  // its sequence is specified by the standard
  std::mt19937 random(static_cast<unsigned>(bytes.size()));
  for (size_t i = 0; i < kMutations && !bytes.empty(); ++i) {
    Bytes changed = bytes;
    // Headers come first: half of the changes are among the first bytes.
    const size_t among = i % 2 ? bytes.size() : std::min<size_t>(bytes.size(), 64);
    for (size_t k = 0; k <= i % 4; ++k) changed[random() % among] = static_cast<uint8_t>(random());
    run(changed.data(), changed.size());
  }
}

}  // namespace

int main(int count, char** arguments) {
  std::vector<std::filesystem::path> inputs;
  for (int i = 1; i < count; ++i) {
    for (const auto& entry : std::filesystem::directory_iterator(arguments[i])) {
      inputs.push_back(entry.path());
    }
  }
  std::sort(inputs.begin(), inputs.end());
  for (const std::filesystem::path& input : inputs) {
    std::printf("%s\n", input.c_str());  // the last input, if it crashes the process
    std::fflush(stdout);
    std::ifstream file(input, std::ios::binary);
    const Bytes bytes{std::istreambuf_iterator<char>(file), {}};
    run(bytes.data(), bytes.size());
    run_damaged(bytes);
  }
  return inputs.empty();  // a missing corpus proves nothing
}

// What libFuzzer provides to targets with a custom mutator; nothing is mutated here.
extern "C" size_t LLVMFuzzerMutate(uint8_t*, size_t size, size_t) { return size; }
