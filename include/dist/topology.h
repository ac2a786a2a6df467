/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file
 * Topologies, device assignments and partitions.
 *
 * A replica may be made of several logical devices, which share its work. Three things say how, each by itself pure
 * arithmetic, with TensorFlow's answers:
 *
 *     topology            where devices are: positions (x, y, z, core) of a mesh, each device in a task
 *     device assignment   which of them are logical device 0, 1, ... of replica 0, 1, ...
 *     partition           which part of a tensor each logical device of a replica has
 *
 * For one replica on two cores of this host:
 *
 *     const int32_t block[] = {1, 1, 2, 1};
 *     dist_topology_from_host(NULL, &topology);
 *     dist_device_assignment_build(topology, block, NULL, 4, 1, DIST_DEVICE_ORDER_AUTO, &assignment);
 *
 * Coordinates are arrays of 4 int32_t, and arrays of coordinates flat and row-major. A coordinate of -1 is the last one
 * in its direction, -2 the one before it, as in Python; so are the indices of replicas and logical devices.
 */
#ifndef DIST_TOPOLOGY_H
#define DIST_TOPOLOGY_H

#include "types.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct dist_topology_options {
  uint32_t struct_size;
  int32_t reserved;         /* 0 */
  dist_allocator allocator; /* all zero: malloc and free. Also of the assignments that are made with it */
} dist_topology_options;
#define DIST_TOPOLOGY_OPTIONS_INIT                \
  {                                               \
    sizeof(dist_topology_options), 0, { 0, 0, 0 } \
  }

/**
 * Makes a topology by hand (TensorFlow: Topology(mesh_shape=..., device_coordinates=...)).
 *
 * Positions may be without a device: they are missing. Of two devices at one position the later one is there.
 *
 * Shape    mesh_shape: [ndim], ndim is 4. device_coordinates: [num_tasks, num_devices_per_task, ndim]; NULL where there
 *          is no device.
 * Owns     Both arrays are copied. *out_topology is the caller's: dist_topology_destroy().
 * Errors   INVALID_ARGUMENT    NULL, another number of dimensions, a size below 1, a negative number, coordinates outside
 *                              the mesh, more than DIST_MAX_MESH_POSITIONS positions or devices.
 *          RESOURCE_EXHAUSTED  no memory.
 */
DIST_API DIST_NODISCARD dist_status dist_topology_create(const int32_t *mesh_shape, size_t ndim,
                                                         const int32_t *device_coordinates, int32_t num_tasks,
                                                         int32_t num_devices_per_task,
                                                         const dist_topology_options *options,
                                                         dist_topology **out_topology);

/**
 * Ends a topology for the caller; assignments made with it go on. NULL is fine.
 *
 * Context  Any, serialized.
 * Owns     Takes the topology.
 */
DIST_API void dist_topology_destroy(dist_topology *topology);

/**
 * Lays replicas out over a topology (TensorFlow: DeviceAssignment.build): each gets a block of computation_shape devices,
 * computation_stride apart in each direction; NULL: 1 everywhere.
 *
 *   - DIST_DEVICE_ORDER_MESH: the replicas' blocks fill a box that is as close to a cube as there is room, in which
 *     the core runs fastest, then x, y, z. Logical devices run through a block with the core fastest, then z, y, x.
 *   - DIST_DEVICE_ORDER_RING: replicas, and inside them chips, follow one another as neighbours in a ring. For blocks with
 *     all cores of their chips and without stride, and as many replicas as fit. Where a size above 1 is odd there
 *     is no such ring, and the order is x, y, z.
 *   - DIST_DEVICE_ORDER_AUTO: RING where it may be asked for, else MESH. Any other number: MESH, as in TensorFlow.
 *   - Where devices are missing, whatever the order: replicas take devices task by task.
 *
 * Shape    computation_shape, computation_stride: [ndim], ndim is 4; not read where both are NULL.
 * Owns     *out_assignment is the caller's: dist_device_assignment_destroy(). It holds the topology.
 * Errors   INVALID_ARGUMENT    NULL topology or out_assignment; another number of dimensions; a number below 1; blocks that
 *                              do not fit the mesh, or not so often; a negative number of replicas; RING where it may not
 *                              be asked for; where devices are missing, a stride, no replica, or fewer devices than are
 *                              wanted.
 *          RESOURCE_EXHAUSTED  no memory.
 */
DIST_API DIST_NODISCARD dist_status dist_device_assignment_build(
    dist_topology *topology, const int32_t *computation_shape, const int32_t *computation_stride, size_t ndim,
    int32_t num_replicas, int32_t device_order, dist_device_assignment **out_assignment);

/**
 * Ends an assignment for the caller. NULL is fine.
 *
 * Context  Any, serialized.
 * Owns     Takes the assignment.
 */
DIST_API void dist_device_assignment_destroy(dist_device_assignment *assignment);

#ifdef __cplusplus
}
#endif
#endif /* DIST_TOPOLOGY_H */

/* ---- Experimental: what follows may change or go in any version, as types.h says ------------------- */

#if defined(DIST_EXPERIMENTAL) && !defined(DIST_TOPOLOGY_EXPERIMENTAL_H)
#define DIST_TOPOLOGY_EXPERIMENTAL_H

#include "types.h"

#ifdef __cplusplus
extern "C" {
#endif

/** As dist_strategy_options_init(), of dist_topology_options. */
DIST_API void dist_topology_options_init(dist_topology_options *options, uint32_t struct_size_bytes);

/**
 * Makes a topology of what dist_topology_serialized() gave, here or in TensorFlow: a TopologyProto. Any bytes may come:
 * at most 16 MiB, and no more devices than DIST_MAX_MESH_POSITIONS.
 *
 * Owns     The bytes are copied. *out_topology is the caller's: dist_topology_destroy().
 * Errors   INVALID_ARGUMENT    NULL; no TopologyProto; one that dist_topology_create() would refuse, or with a negative
 *                              coordinate, or of another number of coordinates than its devices have.
 *          RESOURCE_EXHAUSTED  no memory.
 */
DIST_API DIST_NODISCARD dist_status dist_topology_from_serialized(const void *bytes, size_t size_bytes,
                                                                  const dist_topology_options *options,
                                                                  dist_topology **out_topology);

/**
 * Makes a topology of the CPUs that this process may use (its affinity mask): what resolving, connecting to and
 * initializing a TPU system come to on a host.
 *
 *     x: package     y: NUMA domain in it     z: core in that     core: hardware thread of the core
 *
 * One task, 0, whose devices are the CPUs in the order of their coordinates. What the process may not use is left out,
 * and the rest counted from 0; positions are missing where one package, domain or core has fewer CPUs than another.
 * Without hwloc (dist_has_feature("numa")) every CPU is taken for a core of one package; dist_topology_explain() says so.
 * A strategy over an assignment of these devices keeps the thread of each on its CPU if it has DIST_PLACEMENT_CORES.
 *
 * Blocks   While hwloc looks at the machine: some milliseconds.
 * Owns     *out_topology is the caller's: dist_topology_destroy().
 * Errors   INVALID_ARGUMENT    NULL.
 *          UNAVAILABLE         the system does not say which CPUs there are.
 *          RESOURCE_EXHAUSTED  no memory.
 */
DIST_API DIST_NODISCARD dist_status dist_topology_from_host(const dist_topology_options *options,
                                                            dist_topology **out_topology);

/** The number of dimensions of the mesh, 4; 0 for NULL. */
DIST_API int32_t dist_topology_mesh_rank(const dist_topology *topology);

/**
 * The size of the mesh in each direction; NULL for NULL.
 *
 * Shape    [4]
 * Owns     Borrowed: valid while the topology is.
 */
DIST_API const int32_t *dist_topology_mesh_shape(const dist_topology *topology);

/** The number of tasks; 0 for NULL. */
DIST_API int32_t dist_topology_num_tasks(const dist_topology *topology);

/** The number of devices of each task; 0 for NULL. */
DIST_API int32_t dist_topology_num_devices_per_task(const dist_topology *topology);

/**
 * Where each device is, as it was given; NULL for NULL, and where there is no device.
 *
 * Shape    [num_tasks, num_devices_per_task, 4]
 * Owns     Borrowed: valid while the topology is.
 */
DIST_API const int32_t *dist_topology_device_coordinates(const dist_topology *topology);

/** The number of positions without a device; 0 for NULL. */
DIST_API size_t dist_topology_num_missing_devices(const dist_topology *topology);

/**
 * The positions without a device, row-major; NULL for NULL, and where there is none.
 *
 * Shape    [dist_topology_num_missing_devices(), 4]
 * Owns     Borrowed: valid while the topology is.
 */
DIST_API const int32_t *dist_topology_missing_devices(const dist_topology *topology);

/**
 * The topology as a TopologyProto, in TensorFlow's bytes; one that was made of bytes has those. NULL for NULL.
 *
 * Owns     Borrowed: valid while the topology is. *out_size_bytes is written; it may be NULL.
 */
DIST_API const uint8_t *dist_topology_serialized(const dist_topology *topology, size_t *out_size_bytes);

/**
 * Which task the device at a position belongs to; -1 where it is missing.
 *
 * Shape    coordinates: [4]
 * Errors   INVALID_ARGUMENT  NULL, coordinates outside the mesh.
 */
DIST_API DIST_NODISCARD dist_status dist_topology_task_at(const dist_topology *topology,
                                                          const int32_t *coordinates, int32_t *out_task);

/**
 * Which device of its task is at a position; -1 where it is missing.
 *
 * Shape    coordinates: [4]
 * Errors   As dist_topology_task_at().
 */
DIST_API DIST_NODISCARD dist_status dist_topology_device_at(const dist_topology *topology,
                                                            const int32_t *coordinates, int32_t *out_device);

/**
 * Which CPU, by the system's number, is the device at a position of dist_topology_from_host(); -1 where it is missing.
 *
 * Shape    coordinates: [4]
 * Errors   INVALID_ARGUMENT     as dist_topology_task_at().
 *          FAILED_PRECONDITION  a topology whose devices are not this host's CPUs.
 */
DIST_API DIST_NODISCARD dist_status dist_topology_cpu_at(const dist_topology *topology,
                                                         const int32_t *coordinates, int32_t *out_cpu);

/**
 * Writes the name of the device at a position, with an end mark: "/job:worker/task:0/device:TPU:1", or without a job
 * (NULL) "/task:0/device:TPU:1". The type is TensorFlow's; a missing device has the numbers -1.
 *
 * Shape    coordinates: [4]; out_name: `size_bytes` bytes
 * Errors   INVALID_ARGUMENT  NULL (job may be), coordinates outside the mesh, no room for the name.
 */
DIST_API DIST_NODISCARD dist_status dist_topology_device_name_at(const dist_topology *topology,
                                                                 const int32_t *coordinates, const char *job,
                                                                 char *out_name, size_t size_bytes);

/**
 * Writes the name of the host of the device at a position: "/job:worker/task:0/device:CPU:0".
 *
 * Shape    As dist_topology_device_name_at().
 * Errors   As dist_topology_device_name_at().
 */
DIST_API DIST_NODISCARD dist_status dist_topology_host_name_at(const dist_topology *topology,
                                                               const int32_t *coordinates, const char *job,
                                                               char *out_name, size_t size_bytes);

/**
 * Writes what a topology is, and of a host's how that was found, and which CPU is where. Lines of "subject: words", for
 * people: the words may change in any version.
 *
 * Blocks   Never, but for fn.
 * Errors   INVALID_ARGUMENT NULL. RESOURCE_EXHAUSTED no memory.
 */
DIST_API DIST_NODISCARD dist_status dist_topology_explain(const dist_topology *topology, dist_text_fn fn,
                                                          void *user_data);

/**
 * Makes an assignment by hand (TensorFlow: DeviceAssignment(topology, core_assignment)). A device may be given to several,
 * and may be one that is missing.
 *
 * Shape    core_assignment: [num_replicas, num_logical_devices, ndim], ndim is 4; NULL where that is empty.
 * Owns     The array is copied. *out_assignment is the caller's: dist_device_assignment_destroy(). It holds the topology.
 * Errors   INVALID_ARGUMENT    NULL, another number of dimensions, a negative number, coordinates outside the mesh, more
 *                              devices than DIST_MAX_MESH_POSITIONS.
 *          RESOURCE_EXHAUSTED  no memory.
 */
DIST_API DIST_NODISCARD dist_status dist_device_assignment_create(dist_topology *topology,
                                                                  const int32_t *core_assignment,
                                                                  int32_t num_replicas,
                                                                  int32_t num_logical_devices, size_t ndim,
                                                                  dist_device_assignment **out_assignment);

/**
 * One replica of one logical device, at (0, 0, 0, 0) (TensorFlow: SINGLE_CORE_ASSIGNMENT).
 *
 * Owns     *out_assignment is the caller's: dist_device_assignment_destroy(). It holds the topology.
 * Errors   INVALID_ARGUMENT NULL. RESOURCE_EXHAUSTED no memory.
 */
DIST_API DIST_NODISCARD dist_status
dist_device_assignment_create_single(dist_topology *topology, dist_device_assignment **out_assignment);

/**
 * The topology that it was made with; NULL for NULL.
 *
 * Owns     Borrowed: valid while the assignment is.
 */
DIST_API dist_topology *dist_device_assignment_topology(const dist_device_assignment *assignment);

/** The number of replicas; 0 for NULL. */
DIST_API int32_t dist_device_assignment_num_replicas(const dist_device_assignment *assignment);

/** The number of logical devices of each replica (TensorFlow: num_cores_per_replica); 0 for NULL. */
DIST_API int32_t dist_device_assignment_num_logical_devices(const dist_device_assignment *assignment);

/**
 * Where each logical device of each replica is; NULL for NULL, and where there is none.
 *
 * Shape    [num_replicas, num_logical_devices, 4]
 * Owns     Borrowed: valid while the assignment is.
 */
DIST_API const int32_t *dist_device_assignment_core_assignment(const dist_device_assignment *assignment);

/**
 * Where one logical device is.
 *
 * Shape    out_coordinates: [4]
 * Errors   INVALID_ARGUMENT  NULL, no such replica or logical device.
 */
DIST_API DIST_NODISCARD dist_status
dist_device_assignment_coordinates(const dist_device_assignment *assignment, int32_t replica,
                                   int32_t logical_device, int32_t *out_coordinates);

/**
 * Which device of its task a logical device is (TensorFlow: tpu_ordinal); -1 where it is missing.
 *
 * Errors   As dist_device_assignment_coordinates().
 */
DIST_API DIST_NODISCARD dist_status dist_device_assignment_device(const dist_device_assignment *assignment,
                                                                  int32_t replica, int32_t logical_device,
                                                                  int32_t *out_device);

/**
 * Writes a logical device's name (TensorFlow: tpu_device), as dist_topology_device_name_at() does.
 *
 * Errors   INVALID_ARGUMENT  NULL (job may be), no such replica or logical device, no room for the name.
 */
DIST_API DIST_NODISCARD dist_status dist_device_assignment_device_name(
    const dist_device_assignment *assignment, int32_t replica, int32_t logical_device, const char *job,
    char *out_name, size_t size_bytes);

/**
 * Writes the name of a logical device's host (TensorFlow: host_device), as dist_topology_host_name_at() does.
 *
 * Errors   As dist_device_assignment_device_name().
 */
DIST_API DIST_NODISCARD dist_status dist_device_assignment_host_name(const dist_device_assignment *assignment,
                                                                     int32_t replica, int32_t logical_device,
                                                                     const char *job, char *out_name,
                                                                     size_t size_bytes);

/**
 * Which replicas have their logical device `logical_device` in a task, ascending. These two are no indices from the end.
 *
 * Shape    out_replicas: [capacity]; *out_n is how many there are, which may be more.
 * Errors   INVALID_ARGUMENT  NULL (out_replicas may be where capacity is 0), or there is none.
 */
DIST_API DIST_NODISCARD dist_status dist_device_assignment_lookup_replicas(
    const dist_device_assignment *assignment, int32_t task, int32_t logical_device, int32_t *out_replicas,
    size_t capacity, size_t *out_n);

/** Which part of a tensor each logical device of a replica has. */
typedef struct dist_partition {
  uint32_t struct_size;
  int32_t kind;         /* DIST_PARTITION_... */
  const int64_t *shape; /* of the tensor: [ndim]; -1: a size that is not known */
  size_t ndim;
  const int64_t *dimensions; /* SPLIT: into how many parts each dimension is split: [num_dimensions] */
  size_t num_dimensions;
  int32_t num_logical_devices; /* of a replica */
  int32_t logical_device;      /* ASSIGN: which of them has the tensor */
  int32_t uneven;              /* SPLIT: 1: sizes that do not divide are split as evenly as possible */
  int32_t spmd;                /* 1: one program runs on all logical devices, so that ASSIGN is refused */
} dist_partition;
#define DIST_PARTITION_INIT \
  { sizeof(dist_partition), 0, 0, 0, 0, 0, 0, 0, 0, 0 }

/** As dist_strategy_options_init(), of dist_partition. */
DIST_API void dist_partition_init(dist_partition *partition, uint32_t struct_size_bytes);

/**
 * Whether a tensor can be partitioned so, by TensorFlow's checks in its order.
 *
 *     SPLIT    num_dimensions is ndim, and not 0; each known size is divisible by its dimension's parts (unless
 *              uneven); the parts are num_logical_devices in all
 *     ASSIGN   not spmd; 0 <= logical_device < num_logical_devices
 *
 * Errors   INVALID_ARGUMENT  one of these does not hold; NULL, an unknown kind, more than DIST_MAX_NDIM dimensions, a size
 *                            below -1, more elements than 64 bits count, num_logical_devices below 1.
 */
DIST_API DIST_NODISCARD dist_status dist_partition_check(const dist_partition *partition);

/**
 * What a logical device has of the tensor: size[i] elements from begin[i] on in dimension i.
 *
 * Under SPLIT it is the tile whose index is out_tile, where the last dimension's index runs fastest from one device to the
 * next. Part k of a size n in p parts has n / p elements, one more where k < n % p: that is at most one more than
 * any other part; parts come in order without gaps, and some are empty where n < p. Under ASSIGN the device has everything
 * or nothing, under REPLICATE everything.
 *
 * Shape    out_tile, out_begin, out_size: [ndim]. out_tile and out_elements (how many elements the shard has) may be NULL.
 *          What depends on an unknown size is -1.
 * Errors   INVALID_ARGUMENT  as dist_partition_check(); NULL (out_begin, out_size: only where ndim > 0); no such device.
 */
DIST_API DIST_NODISCARD dist_status dist_partition_shard(const dist_partition *partition,
                                                         int32_t logical_device, int64_t *out_tile,
                                                         int64_t *out_begin, int64_t *out_size,
                                                         int64_t *out_elements);

#ifdef __cplusplus
}
#endif
#endif /* DIST_TOPOLOGY_EXPERIMENTAL_H */
