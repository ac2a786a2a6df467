// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/overlap/worker.hpp"

#include <stdexcept>
#include <string>

#include "dist/dist.h"
#include "tests/bench/data.hpp"
#include "tests/bench/overlap/part.hpp"

namespace bench::overlap {
namespace {

constexpr std::size_t kFirstBucketBytes = std::size_t{1} << 20, kBucketBytes = std::size_t{25} << 20;

void must(dist_status status) {
  if (status != DIST_OK) throw std::runtime_error(dist_last_error());
}

class Worker {
 public:
  Worker(Part& part, dist_transport transport) : part_(part) {
    // The gradients of a bucket are contiguous, so that they form one tensor.
    auto tensor = static_cast<int>(part_.elements().size());
    for (const int tensors : buckets_of(part_.elements())) {
      int64_t elements = 0;
      for (int i = 1; i <= tensors; ++i) elements += length_of(tensor - i);
      buckets_.push_back(
          {tensor - tensors, elements, allocate(static_cast<std::size_t>(elements) * sizeof(float))});
      auto* at = static_cast<float*>(buckets_.back().gradients.get());
      for (int i = 1; i <= tensors; ++i, at += length_of(tensor)) part_.place(--tensor, at);
    }
    dist_strategy_options options = DIST_STRATEGY_OPTIONS_INIT;
    dist_worker_options worker = DIST_WORKER_OPTIONS_INIT;
    options.worker = &worker;
    options.kind = DIST_STRATEGY_MULTI_WORKER_MIRRORED;
    options.num_replicas = 1;
    worker.transport = transport;
    must(dist_strategy_create(&options, &strategy_));
  }
  ~Worker() {
    if (strategy_ != nullptr) (void)!dist_strategy_destroy(strategy_);
  }
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  void take_turns() {
    while ((turn_ = part_.next_turn()).steps != 0) must(dist_run(strategy_, turn, this, nullptr));
  }

 private:
  struct Bucket {
    int first;  // first tensor, whose gradient completes the bucket
    int64_t elements;
    Buffer gradients;
  };

  int64_t length_of(int tensor) const {
    return static_cast<int64_t>(part_.elements()[static_cast<std::size_t>(tensor)]);
  }

  static dist_status turn(dist_replica* replica, void* user_data) {
    Worker& mine = *static_cast<Worker*>(user_data);
    try {
      dist_status status = DIST_OK;
      for (int i = 0; i < mine.turn_.steps && status == DIST_OK; ++i) status = mine.step(replica);
      return status;
    } catch (const std::exception& error) {
      mine.part_.side().fail(error.what());
      return DIST_ABORTED;
    }
  }

  dist_status step(dist_replica* replica) {
    std::vector<dist_work*> works(buckets_.size());
    std::size_t complete = 0;
    dist_status status = DIST_OK;
    part_.begin_step();
    for (auto l = static_cast<int>(part_.layers().size()); l-- > 0 && status == DIST_OK;) {
      part_.pass(l);
      const int first = part_.layers()[static_cast<std::size_t>(l)].first;
      while (turn_.communicates && status == DIST_OK && complete < buckets_.size() &&
             buckets_[complete].first >= first) {
        status = reduce(replica, buckets_[complete], &works[complete]);
        ++complete;
      }
    }
    for (dist_work* const work : works) {
      if (work != nullptr && status == DIST_OK) status = dist_work_wait(work, DIST_NO_TIMEOUT);
    }
    for (dist_work* const work : works) dist_work_destroy(work);
    if (status != DIST_OK) return status;
    part_.end_step();
    if (turn_.communicates) check();
    return status;
  }

  static dist_status reduce(dist_replica* replica, const Bucket& bucket, dist_work** out_work) {
    dist_tensor tensor = {bucket.gradients.get(), DIST_F32, 1, &bucket.elements, nullptr};
    dist_collective_options options = DIST_COLLECTIVE_OPTIONS_INIT;
    return dist_all_reduce(replica, DIST_REDUCE_MEAN, &tensor, &tensor, 1, &options, out_work);
  }

  void check() const {
    auto tensor = static_cast<int>(part_.elements().size());
    for (const Bucket& bucket : buckets_) {
      const auto* at = static_cast<const float*>(bucket.gradients.get());
      while (tensor > bucket.first) {
        --tensor;
        part_.check(tensor, at);
        at += length_of(tensor);
      }
    }
  }

  Part& part_;
  std::vector<Bucket> buckets_;
  dist_strategy* strategy_ = nullptr;
  Turn turn_;
};

}  // namespace

std::vector<int> buckets_of(const std::vector<std::size_t>& elements) {
  std::vector<int> buckets;
  std::size_t bytes = 0;
  int tensors = 0;
  for (std::size_t t = elements.size(); t-- > 0;) {
    bytes += elements[t] * sizeof(float);
    ++tensors;
    if (bytes < (buckets.empty() ? kFirstBucketBytes : kBucketBytes) && t != 0) continue;
    buckets.push_back(tensors);
    bytes = 0;
    tensors = 0;
  }
  return buckets;
}

int be_worker(int side, int me, dist_transport transport) {
  Part part(side, me);
  try {
    Worker(part, transport).take_turns();
  } catch (const std::exception& error) {
    part.side().fail("worker " + std::to_string(me) + ": " + error.what());
    return 2;
  }
  return 0;
}

}  // namespace bench::overlap
