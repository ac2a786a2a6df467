/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file
 * Cluster resolvers: find the cluster that a process belongs to and the task that the process is.
 *
 *     dist_cluster_resolver *resolver = NULL;
 *     dist_cluster_resolver_create_tf_config(NULL, &resolver);      // or Slurm, Kubernetes, ...
 *     dist_worker_options worker = DIST_WORKER_OPTIONS_INIT;
 *     worker.cluster_resolver = resolver;
 *     dist_strategy_options options = DIST_STRATEGY_OPTIONS_INIT;
 *     options.kind = DIST_STRATEGY_MULTI_WORKER_MIRRORED;
 *     options.worker = &worker;
 *     dist_strategy_create(&options, &strategy);
 *     dist_cluster_resolver_destroy(resolver);                      // the strategy keeps it
 *
 * There are resolvers for a given spec, for TF_CONFIG, for Slurm steps, for the names of Kubernetes pods, for workers
 * that meet at one address, for a union of several resolvers, and for your own functions.
 *
 * Options take precedence over the environment. dist_cluster_explain() describes each decision and its source. Do not
 * change environment variables while another thread creates a resolver or queries a TF_CONFIG resolver.
 *
 * libdist has no resolvers that query a cloud service (GCE, Cloud TPU, SageMaker, or the API server of Kubernetes).
 * Query it in your program and pass the addresses to dist_cluster_spec_create().
 */
#ifndef DIST_CLUSTER_RESOLVER_H
#define DIST_CLUSTER_RESOLVER_H

#include "cluster.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Options of all resolvers. They take precedence over what a resolver finds. A NULL field is not set. */
typedef struct dist_cluster_resolver_options {
  uint32_t struct_size;
  int32_t has_task_id;      /* 1 = task_id is set */
  const char *task_type;    /* job of this process */
  int32_t task_id;          /* index of this process in its job; DIST_TASK_UNSET = not set */
  int32_t num_accelerators; /* accelerators of this process; 0 = none, or those from the Slurm options */
  const char *rpc_layer;    /* "grpc": prefixed to addresses with "://"; "" = no prefix */
  const char *environment;  /* name of the platform on which the cluster runs: "google", "" */
  /* simple resolvers only: the result of dist_cluster_resolver_master() if no task is given */
  const char *session_address;
  const char *tf_config;    /* value of TF_CONFIG; NULL = the environment variable */
  dist_allocator allocator; /* all zero = malloc() and free() */
} dist_cluster_resolver_options;
#define DIST_CLUSTER_RESOLVER_OPTIONS_INIT                                     \
  {                                                                            \
    sizeof(dist_cluster_resolver_options), 0, 0, 0, 0, 0, 0, 0, 0, { 0, 0, 0 } \
  }

/** Initializes a dist_cluster_resolver_options to its defaults, like dist_strategy_options_init(). */
DIST_API void dist_cluster_resolver_options_init(dist_cluster_resolver_options *options,
                                                 uint32_t struct_size_bytes);

/**
 * Creates a resolver for a given spec (TensorFlow: SimpleClusterResolver).
 *
 * Owns     The options are copied; the resolver keeps a reference to the spec. The caller owns *out_resolver and
 *          destroys it with dist_cluster_resolver_destroy().
 * Errors   INVALID_ARGUMENT    spec or out_resolver is NULL; a text in options is too long or not a single line; a flag
 *                              is not 0 or 1; the number of accelerators is negative.
 *          RESOURCE_EXHAUSTED  out of memory.
 */
DIST_API DIST_NODISCARD dist_status
dist_cluster_resolver_create_simple(dist_cluster_spec *spec, const dist_cluster_resolver_options *options,
                                    dist_cluster_resolver **out_resolver);

/**
 * Creates a resolver for TF_CONFIG (TensorFlow: TFConfigClusterResolver).
 *
 *     {"cluster": {...}, "task": {"type": "worker", "index": 0}, "rpc_layer": "grpc", "session_master": "host:port"}
 *
 * All keys are optional; if TF_CONFIG is not set, it counts as {}. An empty text is not JSON. Other keys are ignored,
 * and the last of equal keys counts. As in Python, the literals NaN, Infinity and -Infinity count as JSON numbers.
 *
 * The environment variable is read at each query, not here. Errors in it are therefore reported by the queries that use
 * the invalid part, with INVALID_ARGUMENT:
 *
 *     TF_CONFIG         must be a JSON object: every query fails
 *     "cluster"         must be an object, as for dist_cluster_spec_from_json(); null is an error
 *     "task"            must be an object; null is an error
 *     "index"           must be an integer of 32 bits, also as a text ("1"), but not DIST_TASK_UNSET; null, 1.0 and NaN
 *                       are errors
 *     "type", "rpc_layer", "session_master"
 *                       must be texts; null means that the text is not set
 *
 * Owns     Like dist_cluster_resolver_create_simple().
 * Errors   Like dist_cluster_resolver_create_simple(), without a spec.
 */
DIST_API DIST_NODISCARD dist_status dist_cluster_resolver_create_tf_config(
    const dist_cluster_resolver_options *options, dist_cluster_resolver **out_resolver);

/** A Slurm step. A field that is not set is read from the environment variable that its comment names. */
typedef struct dist_slurm_options {
  uint32_t struct_size;
  int32_t has_rank;      /* 1 = rank is set */
  int32_t rank;          /* rank of this process in the step; not set = SLURM_PROCID */
  int32_t num_tasks;     /* number of tasks of the step; 0 = SLURM_STEP_NUM_TASKS, if no jobs are given */
  const char *host_list; /* hosts, such as "n[01-03,7],m1"; NULL = SLURM_STEP_NODELIST */
  const char *tasks_per_node; /* such as "2(x3),1", by host_list; NULL = SLURM_STEP_TASKS_PER_NODE */
  int32_t tasks_on_each_host; /* number of tasks of every host; 0 = as in tasks_per_node */
  int32_t port_base;          /* port of the first task of a host; 0 = default (8888) */
  int32_t gpus_per_host;      /* GPUs of every host; 0 = none, and GPUs are not distributed */
  int32_t gpus_per_task;      /* GPUs of every task; 0 = as many as every task of a host can have */
  /* only name and num_tasks of each job are used; NULL = one job, "worker", with all tasks */
  const dist_cluster_job *jobs;
  size_t num_jobs; /* number of jobs */
} dist_slurm_options;
#define DIST_SLURM_OPTIONS_INIT \
  { sizeof(dist_slurm_options), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }

/** Initializes a dist_slurm_options to its defaults, like dist_strategy_options_init(). */
DIST_API void dist_slurm_options_init(dist_slurm_options *options, uint32_t struct_size_bytes);

/**
 * Creates a resolver for a Slurm step (TensorFlow: SlurmClusterResolver).
 *
 * Each host has the number of tasks at its position in the list. The ranks are placed on the hosts like in Slurm:
 *
 *     SLURM_DISTRIBUTION   order of the ranks
 *     block, *, not set    first all ranks of the first host, then those of the second one, and so on
 *     cyclic               one rank of each host in turn
 *     plane=N              N ranks of each host in turn; for "plane" without a number, N is SLURM_DIST_PLANESIZE
 *     anything else        not known, unless there is only one host; this call then fails
 *
 * Only the first word of SLURM_DISTRIBUTION counts, for example cyclic in "cyclic:block". If rank and host_list are not
 * set, the place of this process must also agree with SLURM_NODEID and SLURM_LOCALID; otherwise this call fails.
 * TensorFlow sorts the hosts by name instead, so that a rank can get the address of another host.
 *
 * The tasks of each host get the ports port_base, port_base + 1, and so on. The jobs, sorted by name, get the ranks one
 * after another. The environment is read once, by this call. The RPC layer is grpc unless options set another one.
 *
 * If the rank is negative or belongs to no task of the step, the cluster is valid but the task is not set. The rank
 * DIST_TASK_UNSET counts as not set.
 *
 * Owns     Like dist_cluster_resolver_create_simple(); the Slurm options are copied.
 * Errors   INVALID_ARGUMENT     an error of dist_cluster_resolver_create_simple(); a list of hosts or tasks is invalid,
 *                               or their lengths differ; a host occurs twice (in TensorFlow, the shorter list and the
 *                               later number count); there are no hosts; a limit is exceeded; a port is above 65535; a
 *                               number is negative; there are fewer GPUs than tasks on a host; the size of a plane or
 *                               SLURM_NODEID is not a number.
 *          FAILED_PRECONDITION  an environment variable is not set, so this is not a Slurm step; the jobs and the hosts
 *                               have different numbers of tasks; gpus_per_task is more than a host has; the order of
 *                               the ranks on the hosts is not known.
 *          RESOURCE_EXHAUSTED   out of memory.
 */
DIST_API DIST_NODISCARD dist_status dist_cluster_resolver_create_slurm(
    const dist_slurm_options *slurm, const dist_cluster_resolver_options *options,
    dist_cluster_resolver **out_resolver);

/**
 * Passes each host of a Slurm host list, such as "n[01-03,7],m1", to `fn`, in the order of `scontrol show hostnames`.
 *
 * Commas and blanks separate hosts. A host is a name with any number of brackets anywhere in it. Brackets contain
 * numbers and ascending ranges of ASCII digits. All numbers of a range are padded to the width of its first number; a
 * blank next to it counts towards the width (n[ 1-2] is n01, n02). With two brackets, the second one changes faster:
 * n[1-2]s[1-2] is n1s1, n1s2, n2s1, n2s2. Unlike in Slurm, text may follow the last bracket, as in n[1-2]-ib. Malformed
 * brackets, such as n[1-], are rejected.
 *
 * Blocks   Only while fn runs.
 * Errors   INVALID_ARGUMENT    an argument is NULL, the list is invalid, or a limit is exceeded. `fn` has not been
 *                              called.
 *          RESOURCE_EXHAUSTED  out of memory.
 */
DIST_API DIST_NODISCARD dist_status dist_slurm_expand_host_list(const char *host_list, dist_text_fn fn,
                                                                void *user_data);

/**
 * Expands a Slurm list of task counts: "2(x3),1" becomes 2, 2, 2, 1.
 *
 * Shape    out_tasks: [capacity]. *out_n is the number of counts, which can exceed capacity.
 * Errors   INVALID_ARGUMENT    an argument is NULL (out_tasks may be NULL if capacity is 0), the list is invalid, or a
 *                              limit is exceeded.
 *          RESOURCE_EXHAUSTED  out of memory.
 */
DIST_API DIST_NODISCARD dist_status dist_slurm_expand_tasks_per_node(const char *tasks_per_node,
                                                                     int32_t *out_tasks, size_t capacity,
                                                                     size_t *out_n);

/** Names of Kubernetes pods. A field that is not set is read from the environment variable that its comment names. */
typedef struct dist_kubernetes_options {
  uint32_t struct_size;
  int32_t has_index; /* 1 = index is set */
  /* index of this pod; not set = JOB_COMPLETION_INDEX, or the number at the end of the host name */
  int32_t index;
  int32_t num_workers;    /* number of workers; 0 = WORLD_SIZE */
  int32_t first_index;    /* index of the first pod: a StatefulSet's .spec.ordinals.start */
  int32_t port;           /* port of every worker; 0 = default (8888) */
  const char *host_name;  /* host name of this pod, such as "trainer-2"; NULL = HOSTNAME */
  const char *service;    /* headless service; NULL = addresses use only the host name */
  const char *name_space; /* namespace of the service; requires `service`; NULL = POD_NAMESPACE, if set */
  const char *domain;     /* cluster domain, such as "cluster.local"; requires a namespace; NULL = omitted */
} dist_kubernetes_options;
#define DIST_KUBERNETES_OPTIONS_INIT \
  { sizeof(dist_kubernetes_options), 0, 0, 0, 0, 0, 0, 0, 0, 0 }

/** Initializes a dist_kubernetes_options to its defaults, like dist_strategy_options_init(). */
DIST_API void dist_kubernetes_options_init(dist_kubernetes_options *options, uint32_t struct_size_bytes);

/**
 * Creates a resolver for the pods of a StatefulSet or an Indexed Job, whose names are NAME-0, NAME-1, and so on.
 *
 * All pods are tasks of the job "worker". Their addresses are, depending on which options are set:
 *
 *     NAME-i.SERVICE.NAMESPACE.svc.DOMAIN:port
 *     NAME-i.SERVICE.NAMESPACE.svc:port           without a domain
 *     NAME-i.SERVICE:port                         without a namespace
 *     NAME-i:port                                 without a service
 *
 * No API server is queried. The environment is read once, by this call. The RPC layer is grpc unless options set
 * another one.
 *
 * Owns     Like dist_cluster_resolver_create_simple(); the Kubernetes options are copied.
 * Errors   INVALID_ARGUMENT     an error of dist_cluster_resolver_create_simple(); the host name does not end with a
 *                               number, or the number has leading zeros, unlike that of any pod; a namespace or domain
 *                               without a service, or a domain without a namespace; a name is not a valid DNS name; no
 *                               worker has the index; a port is above 65535; a limit is exceeded.
 *          FAILED_PRECONDITION  the host name or the number of workers is set neither in options nor in the
 *                               environment.
 *          RESOURCE_EXHAUSTED   out of memory.
 */
DIST_API DIST_NODISCARD dist_status dist_cluster_resolver_create_kubernetes(
    const dist_kubernetes_options *kubernetes, const dist_cluster_resolver_options *options,
    dist_cluster_resolver **out_resolver);

/**
 * Creates a union of several resolvers (TensorFlow: UnionResolver).
 *
 * Its spec is the dist_cluster_spec_union() of their specs. Everything else comes from the first resolver, unless
 * options set it. dist_cluster_resolver_master() describes the effect on addresses.
 *
 * Owns     The union keeps references to the resolvers. The caller owns *out_resolver and destroys it with
 *          dist_cluster_resolver_destroy().
 * Errors   INVALID_ARGUMENT    an argument is NULL; there is no resolver; more than DIST_MAX_CLUSTER_MEMBERS resolvers
 *                              or levels of unions; options like in dist_cluster_resolver_create_simple().
 *          RESOURCE_EXHAUSTED  out of memory.
 */
DIST_API DIST_NODISCARD dist_status dist_cluster_resolver_create_union(
    dist_cluster_resolver *const *resolvers, size_t num_resolvers,
    const dist_cluster_resolver_options *options, dist_cluster_resolver **out_resolver);

/**
 * Your own resolver. All functions except `spec` may be NULL; then the option is used, or nothing is set. Options take
 * precedence over functions.
 *
 * A function writes a NUL-terminated text into `size_bytes` bytes. *out_is_set is 1 before the call; set it to 0 if
 * there is no text; any other value means that there is one. The functions are called on the thread that makes the
 * query, on several threads at once, and may call libdist, but not this resolver.
 */
typedef struct dist_cluster_resolver_functions {
  uint32_t struct_size;
  int32_t reserved; /* must be 0 */
  /* libdist takes ownership of *out_spec, a spec as from dist_cluster_spec_create() */
  dist_status (*spec)(dist_cluster_spec **out_spec, void *user_data);
  dist_status (*task_type)(char *out_text, size_t size_bytes, int32_t *out_is_set, void *user_data);
  dist_status (*task_id)(int32_t *out_task_id, void *user_data); /* DIST_TASK_UNSET = not known */
  dist_status (*rpc_layer)(char *out_text, size_t size_bytes, int32_t *out_is_set, void *user_data);
  dist_status (*environment)(char *out_text, size_t size_bytes, int32_t *out_is_set, void *user_data);
  /* like dist_cluster_resolver_master(). NULL = the address of the task, or "" if no task is given */
  dist_status (*address)(const char *task_type, int32_t task_id, const char *rpc_layer, char *out_text,
                         size_t size_bytes, void *user_data);
  dist_status (*num_accelerators)(const char *task_type, int32_t task_id, int32_t *out_n, void *user_data);
  /* called once with user_data when the resolver is destroyed; not if its creation fails */
  dist_release_fn release;
} dist_cluster_resolver_functions;
#define DIST_CLUSTER_RESOLVER_FUNCTIONS_INIT \
  { sizeof(dist_cluster_resolver_functions), 0, 0, 0, 0, 0, 0, 0, 0, 0 }

/** Initializes a dist_cluster_resolver_functions to its defaults, like dist_strategy_options_init(). */
DIST_API void dist_cluster_resolver_functions_init(dist_cluster_resolver_functions *functions,
                                                   uint32_t struct_size_bytes);

/**
 * Creates a resolver from your own functions.
 *
 * Owns     The table is copied; user_data must stay valid until `release` is called. The caller owns *out_resolver and
 *          destroys it with dist_cluster_resolver_destroy().
 * Errors   INVALID_ARGUMENT    functions, spec or out_resolver is NULL; options like in
 *                              dist_cluster_resolver_create_simple().
 *          RESOURCE_EXHAUSTED  out of memory.
 */
DIST_API DIST_NODISCARD dist_status dist_cluster_resolver_create_host(
    const dist_cluster_resolver_functions *functions, void *user_data,
    const dist_cluster_resolver_options *options, dist_cluster_resolver **out_resolver);

/**
 * Destroys the caller's handle. Strategies and unions that use the resolver keep it. Does nothing if `resolver` is
 * NULL.
 *
 * Context  Any, serialized.
 * Owns     Takes ownership of the resolver.
 */
DIST_API void dist_cluster_resolver_destroy(dist_cluster_resolver *resolver);

/**
 * Returns the spec of the cluster.
 *
 * Blocks   Only while one of your resolver functions runs.
 * Owns     The caller owns *out_spec and destroys it with dist_cluster_spec_destroy(). A simple resolver returns the
 *          spec that it was created with, and your function returns its own, each with its own allocator; other
 *          resolvers create the spec with their allocator.
 * Errors   INVALID_ARGUMENT    an argument is NULL; TF_CONFIG is not JSON or has an invalid cluster; the specs of a
 *                              union cannot be merged; your function returned no spec.
 *          RESOURCE_EXHAUSTED  out of memory.
 *          any                 the status that your resolver function returned.
 */
DIST_API DIST_NODISCARD dist_status dist_cluster_resolver_spec(const dist_cluster_resolver *resolver,
                                                               dist_cluster_spec **out_spec);

/**
 * Writes the job of this process as a NUL-terminated text. If it is not known, *out_is_set is 0 and the text is "".
 *
 * Blocks   Like dist_cluster_resolver_spec().
 * Errors   INVALID_ARGUMENT    an argument is NULL; TF_CONFIG is not JSON or has an invalid task; size_bytes is too
 *                              small. A text never needs more than DIST_MAX_ADDRESS_BYTES.
 *          RESOURCE_EXHAUSTED  out of memory.
 *          any                 the status that your resolver function returned.
 */
DIST_API DIST_NODISCARD dist_status dist_cluster_resolver_task_type(const dist_cluster_resolver *resolver,
                                                                    char *out_text, size_t size_bytes,
                                                                    int32_t *out_is_set);

/**
 * Returns the index of this process in its job, or DIST_TASK_UNSET if it is not known.
 *
 * Blocks   Like dist_cluster_resolver_spec().
 * Errors   Like dist_cluster_resolver_task_type().
 */
DIST_API DIST_NODISCARD dist_status dist_cluster_resolver_task_id(const dist_cluster_resolver *resolver,
                                                                  int32_t *out_task_id);

/**
 * Writes the RPC layer as a NUL-terminated text. If it is not set, *out_is_set is 0 and the text is "".
 *
 * Blocks   Like dist_cluster_resolver_spec().
 * Errors   Like dist_cluster_resolver_task_type().
 */
DIST_API DIST_NODISCARD dist_status dist_cluster_resolver_rpc_layer(const dist_cluster_resolver *resolver,
                                                                    char *out_text, size_t size_bytes,
                                                                    int32_t *out_is_set);

/**
 * Writes the platform on which the cluster runs as a NUL-terminated text. By default it is not set for TF_CONFIG
 * (*out_is_set is 0), and "" for the other resolvers.
 *
 * Blocks   Like dist_cluster_resolver_spec().
 * Errors   Like dist_cluster_resolver_task_type().
 */
DIST_API DIST_NODISCARD dist_status dist_cluster_resolver_environment(const dist_cluster_resolver *resolver,
                                                                      char *out_text, size_t size_bytes,
                                                                      int32_t *out_is_set);

/**
 * Writes the address to connect to: "grpc://host:port", or "host:port" without an RPC layer. `rpc_layer` "" selects no
 * layer; NULL selects that of the resolver.
 *
 * `task_type` and `task_id` select a task. If one of them is not set (NULL, DIST_TASK_UNSET), the address is:
 *
 *     simple              session_address or "", after the RPC layer: with "grpc" and "" it is "grpc://" (TensorFlow)
 *     union               that of its first resolver, with the RPC layer of that one unless `rpc_layer` is given
 *     TF_CONFIG           that of the task, with the missing type or id taken from this process
 *     Slurm, Kubernetes   that of this process, or "" if its task is not known
 *     your functions      the result of address(), or else as for simple without a session_address
 *
 * If a union is asked for a task and `rpc_layer` is NULL, the layer is the union's own option, or none if that is not
 * set.
 *
 * With TF_CONFIG, "session_master" takes precedence over everything else and is returned unchanged. Without it, the
 * address is "" if the cluster has no jobs, as with {}, or only one task.
 *
 * Blocks   Like dist_cluster_resolver_spec().
 * Errors   INVALID_ARGUMENT    an error of dist_cluster_resolver_task_type(); the task does not exist.
 *          RESOURCE_EXHAUSTED  out of memory.
 *          any                 the status that your resolver function returned.
 */
DIST_API DIST_NODISCARD dist_status dist_cluster_resolver_master(const dist_cluster_resolver *resolver,
                                                                 const char *task_type, int32_t task_id,
                                                                 const char *rpc_layer, char *out_text,
                                                                 size_t size_bytes);

/**
 * Returns the number of accelerators of a task (NULL, DIST_TASK_UNSET = this process): the number in options, or
 * gpus_per_task under Slurm, or else 0, because the devices of libdist are host CPUs.
 *
 * With TF_CONFIG, the task must exist in the cluster, unless options set the number, TF_CONFIG has "session_master", or
 * the cluster has no jobs or only one task.
 *
 * Blocks   Like dist_cluster_resolver_spec().
 * Errors   Like dist_cluster_resolver_master().
 */
DIST_API DIST_NODISCARD dist_status dist_cluster_resolver_num_accelerators(
    const dist_cluster_resolver *resolver, const char *task_type, int32_t task_id, int32_t *out_n);

/**
 * Writes the GPUs of this process in the format of CUDA_VISIBLE_DEVICES, "2,3"; "" if the resolver distributes no GPUs,
 * whatever the rank is. libdist does not change the environment; your program sets the variable if it needs it.
 *
 * Errors   INVALID_ARGUMENT  an argument is NULL; the rank is not one of the Slurm step's; size_bytes is too small; the
 *                            list of GPUs needs DIST_MAX_ADDRESS_BYTES or more.
 */
DIST_API DIST_NODISCARD dist_status dist_cluster_resolver_gpu_ids(const dist_cluster_resolver *resolver,
                                                                  char *out_text, size_t size_bytes);

/**
 * Writes a description of each decision and its source: an option, the environment variable, or a default. The text
 * consists of lines "subject: words" for human readers; the wording may change in any version. If something cannot be
 * decided, a line states the reason.
 *
 * Blocks   Like dist_cluster_resolver_spec(), and while fn runs.
 * Errors   INVALID_ARGUMENT    an argument is NULL.
 *          RESOURCE_EXHAUSTED  out of memory.
 */
DIST_API DIST_NODISCARD dist_status dist_cluster_explain(const dist_cluster_resolver *resolver,
                                                         dist_text_fn fn, void *user_data);

#ifdef __cplusplus
}
#endif
#endif /* DIST_CLUSTER_RESOLVER_H */
