// SPDX-License-Identifier: Apache-2.0
// libdist on lists of gradients: in one call and one by one, in replicas and in the cross-replica context.
#include "tests/bench/in_replicas.hpp"

namespace bench {
namespace {

class ListAllReduce final : public InReplicas {
 public:
  ListAllReduce(const Strategy& strategy, DataList& list, bool one_by_one)
      : InReplicas(strategy, &list, one_by_one ? "libdist, one by one" : "libdist"),
        list_(list),
        one_by_one_(one_by_one) {}

  dist_status replica(dist_replica* replica, const Job& job) override {
    std::vector<dist_tensor> tensors = list_.views(dist_replica_id(replica));
    const size_t calls = one_by_one_ ? tensors.size() : 1, in_one = tensors.size() / calls;
    return loop(replica, job, [&] {
      dist_status status = DIST_OK;
      for (size_t call = 0; call < calls && status == DIST_OK; ++call) {
        dist_tensor* const first = &tensors[call * in_one];
        status = dist_all_reduce(replica, DIST_REDUCE_SUM, first, first, in_one, nullptr, nullptr);
      }
      return status;
    });
  }

 private:
  DataList& list_;
  bool one_by_one_;
};

struct Release {
  void operator()(dist_value* value) const { dist_value_release(value); }
};
using Value = std::unique_ptr<dist_value, Release>;

// The results are new values each time. They are compared and released before the next call.
class ReduceTo final : public Side {
 public:
  ReduceTo(const Strategy& strategy, DataList& list, bool one_by_one)
      : strategy_(strategy), list_(list), one_by_one_(one_by_one) {
    for (int r = 0; r < list.replicas(); ++r) list.reset(r);
    for (size_t t = 0; t < list.size(); ++t) {
      std::vector<Value> components;
      std::vector<dist_value*> items;
      for (int r = 0; r < list.replicas(); ++r) {
        const std::vector<dist_tensor> views = list.views(r);
        require(dist_value_wrap_tensor(strategy.get(), &views[t], nullptr, nullptr, &items.emplace_back()),
                "dist_value_wrap_tensor");
        components.emplace_back(items.back());
      }
      require(
          dist_value_create_per_replica(strategy.get(), items.data(), items.size(), &values_.emplace_back()),
          "dist_value_create_per_replica");
      owned_.emplace_back(values_.back());
    }
  }
  std::string name() const override { return one_by_one_ ? "libdist, N x reduce_to" : "libdist"; }

  void block(const Plan& plan, Samples& samples) override {
    list_.expect(1);
    for (int batch = 0; batch <= plan.batches; ++batch) {
      std::vector<dist_value*> results(values_.size(), nullptr);
      const double begin = now_us();
      const dist_status status = reduce(results.data());
      const double end = now_us();
      require(status, "dist_batch_reduce_to");
      if (batch > 0) samples.push_back(end - begin);
      for (size_t t = 0; t < results.size(); ++t) {
        const Value result(results[t]);
        dist_tensor tensor;
        // With one replica, the result is the tensor itself.
        const dist_value* const first = dist_value_item(results[t], 0);
        require(dist_value_tensor(first != nullptr ? first : results[t], &tensor), "dist_value_tensor");
        list_.check_result(t, tensor.data);
      }
    }
  }

 private:
  dist_status reduce(dist_value** results) {
    if (!one_by_one_) {
      return dist_batch_reduce_to(strategy_.get(), DIST_REDUCE_SUM, values_.data(), nullptr, values_.size(),
                                  nullptr, results);
    }
    dist_status status = DIST_OK;
    for (size_t t = 0; t < values_.size() && status == DIST_OK; ++t)
      status = dist_reduce_to(strategy_.get(), DIST_REDUCE_SUM, values_[t], nullptr, nullptr, &results[t]);
    return status;
  }

  const Strategy& strategy_;
  DataList& list_;
  bool one_by_one_;
  std::vector<dist_value*> values_;
  std::vector<Value> owned_;
};

}  // namespace

std::unique_ptr<Side> libdist_list(const Strategy& strategy, DataList& list, bool one_by_one) {
  return std::make_unique<ListAllReduce>(strategy, list, one_by_one);
}
std::unique_ptr<Side> libdist_reduce_to(const Strategy& strategy, DataList& list, bool one_by_one) {
  return std::make_unique<ReduceTo>(strategy, list, one_by_one);
}

}  // namespace bench
