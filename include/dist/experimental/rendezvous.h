/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file
 * Rendezvous: workers that find each other at one address, without a list of all addresses.
 *
 *     dist_rendezvous_options rendezvous = DIST_RENDEZVOUS_OPTIONS_INIT;      // rank and size come from the launcher
 *     rendezvous.address = "10.0.0.7:29500";                                  // the same in every process
 *     dist_cluster_resolver *resolver = NULL;
 *     dist_status status = dist_cluster_resolver_create_rendezvous(&rendezvous, NULL, &resolver);
 *     dist_worker_options worker = DIST_WORKER_OPTIONS_INIT;                  // for dist_strategy_options.worker
 *     worker.cluster_resolver = resolver;
 *
 * Programs do not need this header if they set DIST_RENDEZVOUS (workers.h): dist_strategy_create() then does the same.
 *
 * This interface is experimental: it may change or be removed in any version.
 */
#ifndef DIST_EXPERIMENTAL_RENDEZVOUS_H
#define DIST_EXPERIMENTAL_RENDEZVOUS_H

#include "../cluster_resolver.h"

#ifdef __cplusplus
extern "C" {
#endif

/** A job whose workers meet at one address. A field that is not set is read from the environment; see below. */
typedef struct dist_rendezvous_options {
  uint32_t struct_size;
  int32_t has_rank;     /* 1 = rank is set */
  int32_t rank;         /* number of this worker, 0 to size - 1 */
  int32_t size;         /* number of workers; 0 = not set */
  const char *address;  /* "host:port" of worker 0, with a port of 1 to 65535; NULL = not set */
  const char *job_name; /* equal in all workers of a job, and different in other jobs; NULL = not set */
  int64_t timeout_ns; /* limit of the wait for all workers; 0 = default (600 s), DIST_NO_TIMEOUT = no limit */
  dist_cancel *cancel; /* cancels the wait; may be NULL */
} dist_rendezvous_options;
#define DIST_RENDEZVOUS_OPTIONS_INIT \
  { sizeof(dist_rendezvous_options), 0, 0, 0, 0, 0, 0, 0 }

/** Initializes a dist_rendezvous_options to its defaults, like dist_strategy_options_init(). */
DIST_API void dist_rendezvous_options_init(dist_rendezvous_options *options, uint32_t struct_size_bytes);

/**
 * Waits until all workers of a job have met, and creates a resolver for the cluster that they form.
 *
 *     // in every process, for example with 10.0.0.7:29500 as the address and ranks 0 to 3
 *     rendezvous.has_rank = 1;
 *     rendezvous.rank = rank;
 *     rendezvous.size = 4;
 *     rendezvous.address = "10.0.0.7:29500";
 *     dist_cluster_resolver_create_rendezvous(&rendezvous, NULL, &resolver);
 *
 * Worker 0 listens on the address while this call lasts. Every worker listens on a port that the system chooses,
 * registers it with worker 0, and receives the addresses of all workers. The cluster has one job, "worker", in which
 * the task of each process is its rank. A strategy that is created with the resolver uses the port on which this call
 * has begun to listen, so no other program can take the port in between. One strategy at a time can use it.
 *
 * **Environment.** If the options set no rank or no size, they come from the launcher that has started this process:
 *
 *     launcher       rank                   size                                      job name
 *     any            DIST_RANK              DIST_SIZE                                 DIST_JOB_NAME
 *     torchrun       RANK                   WORLD_SIZE                                TORCHELASTIC_RUN_ID
 *     Open MPI       OMPI_COMM_WORLD_RANK   OMPI_COMM_WORLD_SIZE                      PMIX_NAMESPACE
 *     MPICH, PMI     PMI_RANK               PMI_SIZE
 *     Slurm's srun   SLURM_PROCID           SLURM_STEP_NUM_TASKS, else SLURM_NTASKS   SLURM_JOB_ID.SLURM_STEP_ID
 *
 * A launcher counts if its variable for the rank is set and not empty. DIST_RANK takes precedence over all others, and
 * the other launchers over Slurm, because they are often started by srun. If two of torchrun, Open MPI and PMI are set
 * and do not agree, this call fails and names both. DIST_JOB_NAME takes precedence over the launcher's job name.
 *
 * If the options set no address, it is DIST_RENDEZVOUS, or else MASTER_ADDR with the port after MASTER_PORT, because
 * PyTorch's own store listens on MASTER_PORT. Set DIST_RENDEZVOUS if that port is in use. A job of one worker needs no
 * address.
 *
 * **Link modules.** If neither the options nor DIST_RENDEZVOUS set an address, and DIST_TRANSPORT names a link module
 * that knows the job (experimental/links.h), such as those of MPI, rank and size come from the module. Worker 0 listens
 * on a port that the system chooses, and the module sends its address to the others. MASTER_ADDR is then ignored. The
 * call fails if the options or the launcher's variables, except Slurm's, have another rank or size. The n-th such call
 * of a worker meets the n-th such calls of the others.
 *
 * The secret, the certificates and the lease of the job are those of workers.h, and so are the rules for addresses that
 * are not loopback addresses. With TLS, a certificate must list the host under which the other workers reach its owner:
 * for worker 0 the host of the address, for the others their IP address as worker 0 sees it. DIST_BIND_ADDRESS sets
 * both the address on which a worker listens and, unless it stands for all interfaces, the host under which it is
 * reached. Its port may be 0 here. Worker 0 listens for the others on the host of DIST_BIND_ADDRESS, too.
 *
 * **Failures.** The call fails on every worker if the workers have not met by the deadline, and the message lists the
 * ranks that have not registered. A process that cannot prove that it knows the job's secret is ignored. Worker 0
 * rejects a registration with another job name, with another number of workers or with a rank that another process has
 * registered, and the message contains the values of both sides. A rejected process does not end the rendezvous: the
 * process that belongs in its place can still register. A worker that ends before all have met can be started
 * again; after that, its addresses are fixed and a restarted worker cannot register any more. Use TF_CONFIG if workers
 * are to be restarted one by one.
 *
 * Blocks   Until all workers have registered, the deadline expires, or `cancel` is signalled. Looking up the host of
 *          DIST_BIND_ADDRESS, if it is a name, can take as long as the system's name servers do not answer.
 * Owns     Like dist_cluster_resolver_create_simple(); the rendezvous options are copied, and the resolver keeps its
 *          port until it has been destroyed.
 * Errors   INVALID_ARGUMENT     an error of dist_cluster_resolver_create_simple(); the rank is not less than the size;
 *                               a number or an address is out of range; a variable is not a number; there is no
 *                               transport with the name in DIST_TRANSPORT.
 *          FAILED_PRECONDITION  the rank, the size or the address is not known; two launchers, or a launcher and a link
 *                               module, do not agree; worker 0 belongs to another job or has another number of workers;
 *                               another process has registered the rank; TLS, a secret or DIST_PLAINTEXT is required.
 *          UNAVAILABLE          this process cannot listen; worker 0 uses another version or lease; libdist-grpc.so was
 *                               not found; the link module cannot be used.
 *          DEADLINE_EXCEEDED    not all workers have registered in time, or worker 0 could not be reached.
 *          CANCELLED            `cancel` was signalled, here or on worker 0.
 *          RESOURCE_EXHAUSTED   memory, descriptors or threads are exhausted.
 */
DIST_API DIST_NODISCARD dist_status dist_cluster_resolver_create_rendezvous(
    const dist_rendezvous_options *rendezvous, const dist_cluster_resolver_options *options,
    dist_cluster_resolver **out_resolver);

#ifdef __cplusplus
}
#endif
#endif /* DIST_EXPERIMENTAL_RENDEZVOUS_H */
