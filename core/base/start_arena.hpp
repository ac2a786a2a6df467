// SPDX-License-Identifier: Apache-2.0
// Starts a oneTBB arena. Only files that use oneTBB include this header, since oneTBB's own headers are large.
#pragma once

#include <oneapi/tbb/task_arena.h>

namespace dist {

// Throws std::bad_alloc if there is no memory. One thread at a time may start an arena.
//
// oneTBB cannot repeat its lazy initializations: if one fails, every later use waits forever for it to end. So the
// first arena of the process is special. If it does not start, this process never uses oneTBB again, and every later
// call throws: loops run on their callers, and nothing is prepared ahead. Once an arena has started, a failure concerns
// only the arena that failed, and can be retried. The first call also determines the number of CPUs, so that
// task_arena::automatic is a width like any other. For the same reason an arena must not be used before it is started.
void start_arena(tbb::task_arena& arena, int width);

}  // namespace dist
