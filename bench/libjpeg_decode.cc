// SPDX-License-Identifier: Apache-2.0
// Decodes JPEG files to RGB in a loop with libjpeg-turbo alone and prints pictures per second:
//   libjpeg_decode FILE_WITH_PATHS SECONDS
// The files are read before the clock starts. scaling.py runs one such process per core.
#include <chrono>
#include <csetjmp>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "jpeglib.h"  // must be included after <cstdio>

namespace {

struct ErrorManager {
  jpeg_error_mgr base;
  std::jmp_buf escape;
};

[[noreturn]] void give_up(j_common_ptr info) {
  std::longjmp(reinterpret_cast<ErrorManager*>(info->err)->escape, 1);
}

// Returns whether the picture was decoded; damaged ones are not counted.
bool decode(jpeg_decompress_struct& info, ErrorManager& errors,
            const std::vector<unsigned char>& file, std::vector<unsigned char>& pixels) {
  if (setjmp(errors.escape)) {
    jpeg_abort_decompress(&info);
    return false;
  }
  jpeg_mem_src(&info, file.data(), file.size());
  jpeg_read_header(&info, TRUE);
  info.out_color_space = JCS_RGB;
  info.dct_method = JDCT_ISLOW;
  jpeg_start_decompress(&info);
  const size_t stride = size_t{info.output_width} * 3;
  pixels.resize(stride * info.output_height);
  while (info.output_scanline < info.output_height) {
    unsigned char* row = pixels.data() + stride * info.output_scanline;
    jpeg_read_scanlines(&info, &row, 1);
  }
  jpeg_finish_decompress(&info);
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: libjpeg_decode FILE_WITH_PATHS SECONDS\n");
    return 2;
  }
  std::vector<std::vector<unsigned char>> files;
  std::ifstream list(argv[1]);
  for (std::string path; std::getline(list, path);) {
    std::ifstream file(path, std::ios::binary);
    files.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  }
  if (files.empty()) return 3;

  jpeg_decompress_struct info;
  ErrorManager errors;
  info.err = jpeg_std_error(&errors.base);
  errors.base.error_exit = give_up;
  errors.base.output_message = [](j_common_ptr) {};
  jpeg_create_decompress(&info);
  std::vector<unsigned char> pixels;
  for (const auto& file : files) decode(info, errors, file, pixels);  // warm-up

  using Clock = std::chrono::steady_clock;
  const double limit = std::atof(argv[2]);
  const auto start = Clock::now();
  double seconds = 0;
  long pictures = 0;
  while (seconds < limit) {
    for (const auto& file : files) pictures += decode(info, errors, file, pixels);
    seconds = std::chrono::duration<double>(Clock::now() - start).count();
  }
  std::printf("%.1f\n", pictures / seconds);
  jpeg_destroy_decompress(&info);
}
