/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @mainpage
 * libdist's C API: this header has all of it, each of the others one subject. In C++ there is dist.hpp.
 *
 * A program:
 *
 *     #include <dist/dist.h>
 *     #include <stdio.h>
 *
 *     static dist_status step(dist_replica *replica, void *user_data) {
 *       int64_t shape[] = {3};
 *       float gradient[3] = {1, 2, 3};
 *       dist_tensor t = {gradient, DIST_F32, 1, shape, NULL};
 *       return dist_all_reduce(replica, DIST_REDUCE_SUM, &t, &t, 1, NULL);
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
 * A strategy holds R replicas: threads that run the same function, each on its part of the input, and meet in
 * collectives. dist_run() calls the function once on every replica and returns when all are back.
 *
 * What programs may rely on is the baseline. `#define DIST_EXPERIMENTAL` before the include adds the rest: types.h.
 *
 * Rules for every function:
 *   - The first parameter names the context. A dist_strategy * is the cross-replica context: outside the replica function,
 *     or inside a merge function. A dist_replica * is the replica context: the handle is for the thread that its function
 *     runs on, and what can fail returns FAILED_PRECONDITION on any other. Handles end with their destroy function, and a
 *     replica's with its run: what happens to one that is used later is not promised.
 *   - What can fail returns a dist_status, and writes its outputs (`out_...`) on DIST_OK only. dist_last_error() says in
 *     words what was wrong, what was expected and what to try.
 *   - Options may be NULL, and a zero field means the default. Begin with DIST_..._OPTIONS_INIT, or from another language
 *     with dist_..._options_init().
 *   - What a create function gives is ended by dist_..._destroy(), for which NULL is fine. Values are counted instead:
 *     retain and release. Strings and tensors in are copied unless "wrap" is in the name; strings and shapes out are
 *     borrowed from their object.
 *   - A callback returns a status: it must not throw or longjmp out. What it hands over through a pointer is taken whatever
 *     it returns, and released where that is a failure.
 *   - A tensor may lie in memory in any way, backwards too. Elements that are read may share a place (stride 0); of a tensor
 *     that is written, each stride must step over all that the smaller ones span. A list with a length that no memory holds
 *     is an error, and nothing is read.
 *   - What reads or writes variables from outside takes its turn among the strategy's runs, so that nobody sees half of a
 *     value: variable.h has the rule.
 *   - Texts that come out are UTF-8 without control characters: error.h has the rule. Names must be one line of UTF-8.
 *   - In a forked child of the strategy's process what would run, meet, make or change something returns
 *     FAILED_PRECONDITION, and destroy functions leave things as they are. A child may make strategies of its own.
 *   - libdist never aborts, exits, forks, raises, installs a signal handler, changes the environment or writes to stdout or
 *     stderr.
 */
/* Without a guard: each header has its own, one for each part, so that a later include adds the experimental parts. */
/* In the order in which they are read. clang-format would sort them. */
/* clang-format off */
#include "types.h"         /* statuses, dtypes, operators, tensors, handles, and how functions are documented */
#include "error.h"         /* what went wrong */
#include "strategy.h"      /* replicas, and how they work together */
#include "run.h"           /* a function on every replica */
#include "collective.h"    /* all_reduce and its like, among replicas */
#include "work.h"          /* collectives that do not wait, and plans */
#include "serve.h"         /* requests, each on one free replica */
#include "batch.h"         /* requests that are answered together */
#include "budget.h"        /* threads that strategies share */
#include "version.h"       /* what all replicas read, replaced while they run */
#include "value.h"         /* tensors, nests of them, one for each replica */
#include "variable.h"      /* tensors that outlive runs */
#include "cross_replica.h" /* reductions, gathering and updates from outside */
#include "dataset.h"       /* batches for all replicas */
#include "inspect.h"       /* traces, metrics of the library, explanations */
#include "metric.h"        /* metrics and losses of the host */
#include "scope.h"         /* which strategy a thread is with */
#include "checkpoint.h"    /* variables in files */
#include "topology.h"      /* where devices are, and which is whose */
#include "mesh.h"          /* replicas of several logical devices */
#include "cluster.h"       /* which processes there are, and what each does */
#include "cluster_resolver.h" /* who says so: TF_CONFIG, Slurm, Kubernetes, ... */
#include "partitioner.h"   /* into how many parts a variable is divided */
#include "workers.h"       /* replicas in several workers of a cluster */
#include "preemption.h"    /* what saves a checkpoint before a machine is lost */
#include "rpc.h"           /* methods of other processes */
#include "server.h"        /* tasks that keep variables, and run closures */
#include "coordinator.h"   /* who gives closures to workers, and has variables on parameter servers */
#include "experimental_hints.h" /* how a compiler explains that a name needs DIST_EXPERIMENTAL */
/* clang-format on */
