// SPDX-License-Identifier: Apache-2.0
// Measures how much of the time the GIL is held, by a thread that requests it at random moments.
//
// A request that finds the GIL free gets it at once; one that finds it held has to sleep, which the
// system counts (voluntary context switches), so a thread that was merely preempted does not count
// as waiting. Requests at exponentially distributed intervals sample the average over time. While a
// request waits, the GIL is held throughout, so it represents the requests that would have been
// made during that time.
#include <poll.h>
#include <sys/resource.h>

#include <chrono>
#include <ctime>
#include <random>

#include "bindings/bindings.h"

namespace headrace::python {
namespace {

using Clock = std::chrono::steady_clock;

constexpr double kLate = 1e-3;  // seconds

long voluntary_switches() {
  rusage usage{};
  getrusage(RUSAGE_THREAD, &usage);
  return usage.ru_nvcsw;
}

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

// Sleeps, or less if the file becomes readable before. Returns whether it did.
bool is_readable_within(int file, double seconds) {
  if (seconds < 0) seconds = 0;
  const auto whole = static_cast<time_t>(seconds);
  const timespec left{whole, static_cast<long>(1e9 * (seconds - static_cast<double>(whole)))};
  pollfd waits_for{file, POLLIN, 0};  // a negative descriptor is ignored
  return ppoll(&waits_for, 1, &left, nullptr) > 0;
}

struct Requests {
  double made = 0;
  double found_held = 0;
  double late = 0;  // made only once a core became free, which is not a random moment
};

// Requests the GIL for about `seconds`, at moments that are `gap` seconds apart on average.
Requests ask_for_gil(double seconds, double gap, int stop) {
  thread_local std::mt19937_64 random{std::random_device{}()};
  std::exponential_distribution<double> distance(1.0 / gap);
  Requests requests;
  PyThreadState* state = PyEval_SaveThread();
  const auto start = Clock::now();
  double next = distance(random);
  bool stopped = false;
  while (next < seconds) {
    stopped = is_readable_within(stop, next - seconds_since(start));
    if (stopped) break;
    const double delay = seconds_since(start) - next;
    const long switches = voluntary_switches();
    const auto begin = Clock::now();
    PyEval_RestoreThread(state);
    const double waited = seconds_since(begin);
    state = PyEval_SaveThread();
    const bool slept = voluntary_switches() != switches;
    const double stands_for = slept ? 1.0 + waited / gap : 1.0;
    requests.made += stands_for;
    if (slept) requests.found_held += stands_for;
    if (delay > kLate) requests.late += 1.0 + delay / gap;
    next = seconds_since(start) + distance(random);
  }
  if (!stopped) is_readable_within(stop, seconds - seconds_since(start));
  PyEval_RestoreThread(state);
  return requests;
}

}  // namespace

void bind_gil_share(nb::module_& module) {
  module.def(
      "ask_for_gil",
      [](double seconds, double gap, int stop) {
        if (!(seconds >= 0 && seconds < 1e6) || !(gap > 0)) {
          throw nb::value_error("seconds >= 0 and gap > 0");
        }
        const Requests requests = ask_for_gil(seconds, gap, stop);
        return nb::make_tuple(requests.made, requests.found_held, requests.late);
      },
      nb::arg("seconds"), nb::arg("gap"), nb::arg("stop") = -1,
      nb::sig("def ask_for_gil(seconds: float, gap: float, stop: int = -1) -> tuple[float, float, "
              "float]"),
      "For `seconds`, requests the GIL at random moments, `gap` seconds apart on average, from\n"
      "the calling thread, which does not hold it in between. Returns the number of requests, how\n"
      "many found it held, and how many were late because no core was free.\n"
      "Ends early when the file descriptor `stop` can be read.");
}

}  // namespace headrace::python
