// SPDX-License-Identifier: Apache-2.0
// libdist with its default options: replicas are threads.
#include <dist/dist.h>

#include "tests/bench/decode/token.hpp"

namespace {

struct Job {
  const bench::decode::Plan* plan;
  bench::decode::Page* page;
};

dist_status decode(dist_replica* replica, void* user_data) {
  using namespace bench::decode;
  const Job& job = *static_cast<const Job*>(user_data);
  dist_status status = DIST_OK;
  play(dist_replica_id(replica), *job.plan, *job.page, [&](Tensor& tensor) {
    const int64_t shape[] = {static_cast<int64_t>(kElements)};
    dist_tensor view{tensor.elements, DIST_BF16, 1, shape, nullptr};
    status = dist_all_reduce(replica, DIST_REDUCE_SUM, &view, &view, 1, nullptr, nullptr);
    return status == DIST_OK;
  });
  return status;
}

}  // namespace

int main(int argc, char** argv) {
  using namespace bench::decode;
  return side_main(argc, argv, [](const Plan& plan, Page& page) {
    dist_strategy_options options = DIST_STRATEGY_OPTIONS_INIT;
    options.num_replicas = plan.members;
    dist_strategy* strategy = nullptr;
    Job job{&plan, &page};
    const bool done = dist_strategy_create(&options, &strategy) == DIST_OK &&
                      dist_run(strategy, decode, &job, nullptr) == DIST_OK;
    if (!done) std::fprintf(stderr, "libdist: %s\n", dist_last_error());
    return dist_strategy_destroy(strategy) == DIST_OK && done;
  });
}
