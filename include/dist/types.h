/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file
 * Types and constants that all other headers use: status codes, element types, reduction operators, tensors, handles,
 * and the host's allocator, log and clock. This header declares no functions. The value of a constant never changes.
 *
 *     float numbers[] = {1, 2, 3, 4, 5, 6};
 *     const int64_t shape[] = {2, 3};
 *     const dist_tensor tensor = {numbers, DIST_F32, 2, shape, NULL};       // a view of `numbers`: nothing is copied
 *
 * **How functions are documented.** The comment of a function states only what differs from these defaults:
 *
 *     Context  Any, concurrent: callable inside and outside replicas, and from several threads at once.
 *     Blocks   Never.
 *     Owns     Nothing: arguments are used only during the call, and the caller has nothing to release.
 *     Errors   None.
 *     Since    0.1
 *
 * **Errors of every function.** A function that returns a dist_status can also fail for these reasons, which its
 * comment repeats only to say more:
 *
 *     INVALID_ARGUMENT     a pointer is NULL that must not be; an option or the value of an enum is out of its range;
 *                          an option struct is not initialized (struct_size is wrong, or a reserved field is not 0) or
 *                          sets a field that this version does not know; a list is longer than the address space
 *     FAILED_PRECONDITION  called in a callback that must not call the function, or in a forked child
 *     RESOURCE_EXHAUSTED   out of memory
 *     UNKNOWN              a callback threw a C++ exception
 *
 * The context is *Strategy* (the cross-replica context: outside the replica function, or inside a merge function),
 * *Replica* (inside the replica function, with that replica's own handle), *Logical device* (inside a function of
 * dist_run_on_devices(), with that device's handle), or *Any* (anywhere, on any thread). *Concurrent* means from
 * several threads at once, and *serialized* from any thread, but only one call at a time on the same object. Functions
 * that take tensors also state their *Shape*, and the *Order* of additions, which determines the bits of a sum.
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

/* ---- Enum types ------------------------------------------------------------------------------------- */

/*
 * All enum types of libdist have 32 bits and can hold values that this version does not know. C++ and C23 have a syntax
 * for that; earlier C gets one more constant, which is not a value.
 *
 * 0 is not a value of an enum type, except that DIST_COLLECTIVE_NONE is 0. A field of an option struct accepts 0 and
 * then has the default, which its comment states; a parameter of a function does not accept 0. Apart from
 * dist_dtype and dist_status, no two types share a value, so libdist refuses swapped arguments.
 */
#if defined(__cplusplus) || (defined(__STDC_VERSION__) && __STDC_VERSION__ >= 202311L)
#define DIST_INT32 : int32_t
#define DIST_FORCE_INT32(prefix)
#else
#define DIST_INT32
#define DIST_FORCE_INT32(prefix) prefix##_FORCE_INT32 = -2147483647 - 1
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
typedef enum dist_dtype DIST_INT32 {
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
  DIST_BOOL = 14,      /* one byte: 0 is false, anything else is true; libdist writes 0 or 1 */
  DIST_FORCE_INT32(DIST_DTYPE)
} dist_dtype;

/** The operator of a reduction. 0 is not an operator. */
typedef enum dist_reduce_op DIST_INT32 {
  DIST_REDUCE_SUM = 0x101,
  DIST_REDUCE_MEAN = 0x102,
  DIST_REDUCE_MIN = 0x103,
  DIST_REDUCE_MAX = 0x104,
  DIST_REDUCE_PROD = 0x105,
  DIST_REDUCE_USER = 0x106, /* the host's own operator: dist_collective_options.reduce_fn */
  DIST_FORCE_INT32(DIST_REDUCE)
} dist_reduce_op;

/* ---- Kinds ------------------------------------------------------------------------------------------- */

/** The collective that an error is about; 0 = none. */
typedef enum dist_collective DIST_INT32 {
  DIST_COLLECTIVE_NONE = 0,
  DIST_COLLECTIVE_ALL_REDUCE = 0x201,
  DIST_COLLECTIVE_BROADCAST = 0x202,
  DIST_COLLECTIVE_BARRIER = 0x203,
  DIST_COLLECTIVE_MERGE_CALL = 0x204,
  /* the end of the replica function, where all replicas also wait for each other */
  DIST_COLLECTIVE_RETURN = 0x205,
  DIST_COLLECTIVE_REDUCE = 0x206,
  DIST_COLLECTIVE_REDUCE_SCATTER = 0x207,
  DIST_COLLECTIVE_ALL_GATHER = 0x208,
  DIST_COLLECTIVE_GATHER = 0x209,
  DIST_COLLECTIVE_SCATTER = 0x20A,
  DIST_COLLECTIVE_ALL_TO_ALL = 0x20B,
  DIST_COLLECTIVE_SCAN = 0x20C,
  DIST_COLLECTIVE_PERMUTE = 0x20D,
  DIST_COLLECTIVE_REDUCE_APPLY = 0x20E,
  DIST_COLLECTIVE_HALO_EXCHANGE = 0x20F,
  DIST_COLLECTIVE_RESHARD = 0x210,
  DIST_FORCE_INT32(DIST_COLLECTIVE)
} dist_collective;

/** The order of additions in a sum, which determines its bits. */
typedef enum dist_numerics DIST_INT32 {
  DIST_NUMERICS_DEFAULT = 0x300, /* as the strategy's options say; there it means ORDERED */
  DIST_NUMERICS_ORDERED = 0x301, /* added in the order of replica ids */
  /* added exactly and rounded once: independent of the order and of how replicas share the terms */
  DIST_NUMERICS_REPRODUCIBLE = 0x302,
  /* added in pairs, pairs of pairs and so on, by replica id: cheapest over many workers */
  DIST_NUMERICS_TREE = 0x303,
  DIST_FORCE_INT32(DIST_NUMERICS)
} dist_numerics;

/** The first term of a scan. */
typedef enum dist_scan_kind DIST_INT32 {
  DIST_SCAN_INCLUSIVE = 0x400, /* the result of replica r includes its own contribution */
  DIST_SCAN_EXCLUSIVE = 0x401, /* the result of replica r covers replicas 0 .. r-1 only */
  DIST_FORCE_INT32(DIST_SCAN)
} dist_scan_kind;

/** The kind of a strategy, which determines where values and variables are placed. */
typedef enum dist_strategy_kind DIST_INT32 {
  DIST_STRATEGY_MIRRORED = 0x500,   /* R replicas; every variable has R equal copies */
  DIST_STRATEGY_ONE_DEVICE = 0x501, /* one replica, for programs that run on one or on many */
  DIST_STRATEGY_DEFAULT = 0x502,    /* one replica; used by programs that do not choose a strategy */
  DIST_STRATEGY_CENTRAL_STORAGE =
      0x503, /* R replicas; every variable has one copy, which all replicas read */
  /* like MIRRORED; replicas consist of logical devices (TPUStrategy) */
  DIST_STRATEGY_MESH = 0x504,
  DIST_STRATEGY_MULTI_WORKER_MIRRORED = 0x505, /* like MIRRORED, with replicas in all workers of a cluster */
  DIST_STRATEGY_PARAMETER_SERVER = 0x506, /* variables on servers; a coordinator runs closures on workers */
  DIST_FORCE_INT32(DIST_STRATEGY)
} dist_strategy_kind;

/** The threads that run the replicas. */
typedef enum dist_threads DIST_INT32 {
  DIST_THREADS_CALLER = 0x600,  /* the caller of dist_run() is replica 0; the others are library threads */
  DIST_THREADS_LIBRARY = 0x601, /* all replicas are library threads; the caller of dist_run() waits */
  DIST_THREADS_HOST = 0x602,    /* no library threads: host threads join with dist_replica_enter() */
  DIST_FORCE_INT32(DIST_THREADS)
} dist_threads;

/**
 * The transport between workers that are separate processes; workers.h lists the environment variables for it.
 * Link modules have further values: dist/experimental/links.h.
 */
typedef enum dist_transport DIST_INT32 {
  /* the one named by DIST_TRANSPORT; else GRPC, or NONE for host names without TLS and DIST_PLAINTEXT. If none is
     named, workers of one machine and user exchange data through shared memory */
  DIST_TRANSPORT_AUTO = 0x700,
  DIST_TRANSPORT_NONE =
      0x701, /* no transport: the first call that needs another worker fails with UNAVAILABLE */
  DIST_TRANSPORT_GRPC = 0x702, /* over gRPC, between the addresses in the cluster, also within one machine */
  DIST_TRANSPORT_GLOO = 0x703, /* control over gRPC, data over Gloo: not encrypted, on additional ports */
  DIST_FORCE_INT32(DIST_TRANSPORT)
} dist_transport;

/** The time at which workers re-form after some were lost or have joined: dist_strategy_reform(). */
typedef enum dist_reform DIST_INT32 {
  DIST_REFORM_EXPLICIT = 0x800,    /* when dist_strategy_reform() is called */
  DIST_REFORM_AT_NEXT_RUN = 0x801, /* also at the start of a run, if it is due */
  DIST_FORCE_INT32(DIST_REFORM)
} dist_reform;

/** The placement of library threads on CPUs. */
typedef enum dist_placement DIST_INT32 {
  DIST_PLACEMENT_FREE = 0x900, /* the operating system decides */
  /* each library thread is pinned to one CPU; the caller's thread is not moved. libdist picks, when the strategy is
     created, the CPUs with the fewest pinned library threads of this process; among those it prefers one per physical
     core, then neighbours, so strategies share CPUs only if there are too few. With a device assignment made from
     dist_topology_from_host(), the assignment names the CPUs instead: dist_topology_cpu_at() */
  DIST_PLACEMENT_CORES = 0x901,
  DIST_FORCE_INT32(DIST_PLACEMENT)
} dist_placement;

/** The kind of a value. */
typedef enum dist_value_kind DIST_INT32 {
  DIST_VALUE_TENSOR = 0xA01,
  DIST_VALUE_PER_REPLICA = 0xA02, /* one value for each replica */
  DIST_VALUE_MIRRORED = 0xA03,    /* one value for each replica, all known to be equal */
  DIST_VALUE_LIST = 0xA04,
  DIST_VALUE_DICT = 0xA05, /* keys are text, sorted by their bytes */
  DIST_VALUE_VARIABLE = 0xA06,
  DIST_VALUE_NONE = 0xA07,  /* nothing; all such values count as the same value */
  DIST_VALUE_TUPLE = 0xA08, /* like a list, but the two kinds do not merge with each other */
  DIST_VALUE_TEXT = 0xA09,
  DIST_VALUE_OBJECT = 0xA0A,         /* a host pointer, passed through */
  DIST_VALUE_INDEXED_SLICES = 0xA0B, /* rows of a larger tensor: values, indices, dense shape */
  DIST_VALUE_RAGGED = 0xA0C,         /* rows of different lengths: values, and one or more row splits */
  DIST_VALUE_SPARSE = 0xA0D,         /* single elements of a tensor: indices, values, dense shape */
  /* a tensor, with the part of it that each logical device of a replica holds */
  DIST_VALUE_SHARDED = 0xA0E,
  DIST_FORCE_INT32(DIST_VALUE)
} dist_value_kind;

/** The time at which the copies of a variable are combined (TensorFlow: VariableSynchronization). */
typedef enum dist_synchronization DIST_INT32 {
  DIST_SYNCHRONIZATION_AUTO = 0xB00, /* the strategy decides: on writing */
  DIST_SYNCHRONIZATION_NONE = 0xB01,
  /* an assignment inside replicas is aggregated, and all copies stay equal */
  DIST_SYNCHRONIZATION_ON_WRITE = 0xB02,
  /* each replica writes its own copy; a read from outside aggregates the copies */
  DIST_SYNCHRONIZATION_ON_READ = 0xB03,
  DIST_FORCE_INT32(DIST_SYNCHRONIZATION)
} dist_synchronization;

/** The aggregation of the R values that replicas assign to a variable (TensorFlow: VariableAggregation). */
typedef enum dist_aggregation DIST_INT32 {
  DIST_AGGREGATION_NONE = 0xC00, /* not combined: each replica writes its own copy */
  DIST_AGGREGATION_SUM = 0xC01,
  DIST_AGGREGATION_MEAN = 0xC02,
  DIST_AGGREGATION_ONLY_FIRST_REPLICA = 0xC03, /* all copies get replica 0's value */
  DIST_FORCE_INT32(DIST_AGGREGATION)
} dist_aggregation;

/** The way in which an assignment changes a variable. */
typedef enum dist_assign_op DIST_INT32 {
  DIST_ASSIGN = 0xD01,
  DIST_ASSIGN_ADD = 0xD02,
  DIST_ASSIGN_SUB = 0xD03,
  DIST_FORCE_INT32(DIST_ASSIGN)
} dist_assign_op;

/** The number of pipelines that produce batches (TensorFlow: InputReplicationMode). */
typedef enum dist_input_mode DIST_INT32 {
  DIST_INPUT_PER_WORKER = 0x1100,  /* one pipeline; its elements are divided among the replicas */
  DIST_INPUT_PER_REPLICA = 0x1101, /* one pipeline per replica */
  DIST_FORCE_INT32(DIST_INPUT)
} dist_input_mode;

/** The way in which a dataset is divided among workers (TensorFlow: AutoShardPolicy). */
typedef enum dist_shard_policy DIST_INT32 {
  DIST_SHARD_AUTO = 0x1200, /* FILE if the source reads files, else DATA */
  DIST_SHARD_FILE = 0x1201, /* file i goes to worker i mod W */
  DIST_SHARD_DATA = 0x1202, /* element i goes to worker i mod W */
  DIST_SHARD_HINT = 0x1203, /* as the source requests with its shard_hint option */
  DIST_SHARD_OFF = 0x1204,  /* every worker sees all elements */
  DIST_FORCE_INT32(DIST_SHARD)
} dist_shard_policy;

/** The order of replicas and their logical devices in a mesh (TensorFlow: DeviceOrderMode). */
typedef enum dist_device_order DIST_INT32 {
  DIST_DEVICE_ORDER_AUTO = 0x1300, /* rings if they fit, else blocks */
  DIST_DEVICE_ORDER_RING = 0x1301, /* each is a neighbour of the next; an error if that is impossible */
  DIST_DEVICE_ORDER_MESH = 0x1302, /* blocks */
  DIST_FORCE_INT32(DIST_DEVICE_ORDER)
} dist_device_order;

/**
 * The timeout that means "no limit". Timeouts are in nanoseconds and follow two rules:
 *
 *                     in an option struct      as a parameter of a function that waits (like poll(2))
 *     0               the documented default   does not wait
 *     DIST_NO_TIMEOUT no limit                 waits without limit
 *     below           INVALID_ARGUMENT         INVALID_ARGUMENT
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
 *
 * To limit the memory of a strategy, return NULL when it would exceed the limit: the call that needs the memory then
 * fails with RESOURCE_EXHAUSTED, and the strategy stays usable. Only the stacks of threads, and the memory that oneTBB,
 * gRPC and the C library use for themselves, are allocated elsewhere.
 */
typedef struct dist_allocator {
  void *(*alloc)(size_t size_bytes, size_t align_bytes, void *user_data);
  void (*free)(void *memory, size_t size_bytes, size_t align_bytes, void *user_data);
  void *user_data;
} dist_allocator;

/** Called when libdist no longer uses the caller's memory or user_data, on the thread that used it last. */
typedef void (*dist_release_fn)(void *user_data);

/** The severity of a log line. */
typedef enum dist_log_level DIST_INT32 {
  DIST_LOG_ERROR = 0x1401,
  DIST_LOG_WARNING = 0x1402,
  DIST_LOG_INFO = 0x1403,
  DIST_FORCE_INT32(DIST_LOG)
} dist_log_level;

/**
 * Receives one complete UTF-8 line without a newline. Called from any thread; must not call libdist: functions that
 * return a status fail there with FAILED_PRECONDITION.
 */
typedef void (*dist_log_fn)(dist_log_level level, const char *message, void *user_data);

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
typedef enum dist_scatter_op DIST_INT32 {
  DIST_SCATTER_ADD = 0xE01,
  DIST_SCATTER_SUB = 0xE02,
  DIST_SCATTER_UPDATE = 0xE03, /* the row is replaced; if an index occurs twice, the last one wins */
  DIST_SCATTER_MUL = 0xE04,
  DIST_SCATTER_DIV = 0xE05,
  DIST_SCATTER_MIN = 0xE06,
  DIST_SCATTER_MAX = 0xE07,
  /* UPDATE below leading dimensions that indices, values and the variable share */
  DIST_SCATTER_BATCH_UPDATE = 0xE08,
  DIST_FORCE_INT32(DIST_SCATTER)
} dist_scatter_op;

/** The implementation that reduces values outside runs (TensorFlow: CrossDeviceOps). */
typedef enum dist_cross_device_kind DIST_INT32 {
  DIST_CROSS_DEVICE_DEFAULT = 0x1000,
  DIST_CROSS_DEVICE_REDUCTION_TO_ONE_DEVICE = 0x1001, /* uses the host's operator, if one is set */
  DIST_CROSS_DEVICE_HOST = 0x1002,                    /* the host's own functions */
  DIST_FORCE_INT32(DIST_CROSS_DEVICE)
} dist_cross_device_kind;

/** The number that a metric computes over all updates of all replicas. */
typedef enum dist_metric_kind DIST_INT32 {
  DIST_METRIC_SUM = 0x1501,
  DIST_METRIC_MEAN = 0x1502,     /* weighted if weights are given */
  DIST_METRIC_ACCURACY = 0x1503, /* the fraction of predictions that equal their labels */
  DIST_FORCE_INT32(DIST_METRIC)
} dist_metric_kind;

/** The way in which dist_reduce_apply() uses a reduced gradient. */
typedef enum dist_apply_kind DIST_INT32 {
  DIST_APPLY_SGD = 0x1601,      /* the built-in gradient descent, with momentum */
  DIST_APPLY_CALLBACK = 0x1602, /* the host's function */
  DIST_FORCE_INT32(DIST_APPLY)
} dist_apply_kind;

/** The way in which a tensor is distributed over the logical devices of a replica. */
typedef enum dist_partition_kind DIST_INT32 {
  DIST_PARTITION_SPLIT = 0x1700,     /* each device has one tile */
  DIST_PARTITION_ASSIGN = 0x1701,    /* one device has the whole tensor, the others have nothing */
  DIST_PARTITION_REPLICATE = 0x1702, /* each device has the whole tensor */
  DIST_FORCE_INT32(DIST_PARTITION)
} dist_partition_kind;

/** The content of a halo beyond the edge of the whole tensor; the elements of that dimension are 0 .. n-1. */
typedef enum dist_edge DIST_INT32 {
  DIST_EDGE_ZERO = 0x1800,    /* zeros */
  DIST_EDGE_WRAP = 0x1801,    /* from the other end: -1 is n-1 */
  DIST_EDGE_CLAMP = 0x1802,   /* the last element, repeated: -1 is 0 */
  DIST_EDGE_REFLECT = 0x1803, /* mirrored at the last element: -1 is 1 */
  DIST_EDGE_NONE = 0x1804,    /* nothing: the result ends at the edge */
  DIST_FORCE_INT32(DIST_EDGE)
} dist_edge;

/** The enum types whose values have names. */
typedef enum dist_enum_domain DIST_INT32 {
  DIST_ENUM_STATUS = 0x1901,    /* DIST_OK ...: "OK", "INVALID_ARGUMENT" */
  DIST_ENUM_DTYPE = 0x1902,     /* DIST_F16 ...: "f16", as in error messages */
  DIST_ENUM_REDUCE_OP = 0x1903, /* DIST_REDUCE_...: "SUM", "MEAN", and the other operators of collectives */
  DIST_ENUM_VALUE_REDUCTION = 0x1904, /* "SUM", "MEAN": TensorFlow's ReduceOp, as dist_reduce() takes it */
  DIST_ENUM_COLLECTIVE = 0x1905, /* DIST_COLLECTIVE_... except NONE: "all_reduce", as in error messages */
  DIST_ENUM_SYNCHRONIZATION = 0x1906, /* DIST_SYNCHRONIZATION_...: "ON_READ" */
  DIST_ENUM_AGGREGATION = 0x1907,     /* DIST_AGGREGATION_...: "ONLY_FIRST_REPLICA" */
  DIST_ENUM_CROSS_DEVICE = 0x1908,    /* DIST_CROSS_DEVICE_...: "REDUCTION_TO_ONE_DEVICE" */
  DIST_ENUM_INPUT_MODE = 0x1909,      /* DIST_INPUT_...: "PER_WORKER" */
  DIST_ENUM_SHARD_POLICY = 0x190A,    /* DIST_SHARD_...: "AUTO" */
  DIST_FORCE_INT32(DIST_ENUM)
} dist_enum_domain;

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
