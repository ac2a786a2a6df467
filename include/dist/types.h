/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file
 * The vocabulary that libdist's core and its C ABI share: status codes, element types, reduction operators, tensors,
 * handles, and the host's allocator, log and clock. No function is declared here. Every numeric constant is part of the
 * ABI and never changes.
 *
 * Each header declares the baseline first: what programs may rely on. Until strategies of many workers are there it is
 * provisional, and a version may still change it, as CHANGELOG.md then says. Below that, where DIST_EXPERIMENTAL is
 * defined before the include, stands what is experimental: it may change or go in any version. A header that was
 * included without the macro may be included again with it, which adds the experimental part. libdist.so has it all.
 *
 * How functions are documented, in all headers: a field says what differs from
 *
 *     Context  Any, concurrent: inside and outside of replicas, from several threads at once.
 *     Blocks   Never.
 *     Owns     Nothing: what comes in is used during the call, and nothing comes out that has to be ended.
 *     Errors   None.
 *     Since    0.1
 *
 * A context is Strategy, the cross-replica context; Replica, inside the replica function, with that replica's own handle;
 * or Any, either. "Serialized" is from any thread, but one call at a time on the same object. Functions that take tensors
 * also say the Shape, and the Order of additions, on which the bits of a sum depend.
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
 * What a call came to: DIST_OK (0), or why it failed. The numbers are those of Abseil, gRPC and
 * TensorFlow. Unknown numbers may come from later versions: treat them like DIST_INTERNAL.
 */
typedef int32_t dist_status;
enum {
  DIST_OK = 0,
  DIST_CANCELLED = 1,           /* a cancel object, dist_strategy_cancel() or the like ended it */
  DIST_UNKNOWN = 2,             /* a host callback failed with a code of its own */
  DIST_INVALID_ARGUMENT = 3,    /* the arguments are wrong whatever the state (Python: ValueError) */
  DIST_DEADLINE_EXCEEDED = 4,   /* a peer did not arrive, or the run did not end, in time */
  DIST_NOT_FOUND = 5,           /* no such key, name or file */
  DIST_ALREADY_EXISTS = 6,      /* a name is taken */
  DIST_PERMISSION_DENIED = 7,   /* the system refuses */
  DIST_RESOURCE_EXHAUSTED = 8,  /* no memory, or no thread could be made */
  DIST_FAILED_PRECONDITION = 9, /* right arguments, wrong moment (Python: RuntimeError) */
  DIST_ABORTED = 10,            /* a peer failed first; the report names it */
  DIST_OUT_OF_RANGE = 11,       /* past the end: a dataset has no further batch */
  DIST_UNIMPLEMENTED = 12,      /* not offered by this strategy, dtype or build */
  DIST_INTERNAL = 13,           /* a defect of libdist: please report it */
  DIST_UNAVAILABLE = 14,        /* a worker or service cannot be reached */
  DIST_DATA_LOSS = 15           /* a file or message is cut short or corrupt */
};

/* ---- Elements -------------------------------------------------------------------------------------- */

/** The type of a tensor's elements. 0 is no type, so that a forgotten field is an error. */
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
  DIST_BOOL = 14       /* one byte: 0 is false, all else true; written as 0 or 1 */
};

/** How contributions become one. 0 is no operator. */
typedef int32_t dist_reduce_op;
enum {
  DIST_REDUCE_SUM = 1,
  DIST_REDUCE_MEAN = 2,
  DIST_REDUCE_MIN = 3,
  DIST_REDUCE_MAX = 4,
  DIST_REDUCE_PROD = 5,
  DIST_REDUCE_USER = 6 /* the host's own: dist_collective_options.reduce_fn */
};

/* ---- Kinds ------------------------------------------------------------------------------------------- */

/** Which collective an error speaks of. 0: none. */
enum {
  DIST_COLLECTIVE_NONE = 0,
  DIST_COLLECTIVE_ALL_REDUCE = 1,
  DIST_COLLECTIVE_BROADCAST = 2,
  DIST_COLLECTIVE_BARRIER = 3,
  DIST_COLLECTIVE_MERGE_CALL = 4,
  DIST_COLLECTIVE_RETURN = 5, /* the end of the replica function, where all meet too */
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

/** What the bits of a sum depend on. */
enum {
  DIST_NUMERICS_ORDERED = 0, /* the contributions in the order of replica ids */
  DIST_NUMERICS_REPRODUCIBLE =
      1, /* the contributions alone, whoever brings them: added exactly, rounded once */
  DIST_NUMERICS_TREE =
      2 /* as ORDERED, but in pairs, pairs of pairs and so on: what costs least over many workers */
};

/** Where a scan begins. */
enum {
  DIST_SCAN_INCLUSIVE = 0, /* replica r's own contribution is in its result */
  DIST_SCAN_EXCLUSIVE = 1  /* only those of replicas 0 .. r-1 are */
};

/** How values and variables are placed. */
enum {
  DIST_STRATEGY_MIRRORED = 0,        /* R replicas; every variable has R equal copies */
  DIST_STRATEGY_ONE_DEVICE = 1,      /* one replica, for programs that run on one or many */
  DIST_STRATEGY_DEFAULT = 2,         /* one replica: what a program has that never chose a strategy */
  DIST_STRATEGY_CENTRAL_STORAGE = 3, /* R replicas; every variable has one copy, which all of them read */
  DIST_STRATEGY_MESH = 4,            /* as MIRRORED, of replicas made of logical devices (TPUStrategy) */
  DIST_STRATEGY_MULTI_WORKER_MIRRORED = 5, /* as MIRRORED, with replicas in all workers of a cluster */
  DIST_STRATEGY_PARAMETER_SERVER = 6       /* variables and closures of a coordinator are on servers */
};

/** On which threads the replicas run. */
enum {
  DIST_THREADS_CALLER = 0,  /* dist_run()'s caller is replica 0; the others are library threads */
  DIST_THREADS_LIBRARY = 1, /* all replicas are library threads; dist_run()'s caller waits */
  DIST_THREADS_HOST = 2     /* none: the host's threads come in by dist_replica_enter() */
};

/** How a worker reaches those that are other processes; workers.h says what the environment has to do with it. */
enum {
  DIST_TRANSPORT_AUTO =
      0, /* as DIST_TRANSPORT in the environment says, else GRPC; or NONE where that cannot be had */
  DIST_TRANSPORT_NONE = 1, /* nothing leads to them: the first call that needs one is UNAVAILABLE */
  DIST_TRANSPORT_GRPC = 2, /* gRPC, between the addresses of the cluster */
  DIST_TRANSPORT_GLOO = 3  /* the same, with data over Gloo: plain text, on further ports */
};

/** When a strategy's workers re-form, where some are lost or have come: dist_strategy_reform(). */
enum {
  DIST_REFORM_EXPLICIT = 0,   /* when dist_strategy_reform() is called */
  DIST_REFORM_AT_NEXT_RUN = 1 /* also at the begin of a run, where it is due */
};

/** Where library threads run. */
enum {
  DIST_PLACEMENT_FREE = 0, /* wherever the system puts them */
  /*
   * each on one CPU; the caller's thread stays where it is. Each gets a CPU that the fewest library threads of
   * this process are kept on when the strategy is created, of those one a physical core first, neighbours near:
   * several strategies share CPUs only where there are too few. A device assignment made from
   * dist_topology_from_host() names the CPUs instead: dist_topology_cpu_at()
   */
  DIST_PLACEMENT_CORES = 1
};

/** What a value is. */
enum {
  DIST_VALUE_TENSOR = 1,
  DIST_VALUE_PER_REPLICA = 2, /* one value for each replica */
  DIST_VALUE_MIRRORED = 3,    /* the same, known to be equal */
  DIST_VALUE_LIST = 4,
  DIST_VALUE_DICT = 5, /* keys are text, in order of their bytes */
  DIST_VALUE_VARIABLE = 6,
  DIST_VALUE_NONE = 7,  /* nothing: all of them count as the same value */
  DIST_VALUE_TUPLE = 8, /* a list of another kind: the two never merge with each other */
  DIST_VALUE_TEXT = 9,
  DIST_VALUE_OBJECT = 10,         /* a pointer of the host's, passed through */
  DIST_VALUE_INDEXED_SLICES = 11, /* rows of a larger tensor: values, indices, dense shape */
  DIST_VALUE_RAGGED = 12,         /* rows of different lengths: values, row splits (one or several) */
  DIST_VALUE_SPARSE = 13,         /* single elements of a tensor: indices, values, dense shape */
  DIST_VALUE_SHARDED = 14         /* a tensor, and which logical device of a replica has which part of it */
};

/** When the copies of a variable are brought together (TensorFlow: VariableSynchronization). */
enum {
  DIST_SYNCHRONIZATION_AUTO = 0, /* the strategy's choice: on writing */
  DIST_SYNCHRONIZATION_NONE = 1,
  DIST_SYNCHRONIZATION_ON_WRITE =
      2, /* an assignment inside replicas is aggregated, and all copies stay equal */
  DIST_SYNCHRONIZATION_ON_READ = 3 /* each replica writes its own copy; a read from outside aggregates them */
};

/** What an assignment inside replicas does with R given values (TensorFlow: VariableAggregation). */
enum {
  DIST_AGGREGATION_NONE = 0, /* each replica writes its own copy */
  DIST_AGGREGATION_SUM = 1,
  DIST_AGGREGATION_MEAN = 2,
  DIST_AGGREGATION_ONLY_FIRST_REPLICA = 3 /* replica 0's value goes to all */
};

/** How an assignment changes the variable. */
enum { DIST_ASSIGN = 1, DIST_ASSIGN_ADD = 2, DIST_ASSIGN_SUB = 3 };

/** Which implementation a program asks for (TensorFlow: CommunicationImplementation). The bits are the same. */
enum {
  DIST_COMMUNICATION_AUTO = 0,
  DIST_COMMUNICATION_RING = 1,
  DIST_COMMUNICATION_NCCL = 2 /* accepted; libdist's own, since its devices are host CPUs */
};

/** How many pipelines make the batches (TensorFlow: InputReplicationMode). */
enum {
  DIST_INPUT_PER_WORKER = 0, /* one; its elements are dealt to the replicas */
  DIST_INPUT_PER_REPLICA = 1 /* one for each replica */
};

/** How a dataset is divided between workers (TensorFlow: AutoShardPolicy). */
enum {
  DIST_SHARD_OFF = -1, /* every worker sees all */
  DIST_SHARD_AUTO = 0, /* FILE where the source reads files, else DATA */
  DIST_SHARD_FILE = 1, /* file i goes to worker i mod W */
  DIST_SHARD_DATA = 2, /* element i goes to worker i mod W */
  DIST_SHARD_HINT = 3  /* where the source says that it is to be done */
};

/** In which order replicas and their logical devices lie in a mesh (TensorFlow: DeviceOrderMode). */
enum {
  DIST_DEVICE_ORDER_AUTO = 0, /* rings where they fit, else blocks */
  DIST_DEVICE_ORDER_RING = 1, /* each a neighbour of the next; an error where they do not fit */
  DIST_DEVICE_ORDER_MESH = 2  /* blocks */
};

/* ---- Limits ---------------------------------------------------------------------------------------- */

enum {
  DIST_MAX_REPLICAS = 256,       /* of one strategy in one process */
  DIST_MAX_CONTRIBUTIONS = 1024, /* tensors in one sum, those of all replicas together */
  DIST_MAX_NDIM = 16,            /* dimensions of a tensor */
  DIST_MAX_TAG_BYTES = 48,       /* of a tag, its end included; a longer one is cut */
  DIST_MAX_MESH_POSITIONS =
      1048576 /* of a topology's mesh; also devices of a topology, or of an assignment */
};

/* ---- Tensors --------------------------------------------------------------------------------------- */

/**
 * A view of the caller's memory: `ndim` dimensions of `shape[i]` elements, `strides[i]` elements apart.
 * libdist never keeps a view past the call that takes it, unless that call says so.
 *
 *     shape    NULL where ndim is 0 (a scalar: one element)
 *     strides  in elements; NULL means row-major without gaps. Below 0 is backwards; 0, all in one place, is for
 *              tensors that are read
 *     data     NULL only where the tensor has no element
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
 * The host's memory. `alloc` returns NULL where it has none; `align` is a power of two. Called from any
 * thread, also from several at once; must not call back into libdist.
 */
typedef struct dist_allocator {
  void *user_data;
  void *(*alloc)(void *user_data, size_t size_bytes, size_t align_bytes);
  void (*free)(void *user_data, void *memory, size_t size_bytes, size_t align_bytes);
} dist_allocator;

/** Called when libdist no longer uses the caller's memory or user_data, on whichever thread that happens. */
typedef void (*dist_release_fn)(void *user_data);

/** How much a log line matters. */
enum { DIST_LOG_ERROR = 1, DIST_LOG_WARNING = 2, DIST_LOG_INFO = 3 };

/** Takes one finished UTF-8 line without a newline. Called from any thread; must not call libdist. */
typedef void (*dist_log_fn)(void *user_data, int32_t level, const char *message);

/** Nanoseconds that never go back, from any start. Called from any thread. */
typedef int64_t (*dist_clock_fn)(void *user_data);

/**
 * The host's own operator, for DIST_REDUCE_USER and DIST_CROSS_DEVICE_REDUCTION_TO_ONE_DEVICE:
 * for i in 0 .. count-1: acc[i] = op(acc[i], in[i]). `count` is of the operator's elements: of the dtype, or of
 * reduce_element_bytes (accumulate_element_bytes), and no cut is inside one. Called on pieces, from several threads; it must
 * not call libdist and must give the same bits wherever a tensor is cut.
 */
typedef void (*dist_reduce_fn)(void *acc, const void *in, size_t count, dist_dtype dtype, void *user_data);

/**
 * The host's own reduction of values from outside runs, for dist_strategy_functions and dist_cross_device_functions:
 * *out = components[0] op ... op components[n-1]. libdist has made *out, of the shape, and of the dtype that MEAN gives.
 */
typedef dist_status (*dist_reduce_values_fn)(dist_reduce_op op, const dist_tensor *components, size_t n,
                                             dist_tensor *out, void *user_data);

/** As dist_reduce_values_fn, of copies: copies[r] = *value, for each of n. */
typedef dist_status (*dist_broadcast_values_fn)(const dist_tensor *value, dist_tensor *copies, size_t n,
                                                void *user_data);

/** As dist_reduce_values_fn, of joining: *out = the components one after another along `axis`, which is 0 or more. */
typedef dist_status (*dist_gather_values_fn)(const dist_tensor *components, size_t n, int32_t axis,
                                             dist_tensor *out, void *user_data);

/**
 * Takes the next piece of a text: UTF-8 without an end mark. Called on the caller's thread, before the call that it was
 * given to returns; must not throw, and must not destroy the strategy.
 */
typedef void (*dist_text_fn)(const char *text, size_t size_bytes, void *user_data);

/* ---- Handles ---------------------------------------------------------------------------------------- */

/** R replicas, their threads and their group. */
typedef struct dist_strategy dist_strategy;
/** One copy of the host's function: its id, and its side of every collective. */
typedef struct dist_replica dist_replica;
/** Some of a strategy's replicas, which meet without the others. */
typedef struct dist_group dist_group;
/** A collective that is under way, or planned. */
typedef struct dist_work dist_work;
/** Asks runs, collectives and works to end early, from any thread. */
typedef struct dist_cancel dist_cancel;
/** A tensor, or a list or dictionary of values, or one value for each replica. Immutable, counted. */
typedef struct dist_value dist_value;
/** A tensor that outlives runs, with one copy for each replica. */
typedef struct dist_variable dist_variable;
/** A source of batches, each split over the replicas. */
typedef struct dist_dataset dist_dataset;
/** One pass over a dataset. */
typedef struct dist_iterator dist_iterator;
/** Who reduces, broadcasts and gathers values from outside runs, and how. Immutable, counted. */
typedef struct dist_cross_device dist_cross_device;
/** A mesh of devices, and where in it each is. Immutable. */
typedef struct dist_topology dist_topology;
/** Which devices of a topology are the logical devices of which replica. Immutable. */
typedef struct dist_device_assignment dist_device_assignment;
/** What describes a cluster of processes: cluster.h. */
typedef struct dist_cluster_resolver dist_cluster_resolver;
/** How workers reach each other: workers.h. */
typedef struct dist_network dist_network;
/** Threads that strategies share: budget.h. */
typedef struct dist_budget dist_budget;

#ifdef __cplusplus
}
#endif
#endif /* DIST_TYPES_H */

/* ---- Experimental: what follows may change or go in any version, as types.h says ------------------- */

#if defined(DIST_EXPERIMENTAL) && !defined(DIST_TYPES_EXPERIMENTAL_H)
#define DIST_TYPES_EXPERIMENTAL_H

#include "experimental_hints.h" /* removes them */

#ifdef __cplusplus
extern "C" {
#endif

/** How rows change a variable: row indices[k] of the variable becomes op(that row, values[k]). */
enum {
  DIST_SCATTER_ADD = 1,
  DIST_SCATTER_SUB = 2,
  DIST_SCATTER_UPDATE = 3, /* the row is replaced; of an index that comes twice the last counts */
  DIST_SCATTER_MUL = 4,
  DIST_SCATTER_DIV = 5,
  DIST_SCATTER_MIN = 6,
  DIST_SCATTER_MAX = 7,
  DIST_SCATTER_BATCH_UPDATE = 8 /* UPDATE under leading dimensions that indices, values and variable share */
};

/** Who reduces values from outside runs (TensorFlow: CrossDeviceOps). The bits are the same, but for HOST's. */
enum {
  DIST_CROSS_DEVICE_DEFAULT = 0,
  DIST_CROSS_DEVICE_REDUCTION_TO_ONE_DEVICE = 1, /* with an operator of the host's, where it gives one */
  DIST_CROSS_DEVICE_HIERARCHICAL_COPY = 2,
  DIST_CROSS_DEVICE_NCCL = 3,
  DIST_CROSS_DEVICE_HOST = 5 /* functions of the host's */
};

/** What a metric computes over all updates of all replicas. */
enum {
  DIST_METRIC_SUM = 1,
  DIST_METRIC_MEAN = 2,    /* weighted, where weights are given */
  DIST_METRIC_ACCURACY = 3 /* the share of updates whose label is the prediction */
};

/** How dist_reduce_apply() uses a reduced gradient. */
enum {
  DIST_APPLY_SGD = 1,     /* the built-in gradient descent, with momentum */
  DIST_APPLY_CALLBACK = 2 /* the host's function */
};

/** What the logical devices of a replica have of a tensor. */
enum {
  DIST_PARTITION_SPLIT = 0,    /* each a tile of it */
  DIST_PARTITION_ASSIGN = 1,   /* one has it all, the others nothing */
  DIST_PARTITION_REPLICATE = 2 /* each has all of it */
};

/** What a halo has beyond the edge of the whole tensor, of elements 0 .. n-1 in that dimension. */
enum {
  DIST_EDGE_ZERO = 0,    /* zeros */
  DIST_EDGE_WRAP = 1,    /* from the other end: -1 is n-1 */
  DIST_EDGE_CLAMP = 2,   /* the last element, again and again: -1 is 0 */
  DIST_EDGE_REFLECT = 3, /* mirrored at the last element: -1 is 1 */
  DIST_EDGE_NONE = 4     /* nothing: there the result ends */
};

/** Of tasks: none is given. */
enum { DIST_TASK_UNSET = -2147483648 };

/** Limits of what describes a cluster, which may come from outside the process. Bytes of texts count the end mark. */
enum {
  DIST_MAX_CLUSTER_TEXT_BYTES = 1048576, /* of a JSON text, or a list of hosts */
  DIST_MAX_CLUSTER_DEPTH = 32,           /* of objects and lists in each other */
  DIST_MAX_CLUSTER_JOBS = 64,
  DIST_MAX_CLUSTER_TASKS = 65536, /* of all jobs together */
  DIST_MAX_CLUSTER_MEMBERS = 64,  /* resolvers of a union, and unions in each other; specs of a union */
  DIST_MAX_JOB_NAME_BYTES = 128,
  DIST_MAX_ADDRESS_BYTES = 512 /* of an address; also of the other texts that resolvers give */
};

/** A piece of one tensor for dist_reduce_apply()'s callback: its elements first .. first + count - 1. */
typedef struct dist_block {
  size_t tensor; /* index in the list */
  int64_t first;
  int64_t count;
  dist_dtype dtype;
  int32_t num_states;
  const void *gradient; /* reduced, and scaled by the clip; count elements */
  void *parameter;      /* to be changed in place; count elements */
  void *const *states;  /* num_states of them, to be changed in place; count elements each */
} dist_block;

/** Changes a parameter by its gradient. Called on several pieces at the same time; must not call libdist. */
typedef void (*dist_apply_fn)(const dist_block *block, void *user_data);

/** Jobs, their tasks, and where each task is. Immutable. */
typedef struct dist_cluster_spec dist_cluster_spec;
/** A number that is gathered over the updates of all replicas, step after step. */
typedef struct dist_metric dist_metric;
/** A file of tensors, open for reading. */
typedef struct dist_checkpoint dist_checkpoint;

#ifdef __cplusplus
}
#endif
#endif /* DIST_TYPES_EXPERIMENTAL_H */
