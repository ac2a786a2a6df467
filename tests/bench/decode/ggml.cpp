// SPDX-License-Identifier: Apache-2.0
// llama.cpp's barrier, with fused slices on top of it.
#include "tests/bench/decode/fused.hpp"

extern "C" {
struct ggml_threadpool;
ggml_threadpool* decode_threadpool(int threads);
void ggml_barrier(ggml_threadpool* pool);
}

int main(int argc, char** argv) {
  using namespace bench::decode;
  return side_main(argc, argv, [](const Plan& plan, Page& page) {
    ggml_threadpool* const pool = decode_threadpool(plan.members);
    if (pool == nullptr) return false;
    const bool done = run_fused(plan, page, [&] { ggml_barrier(pool); });
    std::free(pool);
    return done;
  });
}
