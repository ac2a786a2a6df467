// SPDX-License-Identifier: Apache-2.0
// The cost of inspecting the flight recorders when their ring buffers are full.
#include "tests/bench/in_replicas.hpp"

namespace bench {
namespace {

constexpr int kEnough = 1100;  // slightly more collectives than a recorder keeps

class Inspected final : public Side {
 public:
  Inspected(const Strategy& strategy, Inspect what) : strategy_(strategy), what_(what) {}
  std::string name() const override { return "libdist"; }
  void block(const Plan& plan, Samples& samples) override {
    strategy_.run(
        [](dist_replica* replica, void*) {
          dist_status status = DIST_OK;
          for (int i = 0; i < kEnough && status == DIST_OK; ++i)
            status = dist_barrier(replica, nullptr, nullptr);
          return status;
        },
        nullptr);
    wait_until_quiet();
    caller_block(plan, samples, [&] { look(); });
  }

 private:
  void look() {
    size_t written = 0;
    const auto count = [](const char*, size_t bytes, void* sum) { *static_cast<size_t*>(sum) += bytes; };
    switch (what_) {
      case Inspect::kStragglers:
        return require(
            dist_strategy_stragglers(strategy_.get(), nullptr, sizeof(dist_straggler), 0, &written),
            "dist_strategy_stragglers");
      case Inspect::kMetrics:
        return require(dist_strategy_write_metrics(strategy_.get(), nullptr, count, &written),
                       "dist_strategy_write_metrics");
      case Inspect::kTrace:
        return require(dist_strategy_write_trace(strategy_.get(), count, &written),
                       "dist_strategy_write_trace");
    }
  }

  const Strategy& strategy_;
  Inspect what_;
};

}  // namespace

std::unique_ptr<Side> libdist_inspect(const Strategy& strategy, Inspect what) {
  return std::make_unique<Inspected>(strategy, what);
}

}  // namespace bench
