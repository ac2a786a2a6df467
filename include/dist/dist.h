/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @mainpage
 * The C API of libdist. This header includes the whole API; each of the other headers covers one subject. C++ programs
 * include dist.hpp.
 *
 * A complete program:
 *
 *     #include <dist/dist.h>
 *     #include <stdio.h>
 *
 *     static dist_status step(dist_replica *replica, void *user_data) {
 *       int64_t shape[] = {3};
 *       float gradient[3] = {1, 2, 3};
 *       dist_tensor t = {gradient, DIST_F32, 1, shape, NULL};
 *       return dist_all_reduce(replica, DIST_REDUCE_SUM, &t, &t, 1, NULL, NULL);
 *     }
 *
 *     int main(void) {
 *       dist_strategy *strategy = NULL;
 *       dist_status status = dist_strategy_create(NULL, &strategy);
 *       if (status == DIST_OK) status = dist_run(strategy, step, NULL, NULL);
 *       if (status != DIST_OK) fprintf(stderr, "%s: %s\n", dist_status_name(status), dist_last_error());
 *       return dist_strategy_destroy(strategy) == DIST_OK && status == DIST_OK ? 0 : 1;
 *     }
 *
 * A strategy owns R replicas. A replica is a thread that runs your function on its share of the input and communicates
 * with the other replicas through collectives. dist_run() calls the function once on every replica and returns when all
 * calls have returned.
 *
 * This API is what version 1.0 will freeze: from then on, every version with the same soname (libdist.so.1) runs
 * programs that were compiled with an earlier one. Two kinds of headers are not included here:
 *
 *   - <dist/experimental/NAME.h> declares functions that may still change or be removed in any version: rpc.h, server.h
 *     and coordinator.h (parameter servers), preemption.h, rendezvous.h and links.h.
 *   - <dist/tf.h> declares stable functions that only programs ported from tf.distribute need.
 *
 * These rules hold for every function:
 *
 *   - The first parameter names the context. A dist_strategy * stands for the cross-replica context: outside the
 *     replica function, or inside a merge function. A dist_replica * stands for the replica context. A replica handle
 *     is valid only on the thread that runs its function; on any other thread, functions that can fail return
 *     FAILED_PRECONDITION.
 *   - A handle is valid until its destroy function is called. A replica handle is valid until its run ends. Using a
 *     handle after that is undefined behaviour.
 *   - A function that can fail returns a dist_status and writes its outputs (`out_...`) only if it returns DIST_OK.
 *     dist_last_error() describes what went wrong, what was expected and what to try.
 *   - Options may be NULL. A zero field selects the default. Initialize option structs with DIST_..._OPTIONS_INIT or,
 *     from other languages, with dist_..._options_init().
 *   - A struct whose first field is struct_size can get further fields in later versions. All other structs, such as
 *     dist_tensor and dist_allocator, are final: they never change.
 *   - The caller owns an object that a create function returns and releases it with dist_..._destroy(), which accepts
 *     NULL. Values are reference-counted instead, with retain and release functions. Input strings and tensors are
 *     copied unless the function has "wrap" in its name. Returned strings and shapes are borrowed from the object they
 *     belong to.
 *   - A timeout of 0 in options selects the default; as the parameter of a function that waits, it means not to wait.
 *     DIST_NO_TIMEOUT disables a timeout in both.
 *   - The last parameter of a callback is `user_data`. A callback that can fail returns a status. Do not throw an
 *     exception out of a callback or leave it with longjmp(). If a callback does throw a C++ exception, the call that
 *     needed the callback fails, usually with UNKNOWN. An exception of a callback that cannot report a failure, such as
 *     dist_release_fn, is dropped. libdist takes ownership of an object that a callback returns through a pointer,
 *     whatever the status is, and releases it if the status is an error.
 *   - A tensor can have any strides, including negative ones. Elements of an input tensor may overlap (stride 0). In an
 *     output tensor, each stride must exceed the span of all smaller ones, so that no two elements overlap. If a list's
 *     length exceeds the address space, the call fails without reading the list.
 *   - A call that reads or writes variables from outside the replicas is queued with the strategy's runs, so it never
 *     sees a partly written value; see variable.h.
 *   - Returned texts are UTF-8 without control characters; see error.h. Names must be a single line of UTF-8.
 *   - In a forked child of the strategy's process, functions that would run, communicate, create or change something
 *     return FAILED_PRECONDITION, and destroy functions do nothing. A child can create strategies of its own.
 *   - libdist never aborts, exits, forks, raises signals, installs signal handlers, changes the environment, or writes
 *     to stdout or stderr.
 */
#ifndef DIST_DIST_H
#define DIST_DIST_H

/* The order is that of reading. clang-format would sort the includes. */
/* clang-format off */
#include "types.h"         /* status codes, dtypes, operators, tensors, handles, and how functions are documented */
#include "error.h"         /* error messages and status names */
#include "strategy.h"      /* strategies: create, configure, query */
#include "run.h"           /* run a function on every replica */
#include "collective.h"    /* collectives among replicas: all_reduce, broadcast, ... */
#include "work.h"          /* asynchronous and planned collectives */
#include "serve.h"         /* requests, each handled by one replica */
#include "batch.h"         /* requests that are processed together in batches */
#include "budget.h"        /* limit on the threads of several strategies */
#include "version.h"       /* read-mostly data, replaced while replicas run */
#include "value.h"         /* tensors and nests of tensors, one per replica */
#include "variable.h"      /* tensors that outlive runs */
#include "cross_replica.h" /* reductions, gathering and updates from outside replicas */
#include "dataset.h"       /* input batches for all replicas */
#include "inspect.h"       /* traces, library metrics, explanations */
#include "metric.h"        /* metrics and losses of your program */
#include "scope.h"         /* the current strategy of a thread */
#include "checkpoint.h"    /* variables in files */
#include "topology.h"      /* locations of devices and their assignment to replicas */
#include "mesh.h"          /* replicas made of several logical devices */
#include "cluster.h"       /* the processes of a job and their roles */
#include "cluster_resolver.h" /* cluster discovery: TF_CONFIG, Slurm, Kubernetes, ... */
#include "partitioner.h"   /* how a variable is split into parts */
#include "workers.h"       /* replicas in several processes */
/* clang-format on */

#endif /* DIST_DIST_H */
