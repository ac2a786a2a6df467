/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file
 * Cluster resolvers: who says which cluster a process is part of, and which task of it the process is.
 *
 * There is a resolver for a spec that is given, for TF_CONFIG, for the steps of Slurm, for the names of Kubernetes' pods, for
 * several other resolvers, and for functions of the host's. dist_strategy_options.cluster_resolver gives one to a strategy.
 *
 * What an option gives counts before what the environment says. dist_cluster_explain() says what was decided, and where from.
 * Whoever sets environment variables must not do so while another thread makes a resolver, or asks one of TF_CONFIG.
 *
 * Resolvers that ask a service of a cloud (of GCE, Cloud TPU or SageMaker, or the API server of Kubernetes) are not offered:
 * a host asks it, and gives the addresses to dist_cluster_spec_create().
 */
#ifndef DIST_CLUSTER_RESOLVER_H
#define DIST_CLUSTER_RESOLVER_H

#include "cluster.h"

#endif /* DIST_CLUSTER_RESOLVER_H */

/* ---- Experimental: what follows may change or go in any version, as types.h says ------------------- */

#if defined(DIST_EXPERIMENTAL) && !defined(DIST_CLUSTER_RESOLVER_EXPERIMENTAL_H)
#define DIST_CLUSTER_RESOLVER_EXPERIMENTAL_H

#include "cluster.h"

#ifdef __cplusplus
extern "C" {
#endif

/** What is given counts before what a resolver finds. NULL: not given. */
typedef struct dist_cluster_resolver_options {
  uint32_t struct_size;
  int32_t has_task_id;      /* 1: task_id is given */
  const char *task_type;    /* the job of this process */
  int32_t task_id;          /* its index in it; DIST_TASK_UNSET is not given */
  int32_t num_accelerators; /* of this process; 0: none, or those that Slurm's options give */
  const char *rpc_layer;    /* "grpc": put before addresses, with ://; "": nothing is */
  const char *environment;  /* "google", "": a word for where the cluster runs */
  const char *
      session_address; /* what dist_cluster_resolver_master() gives where no task is asked for; read by simple alone */
  const char *tf_config;    /* TF_CONFIG; NULL: the environment variable */
  dist_allocator allocator; /* all zero: malloc and free */
} dist_cluster_resolver_options;
#define DIST_CLUSTER_RESOLVER_OPTIONS_INIT                                     \
  {                                                                            \
    sizeof(dist_cluster_resolver_options), 0, 0, 0, 0, 0, 0, 0, 0, { 0, 0, 0 } \
  }

/** As dist_strategy_options_init(), of dist_cluster_resolver_options. */
DIST_API void dist_cluster_resolver_options_init(dist_cluster_resolver_options *options,
                                                 uint32_t struct_size_bytes);

/**
 * Makes a resolver of a spec (TensorFlow: SimpleClusterResolver).
 *
 * Owns     The options are copied, the spec is held. *out_resolver is the caller's: dist_cluster_resolver_destroy().
 * Errors   INVALID_ARGUMENT    NULL spec or out_resolver; of the options a text that is too long or not one line, a flag
 *                              that is not 0 or 1, a negative number of accelerators.
 *          RESOURCE_EXHAUSTED  no memory.
 */
DIST_API DIST_NODISCARD dist_status
dist_cluster_resolver_create_simple(dist_cluster_spec *spec, const dist_cluster_resolver_options *options,
                                    dist_cluster_resolver **out_resolver);

/**
 * Makes a resolver of TF_CONFIG (TensorFlow: TFConfigClusterResolver): {"cluster": {...}, "task": {"type": "worker",
 * "index": 0}, "rpc_layer": "grpc", "session_master": "host:port"}, of which all may be left out. Unset it is {}.
 *
 * The environment variable is read at each question, not here, and so are its errors: a text that is not JSON is
 * INVALID_ARGUMENT there. Types and indices are made what they should be as in TensorFlow: "1" and 1.9 are index 1, and
 * a type of 3 is "3", of null "None". Texts are read as numbers where they have digits of ASCII; Python takes others too. An
 * index of DIST_TASK_UNSET is refused.
 *
 * Owns     As dist_cluster_resolver_create_simple().
 * Errors   As dist_cluster_resolver_create_simple(), without a spec.
 */
DIST_API DIST_NODISCARD dist_status dist_cluster_resolver_create_tf_config(
    const dist_cluster_resolver_options *options, dist_cluster_resolver **out_resolver);

/** What Slurm says of a step. What is not given is read of the environment variable that is named. */
typedef struct dist_slurm_options {
  uint32_t struct_size;
  int32_t has_rank;           /* 1: rank is given */
  int32_t rank;               /* of this process in the step. SLURM_PROCID */
  int32_t num_tasks;          /* of the step; 0: SLURM_STEP_NUM_TASKS, where no jobs are given */
  const char *host_list;      /* "n[01-03,7],m1". NULL: SLURM_STEP_NODELIST */
  const char *tasks_per_node; /* "2(x3),1", by the order of host_list. NULL: SLURM_STEP_TASKS_PER_NODE */
  int32_t tasks_on_each_host; /* 0: as tasks_per_node says */
  int32_t port_base;          /* the port of the first task of a host; 0: 8888 */
  int32_t gpus_per_host;      /* 0: none, and they are not shared out */
  int32_t gpus_per_task;      /* 0: as many as all tasks of a host can have */
  const dist_cluster_job
      *jobs; /* of each only name and num_tasks are read; NULL: one job, "worker", of all tasks */
  size_t num_jobs;
} dist_slurm_options;
#define DIST_SLURM_OPTIONS_INIT \
  { sizeof(dist_slurm_options), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }

/** As dist_strategy_options_init(), of dist_slurm_options. */
DIST_API void dist_slurm_options_init(dist_slurm_options *options, uint32_t struct_size_bytes);

/**
 * Makes a resolver of a Slurm step (TensorFlow: SlurmClusterResolver). Each host first gets its number of tasks, which has
 * the same place in its list. Then hosts are sorted by name, as texts, so that n10 comes before n9 (TensorFlow), and tasks in
 * that order get the ports port_base, port_base + 1, ... of each; jobs, by name, get the tasks one after another. What Slurm
 * says is read here, once. The RPC layer is grpc unless another one is given.
 *
 * Of a rank that is negative, or that no task of the step has, the task is not set; the cluster is there all the same. A
 * rank of DIST_TASK_UNSET counts as not given.
 *
 * Owns     As dist_cluster_resolver_create_simple(); the Slurm options are copied.
 * Errors   INVALID_ARGUMENT      as dist_cluster_resolver_create_simple(); no list of hosts or tasks, lists of different
 *                                lengths, one host twice (in TensorFlow the shorter list and the later number count), no
 *                                host, more than a limit, a port beyond 65535, a negative number, GPUs but fewer than
 *                                tasks.
 *          FAILED_PRECONDITION   a variable is not there: this is no Slurm step; the jobs have another number of tasks than
 *                                the hosts; gpus_per_task is more than there are.
 *          RESOURCE_EXHAUSTED    no memory.
 */
DIST_API DIST_NODISCARD dist_status dist_cluster_resolver_create_slurm(
    const dist_slurm_options *slurm, const dist_cluster_resolver_options *options,
    dist_cluster_resolver **out_resolver);

/**
 * Gives each host of a list as Slurm writes them, "n[01-03,7],m1", to `fn`, in order. A host is a name, or a name with one
 * pair of brackets at its end, in which there are numbers and ranges of numbers, of ASCII digits. All numbers of a range
 * have as many digits as the first one is long; a blank beside it counts too, as in TensorFlow: n[ 1-2] is n01, n02. A range
 * that ends before it begins, n[3-1], is no host, and a comma at the end is no error; both are TensorFlow's.
 *
 * Blocks   Never, but for fn.
 * Errors   INVALID_ARGUMENT    NULL, a text that is no such list, more than a limit. `fn` was not called then.
 *          RESOURCE_EXHAUSTED  no memory.
 */
DIST_API DIST_NODISCARD dist_status dist_slurm_expand_host_list(const char *host_list, dist_text_fn fn,
                                                                void *user_data);

/**
 * Writes the numbers of a list as Slurm writes them: "2(x3),1" is 2, 2, 2, 1.
 *
 * Shape    out_tasks: [capacity]; *out_n is how many there are, which may be more.
 * Errors   INVALID_ARGUMENT    NULL (out_tasks may be where capacity is 0), a text that is no such list, more than a limit.
 *          RESOURCE_EXHAUSTED  no memory.
 */
DIST_API DIST_NODISCARD dist_status dist_slurm_expand_tasks_per_node(const char *tasks_per_node,
                                                                     int32_t *out_tasks, size_t capacity,
                                                                     size_t *out_n);

/** What the names of Kubernetes' pods say. What is not given is read of the environment variable that is named. */
typedef struct dist_kubernetes_options {
  uint32_t struct_size;
  int32_t has_index;   /* 1: index is given */
  int32_t index;       /* of this pod. JOB_COMPLETION_INDEX, else the number at the end of the host's name */
  int32_t num_workers; /* 0: WORLD_SIZE */
  int32_t first_index; /* of the pods: a StatefulSet's .spec.ordinals.start */
  int32_t port;        /* of every worker; 0: 8888 */
  const char *host_name;  /* of this pod, "trainer-2". NULL: HOSTNAME */
  const char *service;    /* the headless service; NULL: pods are found by their host's name alone */
  const char *name_space; /* of the service, with it alone; NULL: POD_NAMESPACE, where that is set */
  const char *domain;     /* of the Kubernetes cluster, "cluster.local", with a namespace; NULL: left out */
} dist_kubernetes_options;
#define DIST_KUBERNETES_OPTIONS_INIT \
  { sizeof(dist_kubernetes_options), 0, 0, 0, 0, 0, 0, 0, 0, 0 }

/** As dist_strategy_options_init(), of dist_kubernetes_options. */
DIST_API void dist_kubernetes_options_init(dist_kubernetes_options *options, uint32_t struct_size_bytes);

/**
 * Makes a resolver of the names that the pods of a StatefulSet or an Indexed Job have: NAME-0, NAME-1, ... All are tasks of
 * the job "worker", at "NAME-i.SERVICE.NAMESPACE.svc.DOMAIN:port". Without a domain it is "NAME-i.SERVICE.NAMESPACE.svc:port",
 * without a namespace "NAME-i.SERVICE:port", and without a service "NAME-i:port". No API server is asked. What the environment says is read
 * here, once. The RPC layer is grpc unless another one is given.
 *
 * Owns     As dist_cluster_resolver_create_simple(); the Kubernetes options are copied.
 * Errors   INVALID_ARGUMENT     as dist_cluster_resolver_create_simple(); a host name without a number at its end, or with
 *                               zeros before that number, which no pod has; a namespace or a domain without a service, a
 *                               domain without a namespace; a name that DNS does not have, an index that no worker has, a port beyond 65535, more than a limit.
 *          FAILED_PRECONDITION  the host's name or the number of workers is neither given nor in the environment.
 *          RESOURCE_EXHAUSTED   no memory.
 */
DIST_API DIST_NODISCARD dist_status dist_cluster_resolver_create_kubernetes(
    const dist_kubernetes_options *kubernetes, const dist_cluster_resolver_options *options,
    dist_cluster_resolver **out_resolver);

/**
 * Makes one resolver of several (TensorFlow: UnionResolver): the spec is dist_cluster_spec_union() of theirs, all else the
 * first one's, unless options give it. dist_cluster_resolver_master() says what of it addresses have.
 *
 * Owns     The resolvers are held. *out_resolver is the caller's: dist_cluster_resolver_destroy().
 * Errors   INVALID_ARGUMENT    NULL, no resolver, more than DIST_MAX_CLUSTER_MEMBERS in it or below one another, options as
 *                              dist_cluster_resolver_create_simple().
 *          RESOURCE_EXHAUSTED  no memory.
 */
DIST_API DIST_NODISCARD dist_status dist_cluster_resolver_create_union(
    dist_cluster_resolver *const *resolvers, size_t num_resolvers,
    const dist_cluster_resolver_options *options, dist_cluster_resolver **out_resolver);

/**
 * A resolver of the host's own. Each function but spec may be NULL: the option counts, or else nothing is set. Options count
 * before functions. Texts are written with an end mark into `size_bytes` bytes; *out_is_set is 1 before the
 * call: a function sets it to 0 where there is no text, and any other value says that there is one. They are called on the thread that asks, from several at once, and may call libdist, but not on the resolver itself.
 */
typedef struct dist_cluster_resolver_functions {
  uint32_t struct_size;
  int32_t reserved; /* 0 */
  /* *out_spec is handed over, as dist_cluster_spec_create() does */
  dist_status (*spec)(dist_cluster_spec **out_spec, void *user_data);
  dist_status (*task_type)(char *out_text, size_t size_bytes, int32_t *out_is_set, void *user_data);
  dist_status (*task_id)(int32_t *out_task_id, void *user_data); /* DIST_TASK_UNSET: none */
  dist_status (*rpc_layer)(char *out_text, size_t size_bytes, int32_t *out_is_set, void *user_data);
  dist_status (*environment)(char *out_text, size_t size_bytes, int32_t *out_is_set, void *user_data);
  /* as dist_cluster_resolver_master(). NULL: the address of the task; "" where no task is asked for */
  dist_status (*address)(const char *task_type, int32_t task_id, const char *rpc_layer, char *out_text,
                         size_t size_bytes, void *user_data);
  dist_status (*num_accelerators)(const char *task_type, int32_t task_id, int32_t *out_n, void *user_data);
  dist_release_fn release; /* of user_data, once: when the resolver ends; never where making it fails */
} dist_cluster_resolver_functions;
#define DIST_CLUSTER_RESOLVER_FUNCTIONS_INIT \
  { sizeof(dist_cluster_resolver_functions), 0, 0, 0, 0, 0, 0, 0, 0, 0 }

/** As dist_strategy_options_init(), of dist_cluster_resolver_functions. */
DIST_API void dist_cluster_resolver_functions_init(dist_cluster_resolver_functions *functions,
                                                   uint32_t struct_size_bytes);

/**
 * Makes a resolver of the host's own.
 *
 * Owns     The table is copied; user_data is used until `release`. *out_resolver is the caller's:
 *          dist_cluster_resolver_destroy().
 * Errors   INVALID_ARGUMENT    NULL functions, spec or out_resolver; options as dist_cluster_resolver_create_simple().
 *          RESOURCE_EXHAUSTED  no memory.
 */
DIST_API DIST_NODISCARD dist_status dist_cluster_resolver_create_host(
    const dist_cluster_resolver_functions *functions, void *user_data,
    const dist_cluster_resolver_options *options, dist_cluster_resolver **out_resolver);

/**
 * Ends a resolver for the caller; strategies and unions that have it go on. NULL is fine.
 *
 * Context  Any, serialized.
 * Owns     Takes the resolver.
 */
DIST_API void dist_cluster_resolver_destroy(dist_cluster_resolver *resolver);

/**
 * Gives the spec of the cluster.
 *
 * Blocks   Never, but for a function of the host's.
 * Owns     *out_spec is the caller's: dist_cluster_spec_destroy(). A simple resolver gives the spec that it was made of, and
 *          a host's function its own, each with the allocator that it has; others make theirs with the resolver's.
 * Errors   INVALID_ARGUMENT    NULL; TF_CONFIG that is not JSON or has no such cluster; specs that have no union; a host's
 *                              function that gives no spec.
 *          RESOURCE_EXHAUSTED  no memory.
 *          What a host's function fails with.
 */
DIST_API DIST_NODISCARD dist_status dist_cluster_resolver_spec(const dist_cluster_resolver *resolver,
                                                               dist_cluster_spec **out_spec);

/**
 * Writes the job of this process, with an end mark. *out_is_set is 0, and the text "", where it is not known.
 *
 * Blocks   As dist_cluster_resolver_spec().
 * Errors   INVALID_ARGUMENT    NULL; TF_CONFIG that is not JSON, or has no such task; no room for the text, which is never
 *                              longer than DIST_MAX_ADDRESS_BYTES.
 *          RESOURCE_EXHAUSTED  no memory.
 *          What a host's function fails with.
 */
DIST_API DIST_NODISCARD dist_status dist_cluster_resolver_task_type(const dist_cluster_resolver *resolver,
                                                                    char *out_text, size_t size_bytes,
                                                                    int32_t *out_is_set);

/** As dist_cluster_resolver_task_type(), of the index of this process in its job; DIST_TASK_UNSET: it is not known. */
DIST_API DIST_NODISCARD dist_status dist_cluster_resolver_task_id(const dist_cluster_resolver *resolver,
                                                                  int32_t *out_task_id);

/** As dist_cluster_resolver_task_type(), of the RPC layer. */
DIST_API DIST_NODISCARD dist_status dist_cluster_resolver_rpc_layer(const dist_cluster_resolver *resolver,
                                                                    char *out_text, size_t size_bytes,
                                                                    int32_t *out_is_set);

/** As dist_cluster_resolver_task_type(), of the environment. It is not set for TF_CONFIG, and "" for the others. */
DIST_API DIST_NODISCARD dist_status dist_cluster_resolver_environment(const dist_cluster_resolver *resolver,
                                                                      char *out_text, size_t size_bytes,
                                                                      int32_t *out_is_set);

/**
 * Writes where to connect to: "grpc://host:port", or without an RPC layer (""; NULL is the resolver's) "host:port".
 *
 * A task is asked for by its type and its id. Where one of them is not (NULL, DIST_TASK_UNSET), the address is
 *
 *     simple              session_address, or nothing, behind the RPC layer: with "grpc" it is "grpc://" (TensorFlow)
 *     union               what its first resolver has, with the RPC layer of that one unless `rpc_layer` is given
 *     TF_CONFIG           the task's, whose type or id is taken from this process
 *     Slurm, Kubernetes   this process' own, "" where its task is not known
 *     the host's          as address() writes it, else as simple without a session_address
 *
 * Where a union is asked for a task, a NULL layer is the union's own option, and none where that is not given.
 *
 * Of TF_CONFIG, "session_master" counts before all, as it is; and of a cluster of one task the address is "".
 *
 * Blocks   As dist_cluster_resolver_spec().
 * Errors   INVALID_ARGUMENT    as dist_cluster_resolver_task_type(); no such task.
 *          RESOURCE_EXHAUSTED  no memory.
 *          What a host's function fails with.
 */
DIST_API DIST_NODISCARD dist_status dist_cluster_resolver_master(const dist_cluster_resolver *resolver,
                                                                 const char *task_type, int32_t task_id,
                                                                 const char *rpc_layer, char *out_text,
                                                                 size_t size_bytes);

/**
 * How many accelerators a task has (NULL, DIST_TASK_UNSET: this process): those that options give, under Slurm gpus_per_task,
 * else 0, since the devices of libdist are host CPUs.
 *
 * Blocks   As dist_cluster_resolver_spec().
 * Errors   As dist_cluster_resolver_master(): under TF_CONFIG the task must be one of the cluster's, but not where options
 *          give the number, TF_CONFIG has "session_master", or its cluster has no job, or one task alone.
 */
DIST_API DIST_NODISCARD dist_status dist_cluster_resolver_num_accelerators(
    const dist_cluster_resolver *resolver, const char *task_type, int32_t task_id, int32_t *out_n);

/**
 * Writes the GPUs of this process as CUDA_VISIBLE_DEVICES has them, "2,3"; "" where the resolver shares none out, whatever
 * the rank is. libdist does not change the environment: a host that wants the variable sets it.
 *
 * Errors   INVALID_ARGUMENT  NULL, a rank that the Slurm step has not, no room for the text, more GPUs than a text of less
 *                            than DIST_MAX_ADDRESS_BYTES names.
 */
DIST_API DIST_NODISCARD dist_status dist_cluster_resolver_gpu_ids(const dist_cluster_resolver *resolver,
                                                                  char *out_text, size_t size_bytes);

/**
 * Writes what was decided, and from where: an option, which environment variable, a default. Lines of "subject: words", for
 * people: the words may change in any version. What cannot be decided is a line that says why.
 *
 * Blocks   As dist_cluster_resolver_spec(), and for fn.
 * Errors   INVALID_ARGUMENT NULL. RESOURCE_EXHAUSTED no memory.
 */
DIST_API DIST_NODISCARD dist_status dist_cluster_explain(const dist_cluster_resolver *resolver,
                                                         dist_text_fn fn, void *user_data);

#ifdef __cplusplus
}
#endif
#endif /* DIST_CLUSTER_RESOLVER_EXPERIMENTAL_H */
