// SPDX-License-Identifier: Apache-2.0
// A libdist worker: a process with one replica.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "dist/types.h"

namespace bench::overlap {

// Divides tensors into buckets like PyTorch's DistributedDataParallel: it begins with the last tensor, and
// closes the first bucket at 1 MiB and each other one at 25 MiB. Returns the number of tensors in each
// bucket.
std::vector<int> buckets_of(const std::vector<std::size_t>& elements);
// Returns the exit status. `transport` is as in dist_strategy_options.
int be_worker(int side, int me, dist_transport transport);

}  // namespace bench::overlap
