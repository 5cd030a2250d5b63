// SPDX-License-Identifier: Apache-2.0
// For ThreadSanitizer: loaders over a folder of photos, one after the other, that are advanced,
// observed, moved, resumed and closed while their threads work.
//
//   races PHOTOS THREADS SECONDS SEED
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <random>
#include <thread>
#include <utility>
#include <vector>

#include "headrace/base/error.h"
#include "headrace/formats/format.h"
#include "headrace/loader.h"

namespace {

using headrace::Batch;
using headrace::Loader;
using headrace::LoaderOptions;
using Clock = std::chrono::steady_clock;

class Round {
 public:
  Round(headrace::SourcePtr source, int threads, uint32_t seed)
      : draws_(seed), loader_(std::move(source), pipeline(), options(threads)) {}

  void run() {
    std::thread observer([this] { observe(); });
    const bool stopped_elsewhere = chance(4);
    std::thread stopper;
    if (stopped_elsewhere) {
      const auto pause = std::chrono::microseconds(draw(20'000));
      stopper = std::thread([this, pause] {
        std::this_thread::sleep_for(pause);
        loader_.stop_workers();
        stopped_ = true;
      });
    }
    try {
      advance();
    } catch (const Stopped&) {
    }
    ended_ = true;
    observer.join();
    if (stopper.joinable()) stopper.join();
    if (chance(2)) loader_.close();
  }

 private:
  struct Stopped {};

  static headrace::Pipeline pipeline() {
    return {.transforms = {{"RandomResizedCrop", {{"size", int64_t{32}}}},
                           {"RandomHorizontalFlip"},
                           {"ColorJitter", {{"brightness", 0.4}}}}};
  }
  LoaderOptions options(int threads) {
    LoaderOptions out;
    out.batch_size = 1 + draw(12);
    out.shuffle = chance(2);
    out.seed = draws_();
    out.threads = threads;
    out.memory_limit = size_t{256} << 20;
    out.cache = chance(2) ? size_t{1} << 20 : 0;
    out.on_error = chance(2) ? headrace::OnError::kSkip : headrace::OnError::kSubstitute;
    out.error_rate = 1;
    return out;
  }

  uint32_t draw(uint32_t below) { return static_cast<uint32_t>(draws_() % below); }
  bool chance(uint32_t one_in) { return draw(one_in) == 0; }

  void observe() {
    while (!ended_) {
      (void)loader_.stats();
      (void)loader_.quarantine();
      (void)loader_.state();
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }
  void advance() {
    const auto interrupted = [this] {
      if (stopped_) throw Stopped();
    };
    const auto state = loader_.state();
    for (uint32_t step = 0, steps = draw(60); step < steps; ++step) {
      std::optional<Batch> batch = loader_.next(interrupted);
      if (batch && chance(3)) {
        droppers_.emplace_back([kept = std::move(*batch)] { (void)kept; });
      }
      if (chance(20)) loader_.restart(interrupted);
      if (chance(20)) loader_.set_epoch(draw(3), interrupted);
      if (chance(20)) loader_.load_state(state, interrupted);
      if (chance(20)) (void)loader_.batch(draw(3), 0);
    }
  }

  std::mt19937 draws_;
  std::atomic<bool> ended_{false}, stopped_{false};
  Loader loader_;
  std::vector<std::jthread> droppers_;  // each drops a batch
};

}  // namespace

int main(int, char** arguments) {
  const auto source = headrace::open_source(arguments[1]);
  const int threads = std::atoi(arguments[2]);
  const auto end = Clock::now() + std::chrono::seconds(std::atoi(arguments[3]));
  std::mt19937 seeds(static_cast<uint32_t>(std::strtoul(arguments[4], nullptr, 10)));
  int rounds = 0;
  for (; rounds == 0 || Clock::now() < end; ++rounds) Round(source, threads, seeds()).run();
  std::printf("%d\n", rounds);
}
