// SPDX-License-Identifier: Apache-2.0
//
// Trains with several workers in this process: each has its own session, strategy and thread. The rows are
// distributed as in a single worker with all replicas, so both learn the same bits.
#pragma once

#include "session.h"

/**
 * Trains s->chosen.workers workers with `replicas` replicas each. `s` belongs to worker 0 and afterwards
 * contains the events of all replicas. Returns the session status of the first worker that failed, or 0.
 */
int workers_train(session *s, int32_t replicas);
