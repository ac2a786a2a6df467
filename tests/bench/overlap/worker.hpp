// SPDX-License-Identifier: Apache-2.0
// A libdist worker: a process with one replica.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace bench::overlap {

// The buckets of PyTorch's DistributedDataParallel: consecutive tensors from the last one on. The first bucket is complete
// with 1 MiB, each other one with 25 MiB. A bucket is the number of its tensors.
std::vector<int> buckets_of(const std::vector<std::size_t>& elements);
// Its exit status. `transport`: as in dist_strategy_options.
int be_worker(int side, int me, int32_t transport);

}  // namespace bench::overlap
