// SPDX-License-Identifier: Apache-2.0
// AheadArena: the oneTBB arena in which a dataset prepares batches ahead. Only the two files that use it include this
// header, since oneTBB's own headers are large.
#pragma once

#include <oneapi/tbb/task_arena.h>

#include "core/base/memory.hpp"

namespace dist {

class AheadArena final : public Counted {
 public:
  explicit AheadArena(Memory& memory) : Counted(memory) {}
  // Starts its first thread when it is first used. It keeps oneTBB's default width: oneTBB writes a warning to stderr
  // when it is asked for more workers than the machine has CPUs.
  tbb::task_arena tasks;
};

}  // namespace dist
