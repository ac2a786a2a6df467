// SPDX-License-Identifier: Apache-2.0
// Fused steps: reduce gradients and update parameters with each block while it is in cache.
//
// Without a clip one round does all of it. With a clip two do: the first reduces into rank 0's gradients
// and adds up squares, a cell of the list at a time, so that the sum depends on nothing but the list; the
// second scales and updates.
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

// `call`: its input are the gradients, its output the parameters. `out_norm`: NULL, or where the norm goes.
Status reduce_apply(Memory& memory, const Member& member, Call& call, const Update& update,
                    double* out_norm) noexcept;

}  // namespace dist
