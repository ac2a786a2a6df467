/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file
 * Types and constants that all other headers use: status codes, element types, reduction operators, tensors, handles,
 * and the host's allocator, log and clock. This header declares no functions. The value of a constant never changes.
 *
 * **How functions are documented.** The comment of a function states only what differs from these defaults:
 *
 *     Context  Any, concurrent: callable inside and outside replicas, and from several threads at once.
 *     Blocks   Never.
 *     Owns     Nothing: arguments are used only during the call, and the caller has nothing to release.
 *     Errors   None.
 *     Since    0.1
 *
 * The context is *Strategy* (the cross-replica context: outside the replica function, or inside a merge function),
 * *Replica* (inside the replica function, with that replica's own handle), or *Any* (either). *Serialized* means any
 * thread, but only one call at a time on the same object. Functions that take tensors also state their *Shape*, and the
 * *Order* of additions, which determines the bits of a sum.
 */
#ifndef DIST_TYPES_H
#define DIST_TYPES_H

#include <stddef.h>
#include <stdint.h>

/* ---- Attributes (empty for SWIG, which does not parse them) -------------------------------------- */

#if defined(SWIG) || defined(DIST_STATIC) || !defined(__GNUC__)
#define DIST_API
#else
#define DIST_API __attribute__((visibility("default")))
#endif

#if defined(SWIG) || !defined(__GNUC__)
#define DIST_NODISCARD
#else
#define DIST_NODISCARD __attribute__((warn_unused_result))
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Status ---------------------------------------------------------------------------------------- */

/**
 * The result of a call: DIST_OK (0), or the reason for the failure. The numbers are those of Abseil, gRPC and
 * TensorFlow. Later versions may return other numbers: treat an unknown number like DIST_INTERNAL.
 */
typedef int32_t dist_status;
enum {
  DIST_OK = 0,
  DIST_CANCELLED = 1,           /* a cancel object, dist_strategy_cancel() or a similar call ended it */
  DIST_UNKNOWN = 2,             /* a host callback failed with a code of its own */
  DIST_INVALID_ARGUMENT = 3,    /* the arguments are wrong, regardless of the state (Python: ValueError) */
  DIST_DEADLINE_EXCEEDED = 4,   /* a peer did not arrive, or the run did not end, in time */
  DIST_NOT_FOUND = 5,           /* no such key, name or file */
  DIST_ALREADY_EXISTS = 6,      /* the name is already in use */
  DIST_PERMISSION_DENIED = 7,   /* the operating system denied access */
  DIST_RESOURCE_EXHAUSTED = 8,  /* out of memory, or a thread could not be created */
  DIST_FAILED_PRECONDITION = 9, /* valid arguments, but not allowed in this state (Python: RuntimeError) */
  DIST_ABORTED = 10,            /* a peer failed first; the report names it */
  DIST_OUT_OF_RANGE = 11,       /* past the end: a source or a file has no more elements */
  DIST_UNIMPLEMENTED = 12,      /* not supported by this strategy, dtype or build */
  DIST_INTERNAL = 13,           /* a bug in libdist: please report it */
  DIST_UNAVAILABLE = 14,        /* a worker or service cannot be reached */
  DIST_DATA_LOSS = 15           /* a file or message is truncated or corrupt */
};

/* ---- Elements -------------------------------------------------------------------------------------- */

/** The element type of a tensor. 0 is not a type, so that a forgotten field is reported as an error. */
typedef int32_t dist_dtype;
enum {
  DIST_F16 = 1,  /* IEEE 754 binary16 */
  DIST_BF16 = 2, /* bfloat16: the upper half of a binary32 */
  DIST_F32 = 3,
  DIST_F64 = 4,
  DIST_I8 = 5,
  DIST_U8 = 6,
  DIST_I16 = 7,
  DIST_U16 = 8,
  DIST_I32 = 9,
  DIST_U32 = 10,
  DIST_I64 = 11,
  DIST_U64 = 12,
  DIST_COMPLEX64 = 13, /* two F32: real, imaginary */
  DIST_BOOL = 14       /* one byte: 0 is false, anything else is true; libdist writes 0 or 1 */
};

/** The operator of a reduction. 0 is not an operator. */
typedef int32_t dist_reduce_op;
enum {
  DIST_REDUCE_SUM = 1,
  DIST_REDUCE_MEAN = 2,
  DIST_REDUCE_MIN = 3,
  DIST_REDUCE_MAX = 4,
  DIST_REDUCE_PROD = 5,
  DIST_REDUCE_USER = 6 /* the host's own operator: dist_collective_options.reduce_fn */
};

/* ---- Kinds ------------------------------------------------------------------------------------------- */

/** The collective that an error is about; 0 = none. */
enum {
  DIST_COLLECTIVE_NONE = 0,
  DIST_COLLECTIVE_ALL_REDUCE = 1,
  DIST_COLLECTIVE_BROADCAST = 2,
  DIST_COLLECTIVE_BARRIER = 3,
  DIST_COLLECTIVE_MERGE_CALL = 4,
  /* the end of the replica function, where all replicas also wait for each other */
  DIST_COLLECTIVE_RETURN = 5,
  DIST_COLLECTIVE_REDUCE = 6,
  DIST_COLLECTIVE_REDUCE_SCATTER = 7,
  DIST_COLLECTIVE_ALL_GATHER = 8,
  DIST_COLLECTIVE_GATHER = 9,
  DIST_COLLECTIVE_SCATTER = 10,
  DIST_COLLECTIVE_ALL_TO_ALL = 11,
  DIST_COLLECTIVE_SCAN = 12,
  DIST_COLLECTIVE_PERMUTE = 13,
  DIST_COLLECTIVE_REDUCE_APPLY = 14,
  DIST_COLLECTIVE_HALO_EXCHANGE = 15,
  DIST_COLLECTIVE_RESHARD = 16
};

/** The order of additions in a sum, which determines its bits. */
enum {
  DIST_NUMERICS_ORDERED = 0, /* added in the order of replica ids */
  /* added exactly and rounded once: independent of the order and of how replicas share the terms */
  DIST_NUMERICS_REPRODUCIBLE = 1,
  /* added in pairs, pairs of pairs and so on, by replica id: cheapest over many workers */
  DIST_NUMERICS_TREE = 2
};

/** The first term of a scan. */
enum {
  DIST_SCAN_INCLUSIVE = 0, /* the result of replica r includes its own contribution */
  DIST_SCAN_EXCLUSIVE = 1  /* the result of replica r covers replicas 0 .. r-1 only */
};

/** The kind of a strategy, which determines where values and variables are placed. */
enum {
  DIST_STRATEGY_MIRRORED = 0,        /* R replicas; every variable has R equal copies */
  DIST_STRATEGY_ONE_DEVICE = 1,      /* one replica, for programs that run on one or on many */
  DIST_STRATEGY_DEFAULT = 2,         /* one replica; used by programs that do not choose a strategy */
  DIST_STRATEGY_CENTRAL_STORAGE = 3, /* R replicas; every variable has one copy, which all replicas read */
  /* like MIRRORED; replicas consist of logical devices (TPUStrategy) */
  DIST_STRATEGY_MESH = 4,
  DIST_STRATEGY_MULTI_WORKER_MIRRORED = 5, /* like MIRRORED, with replicas in all workers of a cluster */
  DIST_STRATEGY_PARAMETER_SERVER = 6       /* variables on servers; a coordinator runs closures on workers */
};

/** The threads that run the replicas. */
enum {
  DIST_THREADS_CALLER = 0,  /* the caller of dist_run() is replica 0; the others are library threads */
  DIST_THREADS_LIBRARY = 1, /* all replicas are library threads; the caller of dist_run() waits */
  DIST_THREADS_HOST = 2     /* no library threads: host threads join with dist_replica_enter() */
};

/**
 * The transport between workers that are separate processes; workers.h lists the environment variables for it.
 * Link modules have further values: dist/experimental/links.h.
 */
enum {
  /* the one named by DIST_TRANSPORT; else GRPC, or NONE for host names without TLS and DIST_PLAINTEXT. If none is named,
     workers of one machine and user exchange data through shared memory */
  DIST_TRANSPORT_AUTO = 0,
  DIST_TRANSPORT_NONE = 1, /* no transport: the first call that needs another worker fails with UNAVAILABLE */
  DIST_TRANSPORT_GRPC = 2, /* over gRPC, between the addresses in the cluster, also within one machine */
  DIST_TRANSPORT_GLOO = 3  /* control over gRPC, data over Gloo: not encrypted, on additional ports */
};

/** The time at which workers re-form after some were lost or have joined: dist_strategy_reform(). */
enum {
  DIST_REFORM_EXPLICIT = 0,   /* when dist_strategy_reform() is called */
  DIST_REFORM_AT_NEXT_RUN = 1 /* also at the start of a run, if it is due */
};

/** The placement of library threads on CPUs. */
enum {
  DIST_PLACEMENT_FREE = 0, /* the operating system decides */
  /* each library thread is pinned to one CPU; the caller's thread is not moved. libdist picks, when the strategy is
     created, the CPUs with the fewest pinned library threads of this process; among those it prefers one per physical
     core, then neighbours, so strategies share CPUs only if there are too few. With a device assignment made from
     dist_topology_from_host(), the assignment names the CPUs instead: dist_topology_cpu_at() */
  DIST_PLACEMENT_CORES = 1
};

/** The kind of a value. */
enum {
  DIST_VALUE_TENSOR = 1,
  DIST_VALUE_PER_REPLICA = 2, /* one value for each replica */
  DIST_VALUE_MIRRORED = 3,    /* one value for each replica, all known to be equal */
  DIST_VALUE_LIST = 4,
  DIST_VALUE_DICT = 5, /* keys are text, sorted by their bytes */
  DIST_VALUE_VARIABLE = 6,
  DIST_VALUE_NONE = 7,  /* nothing; all such values count as the same value */
  DIST_VALUE_TUPLE = 8, /* like a list, but the two kinds do not merge with each other */
  DIST_VALUE_TEXT = 9,
  DIST_VALUE_OBJECT = 10,         /* a host pointer, passed through */
  DIST_VALUE_INDEXED_SLICES = 11, /* rows of a larger tensor: values, indices, dense shape */
  DIST_VALUE_RAGGED = 12,         /* rows of different lengths: values, and one or more row splits */
  DIST_VALUE_SPARSE = 13,         /* single elements of a tensor: indices, values, dense shape */
  /* a tensor, with the part of it that each logical device of a replica holds */
  DIST_VALUE_SHARDED = 14
};

/** The time at which the copies of a variable are combined (TensorFlow: VariableSynchronization). */
enum {
  DIST_SYNCHRONIZATION_AUTO = 0, /* the strategy decides: on writing */
  DIST_SYNCHRONIZATION_NONE = 1,
  /* an assignment inside replicas is aggregated, and all copies stay equal */
  DIST_SYNCHRONIZATION_ON_WRITE = 2,
  /* each replica writes its own copy; a read from outside aggregates the copies */
  DIST_SYNCHRONIZATION_ON_READ = 3
};

/** The aggregation of the R values that replicas assign to a variable (TensorFlow: VariableAggregation). */
enum {
  DIST_AGGREGATION_NONE = 0, /* not combined: each replica writes its own copy */
  DIST_AGGREGATION_SUM = 1,
  DIST_AGGREGATION_MEAN = 2,
  DIST_AGGREGATION_ONLY_FIRST_REPLICA = 3 /* all copies get replica 0's value */
};

/** The way in which an assignment changes a variable. */
enum { DIST_ASSIGN = 1, DIST_ASSIGN_ADD = 2, DIST_ASSIGN_SUB = 3 };

/**
 * The collective implementation that a program asks for (TensorFlow: CommunicationImplementation). It does not change
 * the bits.
 */
enum {
  DIST_COMMUNICATION_AUTO = 0,
  DIST_COMMUNICATION_RING = 1,
  DIST_COMMUNICATION_NCCL = 2 /* accepted, but libdist uses its own implementation: devices are host CPUs */
};

/** The number of pipelines that produce batches (TensorFlow: InputReplicationMode). */
enum {
  DIST_INPUT_PER_WORKER = 0, /* one pipeline; its elements are divided among the replicas */
  DIST_INPUT_PER_REPLICA = 1 /* one pipeline per replica */
};

/** The way in which a dataset is divided among workers (TensorFlow: AutoShardPolicy). */
enum {
  DIST_SHARD_OFF = -1, /* every worker sees all elements */
  DIST_SHARD_AUTO = 0, /* FILE if the source reads files, else DATA */
  DIST_SHARD_FILE = 1, /* file i goes to worker i mod W */
  DIST_SHARD_DATA = 2, /* element i goes to worker i mod W */
  DIST_SHARD_HINT = 3  /* as the source requests with its shard_hint option */
};

/** The order of replicas and their logical devices in a mesh (TensorFlow: DeviceOrderMode). */
enum {
  DIST_DEVICE_ORDER_AUTO = 0, /* rings if they fit, else blocks */
  DIST_DEVICE_ORDER_RING = 1, /* each is a neighbour of the next; an error if that is impossible */
  DIST_DEVICE_ORDER_MESH = 2  /* blocks */
};

/**
 * The timeout that means "no limit". Timeouts are in nanoseconds and follow two rules. In an option struct, 0 selects
 * the documented default, and DIST_NO_TIMEOUT disables the timeout. As a parameter of a function that waits, 0 does not
 * wait, like in poll(2), and DIST_NO_TIMEOUT waits without limit. Other negative values fail with INVALID_ARGUMENT. The
 * only exception is dist_communication_options.timeout_ns, which has TensorFlow's rule.
 */
enum { DIST_NO_TIMEOUT = -1 };

/* ---- Limits ---------------------------------------------------------------------------------------- */

enum {
  DIST_MAX_NDIM = 16,      /* dimensions of a tensor */
  DIST_MAX_TAG_BYTES = 48, /* bytes of a tag, including its NUL; longer tags are truncated */
  /* positions in a topology's mesh, and devices of a topology or an assignment */
  DIST_MAX_MESH_POSITIONS = 1048576
};

/* ---- Tensors --------------------------------------------------------------------------------------- */

/**
 * A view of the caller's memory: `ndim` dimensions of `shape[i]` elements each, `strides[i]` elements apart. libdist
 * does not keep a view after the call that takes it, unless the description of the call says so.
 *
 *     shape    may be NULL if ndim is 0 (a scalar: one element)
 *     strides  in elements; NULL = row-major without gaps. A negative stride runs backwards; a stride of 0 repeats one
 *              element and is allowed only for tensors that are read
 *     data     may be NULL only if the tensor has no elements
 */
typedef struct dist_tensor {
  void *data;
  dist_dtype dtype;
  int32_t ndim;
  const int64_t *shape;
  const int64_t *strides;
} dist_tensor;

/* ---- What the host may supply ---------------------------------------------------------------------- */

/**
 * The host's memory allocator. `alloc` returns NULL if no memory is available; `align_bytes` is a power of two. Both
 * functions are called from any thread, also concurrently, and must not call libdist.
 */
typedef struct dist_allocator {
  void *(*alloc)(size_t size_bytes, size_t align_bytes, void *user_data);
  void (*free)(void *memory, size_t size_bytes, size_t align_bytes, void *user_data);
  void *user_data;
} dist_allocator;

/** Called when libdist no longer uses the caller's memory or user_data, on the thread that used it last. */
typedef void (*dist_release_fn)(void *user_data);

/** The severity of a log line. */
enum { DIST_LOG_ERROR = 1, DIST_LOG_WARNING = 2, DIST_LOG_INFO = 3 };

/**
 * Receives one complete UTF-8 line without a newline. Called from any thread; must not call libdist: functions that
 * return a status fail there with FAILED_PRECONDITION.
 */
typedef void (*dist_log_fn)(int32_t level, const char *message, void *user_data);

/**
 * Returns a time in nanoseconds that never decreases; the starting point is arbitrary. Called from any thread; must not
 * call libdist, like dist_log_fn.
 */
typedef int64_t (*dist_clock_fn)(void *user_data);

/**
 * The host's own reduction operator, for DIST_REDUCE_USER and DIST_CROSS_DEVICE_REDUCTION_TO_ONE_DEVICE.
 *
 *     for i in 0 .. count-1:   acc[i] = op(acc[i], in[i])
 *
 * `count` is the number of elements of the operator. Their size is that of the dtype, or reduce_element_bytes
 * (accumulate_element_bytes) if that is set; libdist never splits such an element. The function is called on parts of
 * tensors, from several threads. Its result must not depend on how a tensor is split. It must not call libdist:
 * functions that return a status fail there with FAILED_PRECONDITION.
 */
typedef void (*dist_reduce_fn)(void *acc, const void *in, int64_t count, dist_dtype dtype, void *user_data);

/**
 * The host's own reduction of values outside runs, for dist_strategy_functions and dist_cross_device_functions: *out =
 * components[0] op ... op components[n-1]. libdist has already allocated *out, with the shape of the components and the
 * dtype of their MEAN.
 */
typedef dist_status (*dist_reduce_values_fn)(dist_reduce_op op, const dist_tensor *components, size_t n,
                                             dist_tensor *out, void *user_data);

/**
 * The host's own broadcast of values outside runs: copies[r] = *value, for r in 0 .. n-1. libdist has allocated the
 * copies.
 */
typedef dist_status (*dist_broadcast_values_fn)(const dist_tensor *value, dist_tensor *copies, size_t n,
                                                void *user_data);

/**
 * The host's own concatenation of values outside runs: *out = the components one after another along `axis`, which is
 * at least 0. libdist has allocated *out.
 */
typedef dist_status (*dist_gather_values_fn)(const dist_tensor *components, size_t n, int32_t axis,
                                             dist_tensor *out, void *user_data);

/**
 * Receives the next piece of a text: UTF-8, not NUL-terminated. Called on the caller's thread before the call that
 * received the function returns. It must not throw and must not destroy the strategy.
 */
typedef void (*dist_text_fn)(const char *text, size_t size_bytes, void *user_data);

/* ---- Handles ---------------------------------------------------------------------------------------- */

/** A set of R replicas, their threads and their group. */
typedef struct dist_strategy dist_strategy;
/** One running copy of the host's function: its id, and its side of every collective. */
typedef struct dist_replica dist_replica;
/** A subset of a strategy's replicas, which runs collectives without the others. */
typedef struct dist_group dist_group;
/** An asynchronous or planned collective. */
typedef struct dist_work dist_work;
/** A handle with which any thread can cancel runs, collectives and works. */
typedef struct dist_cancel dist_cancel;
/** A tensor, a list or dictionary of values, or one value for each replica. Immutable and reference-counted. */
typedef struct dist_value dist_value;
/** A tensor that outlives runs, with one copy for each replica. */
typedef struct dist_variable dist_variable;
/** A source of batches, each split over the replicas. */
typedef struct dist_dataset dist_dataset;
/** One pass over a dataset. */
typedef struct dist_iterator dist_iterator;
/** The implementation that reduces, broadcasts and gathers values outside runs. Immutable and reference-counted. */
typedef struct dist_cross_device dist_cross_device;
/** A mesh of devices and their positions in it. Immutable. */
typedef struct dist_topology dist_topology;
/** A mapping of a topology's devices to the logical devices of each replica. Immutable. */
typedef struct dist_device_assignment dist_device_assignment;
/** A description of a cluster of processes: cluster.h. */
typedef struct dist_cluster_resolver dist_cluster_resolver;
/** The connection between workers: workers.h. */
typedef struct dist_network dist_network;
/** A limit on the threads that several strategies share: budget.h. */
typedef struct dist_budget dist_budget;

/** The operator of a scatter: row indices[k] of the variable becomes op(that row, values[k]). */
enum {
  DIST_SCATTER_ADD = 1,
  DIST_SCATTER_SUB = 2,
  DIST_SCATTER_UPDATE = 3, /* the row is replaced; if an index occurs twice, the last one wins */
  DIST_SCATTER_MUL = 4,
  DIST_SCATTER_DIV = 5,
  DIST_SCATTER_MIN = 6,
  DIST_SCATTER_MAX = 7,
  /* UPDATE below leading dimensions that indices, values and the variable share */
  DIST_SCATTER_BATCH_UPDATE = 8
};

/** The implementation that reduces values outside runs (TensorFlow: CrossDeviceOps). Only HOST can change the bits. */
enum {
  DIST_CROSS_DEVICE_DEFAULT = 0,
  DIST_CROSS_DEVICE_REDUCTION_TO_ONE_DEVICE = 1, /* uses the host's operator, if one is set */
  DIST_CROSS_DEVICE_HIERARCHICAL_COPY = 2,
  DIST_CROSS_DEVICE_NCCL = 3,
  DIST_CROSS_DEVICE_HOST = 5 /* the host's own functions */
};

/** The number that a metric computes over all updates of all replicas. */
enum {
  DIST_METRIC_SUM = 1,
  DIST_METRIC_MEAN = 2,    /* weighted if weights are given */
  DIST_METRIC_ACCURACY = 3 /* the fraction of predictions that equal their labels */
};

/** The way in which dist_reduce_apply() uses a reduced gradient. */
enum {
  DIST_APPLY_SGD = 1,     /* the built-in gradient descent, with momentum */
  DIST_APPLY_CALLBACK = 2 /* the host's function */
};

/** The way in which a tensor is distributed over the logical devices of a replica. */
enum {
  DIST_PARTITION_SPLIT = 0,    /* each device has one tile */
  DIST_PARTITION_ASSIGN = 1,   /* one device has the whole tensor, the others have nothing */
  DIST_PARTITION_REPLICATE = 2 /* each device has the whole tensor */
};

/** The content of a halo beyond the edge of the whole tensor; the elements of that dimension are 0 .. n-1. */
enum {
  DIST_EDGE_ZERO = 0,    /* zeros */
  DIST_EDGE_WRAP = 1,    /* from the other end: -1 is n-1 */
  DIST_EDGE_CLAMP = 2,   /* the last element, repeated: -1 is 0 */
  DIST_EDGE_REFLECT = 3, /* mirrored at the last element: -1 is 1 */
  DIST_EDGE_NONE = 4     /* nothing: the result ends at the edge */
};

/** The task index that means "not set". */
enum { DIST_TASK_UNSET = -2147483648 };

/** Limits on descriptions of a cluster, which may come from outside the process. Sizes of texts include the NUL. */
enum {
  DIST_MAX_CLUSTER_TEXT_BYTES = 1048576, /* a JSON text, or a list of hosts */
  DIST_MAX_CLUSTER_DEPTH = 32,           /* nesting depth of objects and lists */
  DIST_MAX_CLUSTER_JOBS = 64,
  DIST_MAX_CLUSTER_TASKS = 65536, /* tasks of all jobs together */
  DIST_MAX_CLUSTER_MEMBERS = 64,  /* resolvers or specs of a union, and nesting depth of unions */
  DIST_MAX_JOB_NAME_BYTES = 128,
  DIST_MAX_ADDRESS_BYTES = 512 /* an address, and the other texts that resolvers return */
};

/** A part of one tensor for the callback of dist_reduce_apply(): its elements first .. first + count - 1. */
typedef struct dist_block {
  size_t tensor; /* index in the list */
  int64_t first;
  int64_t count;
  dist_dtype dtype;
  int32_t num_states;
  const void *gradient; /* count elements; reduced, and scaled by gradient clipping */
  void *parameter;      /* count elements, to be updated in place */
  void *const *states;  /* num_states arrays of count elements each, to be updated in place */
} dist_block;

/** Updates a parameter from its gradient. Called concurrently on different parts; must not call libdist. */
typedef void (*dist_apply_fn)(const dist_block *block, void *user_data);

/** The jobs of a cluster, their tasks, and the address of each task. Immutable. */
typedef struct dist_cluster_spec dist_cluster_spec;
/** A number accumulated over the updates of all replicas, step after step. */
typedef struct dist_metric dist_metric;
/** A file of tensors, open for reading. */
typedef struct dist_checkpoint dist_checkpoint;

#ifdef __cplusplus
}
#endif
#endif /* DIST_TYPES_H */
