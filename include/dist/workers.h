/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file
 * Many workers: strategies in which the replicas of several workers take part together.
 *
 * A worker is one task of a cluster (cluster.h), with a strategy of kind DIST_STRATEGY_MULTI_WORKER_MIRRORED. Chief comes
 * before the workers, and their replicas are numbered through, worker by worker: dist_replica_id() and
 * dist_replica_num_replicas() count those of all. Whoever is not part of the cluster has one worker alone.
 *
 * Workers that are processes reach each other by gRPC, between the addresses of the cluster: a program makes its strategy,
 * and whoever starts it sets TF_CONFIG, as tf.distribute's MultiWorkerMirroredStrategy has it, or dist-launch does:
 *
 *     options.kind = DIST_STRATEGY_MULTI_WORKER_MIRRORED;
 *     dist_strategy_create(&options, &strategy);
 *
 *     dist-launch -n 2 --replicas 2 -- ./program
 *
 * The environment, read when the strategy is created, says what its options leave open:
 *
 *     DIST_REPLICAS        how many replicas each worker has, where num_replicas is 0
 *     DIST_TRANSPORT       auto, none, grpc or gloo, where transport is DIST_TRANSPORT_AUTO. With gloo the data go over
 *                          Gloo's tcp transport, between ports that the system gives: for loopback and trusted networks,
 *                          never with TLS; who reaches such a port while it waits for its worker can end this process
 *     DIST_JOB_SECRET      a text that all workers of the job know; who does not is no worker of it. Off loopback it is needed
 *     DIST_TLS_CA, DIST_TLS_CERTIFICATE, DIST_TLS_KEY
 *                          files in PEM: who signs the workers' certificates, and this worker's, with its key. Each
 *                          certificate names the host of its worker's address; both sides show theirs
 *     DIST_PLAINTEXT       1: no TLS off loopback: anybody on the way can read and change what is sent
 *     DIST_BIND_ADDRESS    host:port to listen on, where it is not this worker's address in the cluster
 *     DIST_MODULE_FOLDER   where libdist-grpc.so and libdist-gloo.so are, if not where libdist is, as where that lies in a jar
 *     DIST_LEASE_SECONDS   how long a worker that says nothing lives for the others, 0.1 to 3600; else 10
 *
 * A worker listens from the creation of its strategy to its end, and at its end waits, for a lease at most, until what
 * it has sent is taken. It may start before the others and long after them, with names that are not yet known: each is
 * waited for, up to the deadline of who needs it. A worker that is killed is lost to the others at once, and one that
 * is stopped or cut off after a lease; one that stood still for half a lease hears from worker 0 before it goes on. The
 * others go on without it by dist_strategy_reform(), or end their strategies and make new ones, which the worker joins
 * that was started again. Who ends before it has met the others is waited for, up to the deadline; so is, for a lease,
 * one that leaves a forked child behind, which keeps its connections open, and can itself be no worker over gRPC. A process has one such strategy at a time,
 * as they would listen at one address. DIST_LEASE_SECONDS is the same on all workers.
 *
 * In one process, for tests and for trying things out, workers are strategies that share a network:
 *
 *     dist_network_create(2, NULL, &network);
 *     options.kind = DIST_STRATEGY_MULTI_WORKER_MIRRORED;
 *     options.cluster_resolver = resolver;      a resolver of worker 0; another one is of worker 1
 *     options.network = network;
 *     dist_strategy_create(&options, &strategy);     and the same for worker 1; each runs on a thread of its own
 *
 * Rules
 *   - Creating a strategy waits for nobody. The first call that needs another worker waits for it, up to its deadline.
 *   - All workers make the same calls in the same order, each from one thread at a time: runs, what reduces or gathers,
 *     passes over datasets, dist_group_create(), dist_variable_create(), dist_variable_read() of one that is synchronized
 *     on reading, dist_metric_result(), dist_variable_check_drift(), and dist_checkpoint_save(), of which worker 0 alone
 *     writes a file, at its path, or each worker a shard of it. Calls of a kind are paired by their number alone, so that a
 *     call that one worker leaves out is not noticed where the next one looks the same.
 *   - What is said of replicas that disagree, leave, err, are late or are cancelled holds for workers: everybody returns, and
 *     the report says which worker it was (dist_error_info.worker). Worker 0 writes the report for all; others wait for
 *     it up to one second, and then decide alone and say so. Where a call fails on one worker alone, by a run's cancel object
 *     or deadline before it began too, it fails on the others: with ABORTED, and that worker's words. A call that is refused
 *     for a NULL, or for options out of their range, is none.
 *   - A worker that has made fewer calls than the others gets their report at its next one, and is in step again after it.
 *     A deadline counts from a worker's own begin of the call, with the time in which tensors travel.
 *   - A worker whose strategy has ended is lost to the others: what needs it is UNAVAILABLE from then on.
 *   - Each worker records what its own replicas do: traces, counters and the table of who comes last name workers
 *     (inspect.h).
 *   - Collectives have the bits of one process with all replicas, in the same order.
 *   - A value has the components of its own worker's replicas, and a variable their copies: R is their number there. A value
 *     that is not distributed is one contribution of each worker: dist_reduce() adds them or takes their mean, dist_gather()
 *     joins them. merge_call runs once on each worker, and its function's status is that worker's. ONLY_FIRST_REPLICA means
 *     the first one of each worker. Assignments from outside write to this worker's copies: all workers assign the same.
 *   - A group of some replicas (dist_group_create()) is one of all workers: those that have members in it meet, in the order
 *     of each one's own calls there. Its lowest worker reports for all. A worker that has not come to it in a run is missed
 *     when that run is over there, or one of its members has failed.
 *   - Asynchronous and planned collectives go on while a replica of each worker is inside a call that waits, and, but with
 *     DIST_THREADS_HOST, whenever a message has come. Those of a group are begun in the same order on all workers; plans,
 *     and the packs of one, in any order. Four of a group's asynchronous ones are on their way at a time, each with a
 *     quarter of staging_bytes; a plan's packs share them. That tensors do not fit together is found in each round of a plan.
 *   - A collective that blocks on one worker and is asynchronous or planned on another never meets: the deadline ends it.
 *   - A run whose collectives failed on one worker ends plans made before it on all. So the first dist_work_start() or
 *     dist_work_ready() of a run, and the making of a plan, wait until all workers have ended the run before.
 *   - Who cancels a run or a work gets CANCELLED, and so do the replicas beside it; those of other workers get ABORTED, with
 *     its words. A replica that waits for another one of its own worker hears of a failure elsewhere when that one has come.
 *     Who comes last is not measured in asynchronous and planned collectives. What works take of async_bytes is counted by
 *     the replicas of the worker.
 *   - Not over several workers: runs inside a merge function, logical devices, functions of the host's own for
 *     cross-replica operations (UNIMPLEMENTED).
 */
#ifndef DIST_WORKERS_H
#define DIST_WORKERS_H

#include "strategy.h"

#endif /* DIST_WORKERS_H */

/* ---- Experimental: what follows may change or go in any version, as types.h says ------------------- */

#if defined(DIST_EXPERIMENTAL) && !defined(DIST_WORKERS_EXPERIMENTAL_H)
#define DIST_WORKERS_EXPERIMENTAL_H

#include "strategy.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct dist_network_options {
  uint32_t struct_size;
  int32_t reserved;     /* 0 */
  int64_t credit_bytes; /* how far a worker may run ahead of each other one; 0: 1 MiB; else 4 KiB or more */
  dist_allocator allocator; /* all zero: malloc and free */
} dist_network_options;
#define DIST_NETWORK_OPTIONS_INIT                   \
  {                                                 \
    sizeof(dist_network_options), 0, 0, { 0, 0, 0 } \
  }

/** As dist_strategy_options_init(), of dist_network_options. */
DIST_API void dist_network_options_init(dist_network_options *options, uint32_t struct_size_bytes);

/**
 * Makes the network of `num_workers` workers that are strategies of this process. Each joins it once, when its strategy is
 * created; it has left when that has ended, and nobody can take its place.
 *
 * Owns     *out_network is the caller's: dist_network_destroy(). Strategies hold it.
 * Errors   INVALID_ARGUMENT    num_workers is not in 1 .. DIST_MAX_REPLICAS, out_network is NULL, an option is out of its
 *                              range.
 *          RESOURCE_EXHAUSTED  no memory.
 */
DIST_API DIST_NODISCARD dist_status dist_network_create(int32_t num_workers,
                                                        const dist_network_options *options,
                                                        dist_network **out_network);

/** Gives the network up; strategies that are in it keep it. */
DIST_API void dist_network_destroy(dist_network *network);

typedef struct dist_reform_options {
  uint32_t struct_size;
  int32_t min_workers; /* fewer do not go on, and wait for more; 0: 1 */
  int64_t window_ns;   /* worker 0: how long it waits for workers that are not known to be lost; 0: a lease */
  int64_t timeout_ns;  /* how long to wait in all; 0: the strategy's timeout_ns; < 0: no limit */
} dist_reform_options;
#define DIST_REFORM_OPTIONS_INIT \
  { sizeof(dist_reform_options), 0, 0, 0 }

/** As dist_strategy_options_init(), of dist_reform_options. */
DIST_API void dist_reform_options_init(dist_reform_options *options, uint32_t struct_size_bytes);

/**
 * Goes on with the workers that are there: a new generation, in which those that are lost are not, and those are that have
 * been started again, or late. Replicas are numbered anew, in the order of the workers; each worker keeps how many it has.
 *
 * Worker 0 says who takes part: it waits for the workers of the generation before that it does not know to be lost, and for
 * those that want to join, window_ns at most, and goes on without the others, whichever part of the cluster they are: of two
 * workers one goes on alone. Where worker 0 is lost or has ended the job has ended, and this is UNAVAILABLE: start the job
 * again, from its last checkpoint. Another start of worker 0 does not know the job that was, and refuses who was in it. So
 * does worker 0 a worker that is started again with another number of replicas. Workers that are in a run when worker 0
 * re-forms hear that it has left, and call this too. A worker 0 that stood still for a lease has lost the others: min_workers
 * keeps it from going on alone.
 *
 * A worker that was started again makes its strategy as ever. Its first call that needs others is UNAVAILABLE and says why,
 * once the job has re-formed without it; dist_strategy_reform() then waits until worker 0 re-forms again, which the others
 * learn from dist_strategy_reform_due(). So each worker has the same loop:
 *
 *     for (;;) {
 *       status = train(strategy);     makes variables and datasets, loads the last checkpoint, runs until all steps are done
 *       if (status == DIST_OK) break;                 or until dist_strategy_reform_due() says 1, and ends what it has made
 *       if (status != DIST_UNAVAILABLE && status != DIST_ABORTED) return status;
 *       if (dist_strategy_reform(strategy, NULL) != DIST_OK) return;
 *     }
 *
 * What stays: the strategy, its options, its variables with what this worker has in them. A run that failed may have
 * changed some replicas' variables and not others', and a worker that joins has none: load a checkpoint that was saved
 * between runs. Where dist_strategy_properties.num_joined is 0, variables need not be made again. What does not: plans,
 * counters and traces, and datasets, whose passes are FAILED_PRECONDITION: make them again, and their rows are divided among
 * the workers that are there. A retried step has the bits that it would have had where it does not depend on how many
 * replicas there are: steps of a fixed number of micro-batches, divided among all replicas, summed with
 * DIST_NUMERICS_REPRODUCIBLE. Certificates and keys are read again (DIST_TLS_...).
 *
 * Blocks   Until worker 0 says who takes part; at first for a lease at most, until what was sent is taken.
 * Threads  One at a time. Meanwhile other threads may call dist_strategy_cancel(), which ends it, dist_strategy_shutdown(),
 *          and what only looks; runs that they ask for are CANCELLED.
 * Errors   FAILED_PRECONDITION a run is under way, groups or works of the strategy are left, this thread is inside a replica
 *                              or the strategy's scope, or the cluster has one worker.
 *          UNAVAILABLE         worker 0 is lost, has not answered for a lease, or refuses this worker: the message says why.
 *          DEADLINE_EXCEEDED   not enough workers have come, or worker 0 has not said who takes part.
 *          CANCELLED           dist_strategy_cancel(), dist_strategy_shutdown().
 *          INVALID_ARGUMENT    strategy is NULL, or an option is out of its range.
 *          UNIMPLEMENTED       the workers are strategies of one process (dist_strategy_options.network).
 *          After an error the strategy has no way to the others, and this may be called again.
 */
DIST_API DIST_NODISCARD dist_status dist_strategy_reform(dist_strategy *strategy,
                                                         const dist_reform_options *options);

/**
 * Whether the workers are to re-form before the next run: some are lost, or others have come. Worker 0 announces it with the
 * end of each run, so that all workers that have made the same runs get the same answer; who is not worker 0 waits until
 * worker 0 has ended the latest one. 1 where worker 0 is lost, and where the latest dist_strategy_reform() has failed. A run
 * in which a worker only sends to others may end well there after one of them has died: this tells.
 *
 * DIST_REFORM_AT_NEXT_RUN does this and dist_strategy_reform() at the begin of dist_run() and dist_run_values(), for
 * programs in which nothing has to be loaded then, such as evaluation: dist_strategy_properties.generation tells.
 *
 * Blocks   Until worker 0 has ended the latest run, for the strategy's timeout_ns at most.
 * Errors   INVALID_ARGUMENT    NULL.
 *          DEADLINE_EXCEEDED   worker 0 has not ended it in time.
 *          CANCELLED           dist_strategy_cancel() has ended the wait.
 */
DIST_API DIST_NODISCARD dist_status dist_strategy_reform_due(dist_strategy *strategy, int32_t *out_due);

#ifdef __cplusplus
}
#endif
#endif /* DIST_WORKERS_EXPERIMENTAL_H */
