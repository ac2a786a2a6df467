/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file
 * Several workers: strategies whose replicas are spread over several processes.
 *
 * A worker is one task of a cluster (cluster.h) with a strategy of kind DIST_STRATEGY_MULTI_WORKER_MIRRORED. All
 * workers run the same program:
 *
 *     dist_strategy_options options = DIST_STRATEGY_OPTIONS_INIT;
 *     options.kind = DIST_STRATEGY_MULTI_WORKER_MIRRORED;
 *     dist_strategy_create(&options, &strategy);
 *     dist_run(strategy, step, NULL, NULL);          // the replicas of all workers meet in collectives
 *
 * The program finds the cluster in TF_CONFIG (or in dist_worker_options.cluster_resolver), as with
 * MultiWorkerMirroredStrategy of tf.distribute. Set TF_CONFIG for each process, or let dist-launch do so:
 *
 *     dist-launch -n 2 --replicas 2 -- ./program
 *
 * If TF_CONFIG is not set but DIST_RENDEZVOUS is, the workers meet at that address, as with
 * dist_cluster_resolver_create_rendezvous() (experimental/rendezvous.h), which describes how they find their ranks. If
 * both are set, TF_CONFIG counts. If neither is set and the transport is a link module that knows the job, such as
 * those of MPI, the workers meet through it, and its ranks are the numbers of the workers.
 *
 * The chief comes first, then the other workers. Replicas are numbered consecutively, worker by worker:
 * dist_replica_id() and dist_replica_num_replicas() count the replicas of all workers. A process that is not listed in
 * the cluster runs as a single worker. Workers that are processes communicate over gRPC, between the addresses in the
 * cluster. Workers of one machine and user find each other over gRPC and then exchange data through shared memory, less
 * than 1 MiB for each pair, unless DIST_TRANSPORT or the transport option names a transport. If that is not possible,
 * for example because a container has its own network namespace or no memory is left, they use gRPC and libdist logs
 * the reason once. dist_strategy_explain() lists the way to each worker.
 *
 * **Environment.** These variables are read when the strategy is created and complete its options:
 *
 *     DIST_REPLICAS        number of replicas of each worker, if num_replicas is 0
 *     DIST_TRANSPORT       auto (the default), none, grpc, gloo or the name of a link module
 *                          (dist/experimental/links.h), if transport is DIST_TRANSPORT_AUTO. Workers share memory only
 *                          with auto. With gloo, data is sent over Gloo's TCP transport, on ports that the system
 *                          assigns, never with TLS. Use it only on loopback and trusted networks
 *     DIST_JOB_SECRET      a text that all workers of the job share. Workers that do not present it are rejected.
 *                          Required on addresses other than loopback without TLS. Set it with TLS, too: processes that
 *                          do not know it can then neither fill a worker's memory nor delay it. Use a long random text,
 *                          for example from openssl rand -hex 16, because others on the network can test guesses
 *     DIST_TLS_CA, DIST_TLS_CERTIFICATE, DIST_TLS_KEY
 *                          PEM files: the authority that signs the workers' certificates, this worker's certificate,
 *                          and its key, which must not be encrypted. Both sides present their certificates. A
 *                          worker's certificate must list the host of its address as a DNS or IP name; other kinds of
 *                          names are ignored. "*" may replace the first label of a DNS name
 *     DIST_PLAINTEXT       1 = no TLS on addresses other than loopback: anyone on the path can read and change the data
 *     DIST_RENDEZVOUS      host:port of worker 0, at which the workers meet if TF_CONFIG is not set.
 *                          experimental/rendezvous.h also describes DIST_RANK, DIST_SIZE and DIST_JOB_NAME
 *     DIST_BIND_ADDRESS    host:port to listen on. By default a worker listens on the port of its address in the
 *                          cluster: on that address only if it is localhost or a loopback address, otherwise on all
 *                          interfaces
 *     DIST_MODULE_FOLDER   folder of libdist-grpc.so, libdist-gloo.so and other link modules, if it is not that of
 *                          libdist (for example if libdist is inside a jar); several are separated by colons
 *     DIST_LEASE_SECONDS   time after which a silent worker counts as lost, 0.1 to 3600 (default 10); the same on all
 *                          workers
 *
 * **Starting and ending.** Creating a strategy does not block, except that workers that meet at DIST_RENDEZVOUS or
 * through a link module wait for each other, up to the strategy's timeout_ns. The first call that needs a peer waits
 * for it until the call's deadline, so you can start the workers in any order, even if their host names do not resolve
 * yet. libdist resolves names with getaddrinfo(), like other programs on the machine, until the workers are connected;
 * it tries all addresses of a name, and uses a new address within a second after the system returns it. A worker need
 * not be able to resolve its own name, and its address can belong to a gateway that forwards the port.
 *
 * A worker listens from the creation of its strategy until its destruction. On destruction it waits, for up to one
 * lease, until its peers have received everything that it sent, and until they have learned that it ends: worker 0
 * waits for workers that have not arrived yet, the others for worker 0. So the order of starts does not matter for
 * failures either. A process can have only one such strategy at a time, because two would listen on the same address.
 *
 * Joining ends early only if a peer that has proven that it knows the job's secret rejects the worker. Anything else at
 * worker 0's address, for example an old job that is ending or a failed TLS handshake, is retried until the deadline,
 * and the report lists what was met. If TLS fails, the reports of both workers contain the cause: an unknown authority,
 * a certificate that has expired, is not yet valid or names other hosts, or plain text on one side. To find the cause,
 * a worker that misses a peer makes a TLS handshake with the peer's address from time to time.
 *
 * **Lost workers.** If a worker is killed, the others notice at once; if it is stopped or unreachable, they notice
 * after a lease. A worker that stood still for half a lease checks with worker 0 before it continues. The remaining
 * workers continue with dist_strategy_reform(), or destroy their strategies and create new ones, which the restarted
 * worker joins. A worker that leaves a forked child behind is noticed only after a lease, because the child keeps its
 * connections open. The child itself cannot be a worker over gRPC.
 *
 * **Workers in one process.** For tests and experiments, workers can be strategies of one process that share a network:
 *
 *     dist_network *network = NULL;
 *     dist_network_create(2, NULL, &network);
 *     dist_worker_options worker = DIST_WORKER_OPTIONS_INIT;
 *     worker.cluster_resolver = resolver;            // a resolver for worker 0; worker 1 needs another one
 *     worker.network = network;
 *     dist_strategy_options options = DIST_STRATEGY_OPTIONS_INIT;
 *     options.kind = DIST_STRATEGY_MULTI_WORKER_MIRRORED;
 *     options.worker = &worker;
 *     dist_strategy_create(&options, &strategy);     // the same for worker 1; each worker runs on its own thread
 *
 * Making the same calls on all workers:
 *   - libdist matches the calls of workers by order: the n-th call of each kind on one worker belongs to the n-th on
 *     every other. Make the same calls in the same order on all workers, from one thread at a time. This includes runs,
 *     functions that reduce or gather, dataset passes, dist_group_create(), dist_variable_create(),
 *     dist_metric_result(), dist_variable_check_drift(), dist_checkpoint_save(), and dist_variable_read() of a variable
 *     that is synchronized on reading. dist_checkpoint_save() writes one file on worker 0, or one shard on each worker.
 *   - If one worker skips a call and the next one has the same signature, libdist cannot detect the mismatch.
 *   - A call rejected for a NULL argument or an out-of-range option does not count.
 *   - A worker that has made fewer calls than the others receives their report at its next call and is in step again
 *     after it. Each worker counts a deadline from its own start of the call, including the transfer of tensors.
 *
 * Failures:
 *   - Workers fail the way replicas do: if one disagrees, leaves, fails, times out or is cancelled, every call returns,
 *     and dist_error_info.worker names the worker. Worker 0 writes the report. The others wait for it for up to one
 *     second, then decide on their own and say so in the report.
 *   - If a call fails on one worker only, for example because its cancel object is signalled or its deadline expires
 *     before the run starts, it fails on the other workers with ABORTED and that worker's message.
 *   - The worker that cancels a run or an asynchronous collective gets CANCELLED on all its replicas. Replicas of other
 *     workers get ABORTED with the same message. A replica that waits for another replica of its own worker learns of a
 *     failure elsewhere only when that replica arrives.
 *   - A worker whose strategy has been destroyed is lost to the others: calls that need it fail with UNAVAILABLE.
 *
 * Values, variables and groups:
 *   - Collectives produce the same bits as one process with all replicas, in the same order.
 *   - A value has one component for each replica of its own worker, and a variable one copy for each; R is their number
 *     in this context. A value that is not distributed is one contribution of each worker: dist_reduce() adds these or
 *     takes their mean, dist_gather() concatenates them.
 *   - dist_merge_call() runs its function once on each worker; the function's status applies to that worker.
 *     ONLY_FIRST_REPLICA means the first replica of each worker. Assignments from outside write the copies of this
 *     worker only: assign the same value on all workers.
 *   - A group of some replicas (dist_group_create()) is created on all workers. The workers that have members in it
 *     meet, in the order of each member's calls, and its lowest worker writes the reports. If a worker does not take
 *     part in a run, the group notices when the run ends there or when one of that worker's members fails.
 *
 * Asynchronous and planned collectives:
 *   - They make progress while a replica of each worker is inside a call that waits and, except with DIST_THREADS_HOST,
 *     whenever a message arrives.
 *   - Start those of a group in the same order on all workers. Plans, and the packs of one plan, can start in any
 *     order.
 *   - At most four asynchronous collectives of a group are in transit at a time, each with a quarter of staging_bytes;
 *     the packs of a plan share them. Mismatched tensors are detected in every round of a plan.
 *   - A collective that is blocking on one worker and asynchronous or planned on another never completes: its deadline
 *     ends it.
 *   - If the collectives of a run fail on one worker, plans made before that run end on all workers. The first
 *     dist_work_start() or dist_work_ready() of a run, and making a plan, therefore wait until all workers have ended
 *     the previous run.
 *   - Each worker counts the use of async_bytes by its own replicas.
 *
 * Each worker records what its own replicas do (inspect.h). Traces, counters and the table of stragglers name workers.
 * Arrival order is not measured in asynchronous and planned collectives.
 *
 * Not supported over several workers (UNIMPLEMENTED): runs inside a merge function, logical devices, and host functions
 * for cross-replica operations.
 */
#ifndef DIST_WORKERS_H
#define DIST_WORKERS_H

#include "strategy.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Options of dist_network_create(). */
typedef struct dist_network_options {
  uint32_t struct_size;
  int32_t reserved; /* must be 0 */
  /* amount of data, in bytes, that a worker may send ahead to each other worker: 4 KiB or more; 0 = default (1 MiB) */
  size_t credit_bytes;
  dist_allocator allocator; /* all zero = malloc() and free() */
} dist_network_options;
#define DIST_NETWORK_OPTIONS_INIT                   \
  {                                                 \
    sizeof(dist_network_options), 0, 0, { 0, 0, 0 } \
  }

/** Initializes a dist_network_options to its defaults, like dist_strategy_options_init(). */
DIST_API void dist_network_options_init(dist_network_options *options, uint32_t struct_size_bytes);

/**
 * Creates the network for `num_workers` workers that are strategies of this process. Each worker joins it once, when
 * its strategy is created, and leaves it when the strategy is destroyed. Its place is not reused. The network needs
 * about 6 KiB for each worker and 16 bytes for each pair of them.
 *
 * Owns     The caller owns *out_network and destroys it with dist_network_destroy(). Strategies retain it.
 * Errors   INVALID_ARGUMENT    num_workers is less than 1, out_network is NULL, or an option is out of range.
 *          RESOURCE_EXHAUSTED  out of memory.
 */
DIST_API DIST_NODISCARD dist_status dist_network_create(int32_t num_workers,
                                                        const dist_network_options *options,
                                                        dist_network **out_network);

/**
 * Destroys the caller's handle to the network. Strategies that use the network keep it. Does nothing if `network` is
 * NULL, or in a forked child.
 *
 * Context  Any, serialized.
 * Owns     Takes ownership of the network.
 */
DIST_API void dist_network_destroy(dist_network *network);

/** Options of dist_strategy_reform(). */
typedef struct dist_reform_options {
  uint32_t struct_size;
  /* continue only with at least this many workers, otherwise wait for more; 0 = default (1) */
  int32_t min_workers;
  /* on worker 0: how long to wait for workers that are not known to be lost; 0 = one lease */
  int64_t window_ns;
  int64_t timeout_ns; /* limit on the whole wait; 0 = the strategy's timeout_ns, DIST_NO_TIMEOUT = no limit */
} dist_reform_options;
#define DIST_REFORM_OPTIONS_INIT \
  { sizeof(dist_reform_options), 0, 0, 0 }

/** Initializes a dist_reform_options to its defaults, like dist_strategy_options_init(). */
DIST_API void dist_reform_options_init(dist_reform_options *options, uint32_t struct_size_bytes);

/**
 * Forms a new generation of workers: without the workers that are lost, and with those that were restarted or started
 * late. Replicas are renumbered in the order of the workers. Each worker keeps its number of replicas.
 *
 *     for (;;) {
 *       // creates variables and datasets, loads the last checkpoint, and runs until all steps are done or
 *       // dist_strategy_reform_due() reports 1; then destroys the variables and datasets
 *       status = train(strategy);
 *       if (status == DIST_OK) break;
 *       if (status != DIST_UNAVAILABLE && status != DIST_ABORTED) return status;
 *       status = dist_strategy_reform(strategy, NULL);
 *       if (status != DIST_OK) return status;
 *     }
 *
 * Each worker runs this loop.
 *
 * **Worker 0 decides who takes part.** It waits, for up to window_ns, for the workers of the previous generation that
 * it does not know to be lost, and for workers that want to join. Then it continues without the others, however many
 * they are: of two workers, one continues on its own. Set min_workers to keep a worker 0 that stood still for a lease,
 * and so lost all others, from continuing on its own. A worker that is in a run when worker 0 re-forms learns that
 * worker 0 has left, and must call this function too. Worker 0 rejects a restarted worker that has a different number
 * of replicas.
 *
 * If worker 0 is lost or has ended, the job has ended, and this function fails with UNAVAILABLE: restart the job from
 * its last checkpoint. A restarted worker 0 does not know the previous job and rejects its workers.
 *
 * **Restarted workers** create their strategy as usual. Once the job has re-formed without such a worker, its first
 * call that needs others fails with UNAVAILABLE and states the reason. dist_strategy_reform() on that worker then waits
 * until worker 0 re-forms again; the other workers learn from dist_strategy_reform_due() that they should.
 *
 * **What is kept.** The strategy, its options, and its variables with their content on this worker are kept. A failed
 * run may have changed the variables of some replicas and not others, and a worker that joins starts without content:
 * load a checkpoint that was saved between runs. If dist_strategy_properties.num_joined is 0, variables need not be
 * created again. Plans, counters, traces and datasets are not kept. Dataset passes fail with FAILED_PRECONDITION:
 * create the datasets again, and their rows are divided among the current workers.
 *
 * A repeated step produces the same bits as before if it does not depend on the number of replicas: for example a step
 * with a fixed number of micro-batches, divided among all replicas and summed with DIST_NUMERICS_REPRODUCIBLE.
 * Certificates and keys (DIST_TLS_...) are read again.
 *
 * Context  Strategy, serialized. Meanwhile other threads may call dist_strategy_cancel() or dist_strategy_shutdown(),
 *          which end the call, and functions that only inspect the strategy. Runs that they start fail with CANCELLED.
 * Blocks   First for up to a lease, until sent data has been received; then until worker 0 has decided who takes part.
 * Errors   After an error the strategy has no connection to the other workers, and this function can be called again.
 *          FAILED_PRECONDITION  a run is in progress, groups or works of the strategy still exist, this thread is
 *                               inside a replica or the strategy's scope, or the cluster has only one worker.
 *          UNAVAILABLE          worker 0 is lost, has not answered for a lease, or rejects this worker; the message
 *                               states the reason.
 *          DEADLINE_EXCEEDED    too few workers arrived, or worker 0 has not decided.
 *          CANCELLED            dist_strategy_cancel() or dist_strategy_shutdown() was called.
 *          INVALID_ARGUMENT     strategy is NULL, or an option is out of range.
 *          UNIMPLEMENTED        the workers are strategies of one process (dist_worker_options.network).
 */
DIST_API DIST_NODISCARD dist_status dist_strategy_reform(dist_strategy *strategy,
                                                         const dist_reform_options *options);

/**
 * Reports whether the workers should re-form before the next run, because workers were lost or others want to join.
 * Worker 0 announces this at the end of each run, so that all workers that have made the same runs get the same answer.
 * The other workers wait until worker 0 has ended the latest run. *out_due is also 1 if worker 0 is lost, or if the
 * latest dist_strategy_reform() failed. A run in which a worker only sends data can succeed there although a receiver
 * has died; this function reports that too.
 *
 * With DIST_REFORM_AT_NEXT_RUN, dist_run() and dist_run_values() make this check and call dist_strategy_reform()
 * themselves. This suits programs that need not load anything afterwards, such as evaluation.
 * dist_strategy_properties.generation shows whether the workers have re-formed.
 *
 * Blocks   Until worker 0 has ended the latest run, up to the strategy's timeout_ns.
 * Errors   INVALID_ARGUMENT     an argument is NULL.
 *          FAILED_PRECONDITION  another thread is re-forming or destroying the strategy.
 *          DEADLINE_EXCEEDED    worker 0 has not ended the run in time.
 *          CANCELLED            dist_strategy_cancel() or dist_strategy_shutdown() ended the wait.
 */
DIST_API DIST_NODISCARD dist_status dist_strategy_reform_due(dist_strategy *strategy, int32_t *out_due);

#ifdef __cplusplus
}
#endif
#endif /* DIST_WORKERS_H */
