// SPDX-License-Identifier: Apache-2.0
// A library that uses oneTBB itself. rename_tbb.py binds it to a oneTBB that is not libdist's.
#include <dlfcn.h>
#include <oneapi/tbb/blocked_range.h>
#include <oneapi/tbb/parallel_reduce.h>
#include <oneapi/tbb/version.h>

#define EXPORT extern "C" [[gnu::visibility("default")]]

EXPORT const char *tbb_user_run();
EXPORT const char *tbb_user_version();

const char *tbb_user_run() {
  constexpr int kMany = 100'000;
  const long sum = tbb::parallel_reduce(
      tbb::blocked_range<int>(0, kMany), 0L,
      [](const tbb::blocked_range<int> &some, long so_far) {
        for (int i = some.begin(); i < some.end(); ++i) so_far += i;
        return so_far;
      },
      [](long a, long b) { return a + b; });
  return sum == long{kMany} * (kMany - 1) / 2 ? "" : "a wrong sum";
}

// The path of the oneTBB that this library calls.
const char *tbb_user_version() {
  Dl_info info;
  return dladdr(reinterpret_cast<void *>(&TBB_runtime_version), &info) == 0 ? "" : info.dli_fname;
}
