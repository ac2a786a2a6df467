// SPDX-License-Identifier: Apache-2.0
// libdist's other collectives, and sums with several contributions, including exact ones.
#include "tests/bench/in_replicas.hpp"

namespace bench {
namespace {

class Hand final : public InReplicas {
 public:
  Hand(const Strategy& strategy, Handing handing, Exchanged& data)
      : InReplicas(strategy, &data), handing_(handing), tensors_(data) {}

  dist_status replica(dist_replica* replica, const Job& job) override {
    const int id = dist_replica_id(replica);
    const int64_t in_shape[] = {static_cast<int64_t>(tensors_.in_count(id))};
    const int64_t out_shape[] = {static_cast<int64_t>(tensors_.out_count(id))};
    const dist_tensor in{tensors_.in(id), DIST_F32, 1, in_shape, nullptr};
    dist_tensor out{tensors_.out(id), DIST_F32, 1, out_shape, nullptr};
    return loop(replica, job, [&] {
      switch (handing_) {
        case Handing::kAllGather: return dist_all_gather(replica, &in, &out, 1, nullptr, nullptr);
        case Handing::kReduceScatter:
          return dist_reduce_scatter(replica, DIST_REDUCE_SUM, &in, &out, 1, nullptr, nullptr);
        case Handing::kBroadcast: return dist_broadcast(replica, 0, &in, &out, 1, nullptr, nullptr);
        case Handing::kScatter: return dist_scatter_from_root(replica, 0, &in, &out, 1, nullptr, nullptr);
        case Handing::kScan:
          return dist_scan(replica, DIST_REDUCE_SUM, DIST_SCAN_INCLUSIVE, &in, &out, 1, nullptr, nullptr);
        case Handing::kAllToAll: break;
      }
      return dist_all_to_all(replica, &in, &out, 1, nullptr, nullptr);
    });
  }

 private:
  Handing handing_;
  Exchanged& tensors_;
};

class SumContributions final : public InReplicas {
 public:
  SumContributions(const Strategy& strategy, Exchanged& data, dist_numerics numerics)
      : InReplicas(strategy, &data, numerics == DIST_NUMERICS_ORDERED ? "libdist, ordered" : "libdist"),
        tensors_(data),
        numerics_(numerics) {}

  dist_status replica(dist_replica* replica, const Job& job) override {
    const int id = dist_replica_id(replica);
    const size_t contributions = tensors_.pieces(id);
    const int64_t shape[] = {static_cast<int64_t>(tensors_.out_count(id))};
    std::vector<dist_tensor> in;
    for (size_t j = 0; j < contributions; ++j)
      in.push_back({tensors_.in(id, j), DIST_F32, 1, shape, nullptr});
    dist_tensor out{tensors_.out(id), DIST_F32, 1, shape, nullptr};
    dist_collective_options options = DIST_COLLECTIVE_OPTIONS_INIT;
    options.contributions = contributions;
    options.numerics = numerics_;
    return loop(replica, job, [&] {
      return dist_all_reduce(replica, DIST_REDUCE_SUM, in.data(), &out, 1, &options, nullptr);
    });
  }

 private:
  Exchanged& tensors_;
  dist_numerics numerics_;
};

}  // namespace

std::unique_ptr<Side> libdist_handing(const Strategy& strategy, Handing handing, Exchanged& data) {
  return std::make_unique<Hand>(strategy, handing, data);
}
std::unique_ptr<Side> libdist_sum(const Strategy& strategy, Exchanged& data, dist_numerics numerics) {
  return std::make_unique<SumContributions>(strategy, data, numerics);
}

}  // namespace bench
