// SPDX-License-Identifier: Apache-2.0
//
// deadlines.c in C++: three runs that end early, and one that succeeds after them.
//
//     c++ -std=c++17 deadlines.cpp $(pkg-config --cflags --libs dist) -o deadlines && ./deadlines
#include <cstdio>
#include <dist/dist.hpp>

constexpr int64_t kMillisecond = 1000000;

// A long computation. check() throws when the run fails, is cancelled, or reaches its deadline.
void compute(dist::replica replica) {
  for (;;) replica.check();  // ... and compute a little
}

template <class Run>
void report(const char *name, Run &&run) {
  try {
    run();
    std::printf("%s: OK\n", name);
  } catch (const dist::error &error) {
    std::printf("%s: %s", name, dist_status_name(error.code()));
    if (error.replica() >= 0) std::printf(", replica %d", error.replica());
    std::printf("\n");
  }
}

int main() {
  try {
    const dist::strategy strategy(2);
    report("late", [&] {  // replica 1 does not arrive at the barrier in time
      strategy.run([](dist::replica replica) {
        dist::collective_options options;
        options.timeout_ns = 50 * kMillisecond;
        if (replica.id() == 1) compute(replica);
        replica.barrier(options);
      });
    });
    report("slow", [&] {  // replica 0 takes longer than the whole run may
      dist_run_options limited = DIST_RUN_OPTIONS_INIT;
      limited.timeout_ns = 50 * kMillisecond;
      strategy.run(
          [](dist::replica replica) {
            if (replica.id() == 0) compute(replica);
          },
          limited);
    });
    report("cancelled", [&] {  // replica 0 cancels the run; any other thread could do so, too
      const dist::cancel cancel;
      dist_run_options cancellable = DIST_RUN_OPTIONS_INIT;
      cancellable.cancel = cancel.get();
      strategy.run(
          [&](dist::replica replica) {
            if (replica.id() == 0) cancel.signal("enough");
            compute(replica);
          },
          cancellable);
    });
    report("quick", [&] { strategy.run([](dist::replica replica) { replica.barrier(); }); });
  } catch (const std::exception &error) {
    std::fprintf(stderr, "deadlines: %s\n", error.what());
    return 1;
  }
  return 0;
}
