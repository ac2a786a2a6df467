// SPDX-License-Identifier: Apache-2.0
// Fused steps: reduce gradients and update the parameters block by block, while each block is in the cache.
//
// Without a clip there is one round. With a clip there are two. The first round reduces into rank 0's
// gradients and adds up their squares, with one sum for each cell of the list, so that the total depends only
// on the list. The second round scales the gradients and updates the parameters.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/base/memory.hpp"
#include "core/base/status.hpp"
#include "core/collective/collectives.hpp"
#include "dist/types.h"

namespace dist {

struct Update {
  int32_t kind;  // DIST_APPLY_...
  double learning_rate;
  double momentum;
  double clip_norm;  // 0: no clip
  std::size_t num_states;
  dist_apply_fn function;
  void* user_data;
};

// The call's inputs are the gradients, and its outputs are the parameters. *out_norm receives the global
// norm; out_norm may be NULL.
Status reduce_apply(Memory& memory, const Member& member, Call& call, const Update& update,
                    double* out_norm) noexcept;

}  // namespace dist
