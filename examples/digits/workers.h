// SPDX-License-Identifier: Apache-2.0
//
// The training on several workers, which are strategies of this process here: a session each, on a thread each. Rows
// are dealt as one process with all replicas would deal them, so that both learn the same bits.
#pragma once

#include "session.h"

/**
 * Trains s->chosen.workers workers of `replicas` each; `s` is worker 0's, and has all replicas' events afterwards.
 * Returns a session's status, of the first worker that failed.
 */
int workers_train(session *s, int32_t replicas);
