// SPDX-License-Identifier: Apache-2.0
// Plain pread of pieces of a file: the minimum cost of a container reader.
//
//   pread_probe FILE PIECES OFFSET-STEP BYTES THREADS BUFFERS
//
// Reads pieces of BYTES each at number * OFFSET-STEP, with the numbers in PIECES (int64, as written
// by NumPy without a header), into BUFFERS buffers per thread in turn. A line "epoch" on stdin runs
// one pass and prints its seconds; "cold" first drops the file from the page cache. Threads take 32
// numbers at a time. Built by formats.py.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <string>
#include <thread>
#include <vector>

namespace {

constexpr size_t kTogether = 32;

struct Work {
  int file;
  std::vector<int64_t> numbers;
  int64_t step, bytes, buffers;
  std::atomic<size_t> next{0};
  std::atomic<bool> failed{false};
};

void read_pieces(Work& work, size_t together) {
  const auto bytes = static_cast<size_t>(work.bytes);
  std::vector<std::vector<char>> buffers(static_cast<size_t>(work.buffers),
                                         std::vector<char>(bytes));
  size_t used = 0;
  for (;;) {
    const size_t begin = work.next.fetch_add(together);
    if (begin >= work.numbers.size()) return;
    const size_t end = std::min(begin + together, work.numbers.size());
    for (size_t i = begin; i < end; ++i) {
      char* const to = buffers[used++ % buffers.size()].data();
      const ssize_t got = pread(work.file, to, bytes, work.numbers[i] * work.step);
      if (got != static_cast<ssize_t>(bytes)) work.failed = true;
    }
  }
}

double run(Work& work, int threads, bool cold) {
  if (cold) posix_fadvise(work.file, 0, 0, POSIX_FADV_DONTNEED);
  if (cold) posix_fadvise(work.file, 0, 0, POSIX_FADV_RANDOM);
  work.next = 0;
  const auto begin = std::chrono::steady_clock::now();
  std::vector<std::thread> readers;
  for (int i = 1; i < threads; ++i) {
    readers.emplace_back([&] { read_pieces(work, cold ? 1 : kTogether); });
  }
  read_pieces(work, cold ? 1 : kTogether);
  for (std::thread& reader : readers) reader.join();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 7) return 2;
  Work work;
  work.file = open(argv[1], O_RDONLY | O_CLOEXEC);
  work.step = std::atoll(argv[3]);
  work.bytes = std::atoll(argv[4]);
  work.buffers = std::max(1, std::atoi(argv[6]));
  std::ifstream pieces(argv[2], std::ios::binary);
  for (int64_t number; pieces.read(reinterpret_cast<char*>(&number), sizeof number);) {
    work.numbers.push_back(number);
  }
  if (work.file < 0 || work.numbers.empty()) return 3;
  const int threads = std::atoi(argv[5]);
  for (std::string line; std::getline(std::cin, line) && (line == "epoch" || line == "cold");) {
    const double seconds = run(work, threads, line == "cold");
    if (work.failed) return 4;
    std::printf("%.9f\n", seconds);
    std::fflush(stdout);
  }
  return 0;
}
