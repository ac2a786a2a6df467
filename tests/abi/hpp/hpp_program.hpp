// SPDX-License-Identifier: Apache-2.0
//
// A program that uses only the baseline. Each translation unit of test_hpp_parts includes it after dist.hpp.
#pragma once

#include <vector>

#include "hpp_parts.hpp"

namespace {

parts::outcome program(const dist::strategy &strategy) {
  parts::outcome found{};
  dist::variable variable(strategy, dist::tensor(&found.read, {}), "w");
  strategy.run([&](dist::replica replica) {
    std::vector<float> data{static_cast<float>(replica.id() + 1)};
    replica.all_reduce(dist::reduce_op::sum, data);
    const float one = 1;
    replica.assign(variable, dist::const_tensor(&one, {}));
    if (replica.id() == 0) found.sum = data[0];
  });
  found.read = strategy.read(variable).tensor().data<float>()[0];
  const std::vector<float> rows{1, 2, 3, 4};
  dist_dataset_options options = DIST_DATASET_OPTIONS_INIT;
  options.global_batch_size = 2;
  const dist::dataset dataset(strategy, dist::const_tensors{dist::const_tensor(rows)}, options);
  for (const dist::value &batch : dataset) found.batches += strategy.local_results(batch).size() == 2;
  (void)strategy.explain();
  return found;
}

}  // namespace
