/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file
 * Topologies, device assignments and partitions: the description of replicas that consist of several logical devices.
 *
 * For one replica on two cores of this host:
 *
 *     const int32_t block[] = {1, 1, 2, 1};
 *     dist_topology *topology = NULL;
 *     dist_device_assignment *assignment = NULL;
 *     dist_topology_from_host(NULL, &topology);
 *     dist_device_assignment_build(topology, block, NULL, 4, 1, DIST_DEVICE_ORDER_AUTO, &assignment);
 *
 * The functions of this header are pure arithmetic and return TensorFlow's results. They work on three kinds of
 * objects:
 *
 *     topology            the positions (x, y, z, core) of devices in a mesh, and the task of each device
 *     device assignment   a mapping of these devices to logical devices 0, 1, ... of replicas 0, 1, ...
 *     partition           the part of a tensor that each logical device of a replica holds
 *
 * Coordinates are arrays of 4 int32_t. Arrays of coordinates are flat and row-major. A coordinate of -1 is the last one
 * in its direction and -2 the one before it, as in Python; the same applies to indices of replicas and logical devices.
 */
#ifndef DIST_TOPOLOGY_H
#define DIST_TOPOLOGY_H

#include "types.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Options of the functions that create topologies. */
typedef struct dist_topology_options {
  uint32_t struct_size;
  int32_t reserved; /* must be 0 */
  /* all zero = malloc() and free(); also used by assignments created with the topology */
  dist_allocator allocator;
} dist_topology_options;
#define DIST_TOPOLOGY_OPTIONS_INIT                \
  {                                               \
    sizeof(dist_topology_options), 0, { 0, 0, 0 } \
  }

/**
 * Creates a topology from explicit coordinates (TensorFlow: Topology(mesh_shape=..., device_coordinates=...)).
 *
 * Positions without a device are allowed: these devices are missing. If two devices have the same position, the later
 * one takes it.
 *
 * Shape    mesh_shape: [ndim], ndim is 4. device_coordinates: [num_tasks, num_devices_per_task, ndim]; NULL if there
 *          are no devices.
 * Owns     Both arrays are copied. The caller owns *out_topology and destroys it with dist_topology_destroy().
 * Errors   INVALID_ARGUMENT    a required argument is NULL, the number of dimensions is wrong, a size is below 1, a
 *                              number is negative, coordinates are outside the mesh, or there are more than
 *                              DIST_MAX_MESH_POSITIONS positions or devices.
 *          RESOURCE_EXHAUSTED  out of memory.
 */
DIST_API DIST_NODISCARD dist_status dist_topology_create(const int32_t *mesh_shape, size_t ndim,
                                                         const int32_t *device_coordinates, int32_t num_tasks,
                                                         int32_t num_devices_per_task,
                                                         const dist_topology_options *options,
                                                         dist_topology **out_topology);

/**
 * Destroys the caller's handle to a topology. Assignments created with the topology stay valid. Does nothing if
 * `topology` is NULL.
 *
 * Context  Any, serialized.
 * Owns     Takes ownership of the topology.
 */
DIST_API void dist_topology_destroy(dist_topology *topology);

/**
 * Distributes replicas over a topology (TensorFlow: DeviceAssignment.build). Each replica gets a block of
 * computation_shape devices, computation_stride apart in each direction; NULL means 1 in each direction.
 *
 *   - DIST_DEVICE_ORDER_MESH: The blocks of the replicas fill a box that is as close to a cube as possible. The core
 *     varies fastest in it, then x, y, z. Within a block, the core of the logical devices varies fastest, then z, y, x.
 *   - DIST_DEVICE_ORDER_RING: The replicas, and the chips inside them, follow one another as neighbours in a ring. This
 *     requires blocks that contain all cores of their chips, no stride, and as many replicas as fit. If a size above 1
 *     is odd, no such ring exists, and the order is x, y, z.
 *   - DIST_DEVICE_ORDER_AUTO: RING if its requirements are met, else MESH.
 *   - If devices are missing, replicas take devices task by task, whatever the order is.
 *
 * Shape    computation_shape, computation_stride: [ndim], ndim is 4; ndim is ignored if both are NULL.
 * Owns     The caller owns *out_assignment and destroys it with dist_device_assignment_destroy(). It retains the
 *          topology.
 * Errors   INVALID_ARGUMENT    topology or out_assignment is NULL; device_order is not one of the constants; the number
 *                              of dimensions is wrong; a number is below 1; the blocks do not fit into the mesh, or not
 *                              that many of them; the number of replicas is negative; or the requirements of RING are
 *                              not met. If devices are missing, also: there is a stride, no replica, or too few
 *                              devices.
 *          RESOURCE_EXHAUSTED  out of memory.
 */
DIST_API DIST_NODISCARD dist_status dist_device_assignment_build(
    dist_topology *topology, const int32_t *computation_shape, const int32_t *computation_stride, size_t ndim,
    int32_t num_replicas, dist_device_order device_order, dist_device_assignment **out_assignment);

/**
 * Destroys the caller's handle to an assignment. Does nothing if `assignment` is NULL.
 *
 * Context  Any, serialized.
 * Owns     Takes ownership of the assignment.
 */
DIST_API void dist_device_assignment_destroy(dist_device_assignment *assignment);

/** Initializes a dist_topology_options to its defaults, like dist_strategy_options_init(). */
DIST_API void dist_topology_options_init(dist_topology_options *options, uint32_t struct_size_bytes);

/**
 * Creates a topology of the CPUs that this process may use (its affinity mask). It replaces resolving, connecting to
 * and initializing a TPU system.
 *
 *     x: package     y: NUMA domain in it     z: core in that     core: hardware thread of the core
 *
 * There is one task, 0, whose devices are the CPUs in the order of their coordinates. CPUs that the process may not use
 * are left out, and the others are numbered from 0. Positions are missing if a package, domain or core has fewer CPUs
 * than another. Without hwloc (dist_has_feature("numa")), every CPU counts as a core of one package;
 * dist_topology_explain() reports this. If a strategy uses an assignment of these devices and has DIST_PLACEMENT_CORES,
 * it pins the thread of each device to the device's CPU.
 *
 * Blocks   While hwloc inspects the machine: some milliseconds.
 * Owns     The caller owns *out_topology and destroys it with dist_topology_destroy().
 * Errors   INVALID_ARGUMENT    out_topology is NULL, or an option is out of range.
 *          UNAVAILABLE         the system does not report its CPUs.
 *          RESOURCE_EXHAUSTED  out of memory.
 */
DIST_API DIST_NODISCARD dist_status dist_topology_from_host(const dist_topology_options *options,
                                                            dist_topology **out_topology);

/** Returns the number of dimensions of the mesh, 4; 0 for NULL. */
DIST_API int32_t dist_topology_mesh_rank(const dist_topology *topology);

/**
 * Returns the size of the mesh in each direction; NULL for NULL.
 *
 * Shape    [4]
 * Owns     The result is borrowed: valid while the topology exists.
 */
DIST_API const int32_t *dist_topology_mesh_shape(const dist_topology *topology);

/** Returns the number of tasks; 0 for NULL. */
DIST_API int32_t dist_topology_num_tasks(const dist_topology *topology);

/** Returns the number of devices of each task; 0 for NULL. */
DIST_API int32_t dist_topology_num_devices_per_task(const dist_topology *topology);

/**
 * Returns the position of each device, as it was given; NULL for NULL, and if there are no devices.
 *
 * Shape    [num_tasks, num_devices_per_task, 4]
 * Owns     The result is borrowed: valid while the topology exists.
 */
DIST_API const int32_t *dist_topology_device_coordinates(const dist_topology *topology);

/** Returns the number of positions without a device; 0 for NULL. */
DIST_API size_t dist_topology_num_missing_devices(const dist_topology *topology);

/**
 * Returns the positions without a device, row-major; NULL for NULL, and if there are none.
 *
 * Shape    [dist_topology_num_missing_devices(), 4]
 * Owns     The result is borrowed: valid while the topology exists.
 */
DIST_API const int32_t *dist_topology_missing_devices(const dist_topology *topology);

/**
 * Returns the task of the device at a position; -1 if the device is missing.
 *
 * Shape    coordinates: [4]
 * Errors   INVALID_ARGUMENT  an argument is NULL, or the coordinates are outside the mesh.
 */
DIST_API DIST_NODISCARD dist_status dist_topology_task_at(const dist_topology *topology,
                                                          const int32_t *coordinates, int32_t *out_task);

/**
 * Returns the index, within its task, of the device at a position; -1 if the device is missing.
 *
 * Shape    coordinates: [4]
 * Errors   Like dist_topology_task_at().
 */
DIST_API DIST_NODISCARD dist_status dist_topology_device_at(const dist_topology *topology,
                                                            const int32_t *coordinates, int32_t *out_device);

/**
 * Returns the system's number of the CPU at a position of a topology made by dist_topology_from_host(); -1 if it is
 * missing.
 *
 * Shape    coordinates: [4]
 * Errors   INVALID_ARGUMENT     an argument is NULL, or the coordinates are outside the mesh.
 *          FAILED_PRECONDITION  the devices of the topology are not the CPUs of this host.
 */
DIST_API DIST_NODISCARD dist_status dist_topology_cpu_at(const dist_topology *topology,
                                                         const int32_t *coordinates, int32_t *out_cpu);

/**
 * Writes the name of the device at a position, NUL-terminated: "/job:worker/task:0/device:TPU:1", or
 * "/task:0/device:TPU:1" if job is NULL. The device type is TensorFlow's. A missing device has the numbers -1.
 *
 * Shape    coordinates: [4]; out_name: `size_bytes` bytes
 * Errors   INVALID_ARGUMENT  an argument except job is NULL, the coordinates are outside the mesh, or size_bytes is too
 *                            small.
 */
DIST_API DIST_NODISCARD dist_status dist_topology_device_name_at(const dist_topology *topology,
                                                                 const int32_t *coordinates, const char *job,
                                                                 char *out_name, size_t size_bytes);

/**
 * Writes the name of the host of the device at a position: "/job:worker/task:0/device:CPU:0".
 *
 * Shape    Like dist_topology_device_name_at().
 * Errors   Like dist_topology_device_name_at().
 */
DIST_API DIST_NODISCARD dist_status dist_topology_host_name_at(const dist_topology *topology,
                                                               const int32_t *coordinates, const char *job,
                                                               char *out_name, size_t size_bytes);

/**
 * Writes a description of a topology. For the topology of a host, this includes how it was detected and which CPU is at
 * which position. The text consists of lines of the form "subject: words" for people to read; it may change in any
 * version.
 *
 * Blocks   Only while fn runs.
 * Errors   INVALID_ARGUMENT    topology or fn is NULL.
 *          RESOURCE_EXHAUSTED  out of memory.
 */
DIST_API DIST_NODISCARD dist_status dist_topology_explain(const dist_topology *topology, dist_text_fn fn,
                                                          void *user_data);

/**
 * Creates an assignment from explicit coordinates (TensorFlow: DeviceAssignment(topology, core_assignment)). A device
 * can be assigned several times, and can be one that is missing.
 *
 * Shape    core_assignment: [num_replicas, num_logical_devices, ndim], ndim is 4; NULL if that is empty.
 * Owns     The array is copied. The caller owns *out_assignment and destroys it with dist_device_assignment_destroy().
 *          It retains the topology.
 * Errors   INVALID_ARGUMENT    a required argument is NULL, the number of dimensions is wrong, a number is negative,
 *                              coordinates are outside the mesh, or there are more than DIST_MAX_MESH_POSITIONS
 *                              devices.
 *          RESOURCE_EXHAUSTED  out of memory.
 */
DIST_API DIST_NODISCARD dist_status dist_device_assignment_create(dist_topology *topology,
                                                                  const int32_t *core_assignment,
                                                                  int32_t num_replicas,
                                                                  int32_t num_logical_devices, size_t ndim,
                                                                  dist_device_assignment **out_assignment);

/**
 * Creates an assignment with one replica of one logical device, at (0, 0, 0, 0) (TensorFlow: SINGLE_CORE_ASSIGNMENT).
 *
 * Owns     The caller owns *out_assignment and destroys it with dist_device_assignment_destroy(). It retains the
 *          topology.
 * Errors   INVALID_ARGUMENT    an argument is NULL.
 *          RESOURCE_EXHAUSTED  out of memory.
 */
DIST_API DIST_NODISCARD dist_status
dist_device_assignment_create_single(dist_topology *topology, dist_device_assignment **out_assignment);

/**
 * Returns the topology with which the assignment was created; NULL for NULL.
 *
 * Owns     The result is borrowed: valid while the assignment exists.
 */
DIST_API dist_topology *dist_device_assignment_topology(const dist_device_assignment *assignment);

/** Returns the number of replicas; 0 for NULL. */
DIST_API int32_t dist_device_assignment_num_replicas(const dist_device_assignment *assignment);

/** Returns the number of logical devices of each replica (TensorFlow: num_cores_per_replica); 0 for NULL. */
DIST_API int32_t dist_device_assignment_num_logical_devices(const dist_device_assignment *assignment);

/**
 * Returns the position of each logical device of each replica; NULL for NULL, and if there are none.
 *
 * Shape    [num_replicas, num_logical_devices, 4]
 * Owns     The result is borrowed: valid while the assignment exists.
 */
DIST_API const int32_t *dist_device_assignment_core_assignment(const dist_device_assignment *assignment);

/**
 * Returns the position of one logical device.
 *
 * Shape    out_coordinates: [4]
 * Errors   INVALID_ARGUMENT  an argument is NULL, or there is no such replica or logical device.
 */
DIST_API DIST_NODISCARD dist_status
dist_device_assignment_coordinates(const dist_device_assignment *assignment, int32_t replica,
                                   int32_t logical_device, int32_t *out_coordinates);

/**
 * Returns the index of a logical device within its task (TensorFlow: tpu_ordinal); -1 if the device is missing.
 *
 * Errors   Like dist_device_assignment_coordinates().
 */
DIST_API DIST_NODISCARD dist_status dist_device_assignment_device(const dist_device_assignment *assignment,
                                                                  int32_t replica, int32_t logical_device,
                                                                  int32_t *out_device);

/**
 * Writes the name of a logical device (TensorFlow: tpu_device), in the form of dist_topology_device_name_at().
 *
 * Errors   INVALID_ARGUMENT  an argument except job is NULL, there is no such replica or logical device, or size_bytes
 *                            is too small.
 */
DIST_API DIST_NODISCARD dist_status dist_device_assignment_device_name(
    const dist_device_assignment *assignment, int32_t replica, int32_t logical_device, const char *job,
    char *out_name, size_t size_bytes);

/**
 * Writes the name of the host of a logical device (TensorFlow: host_device), in the form of
 * dist_topology_host_name_at().
 *
 * Errors   Like dist_device_assignment_device_name().
 */
DIST_API DIST_NODISCARD dist_status dist_device_assignment_host_name(const dist_device_assignment *assignment,
                                                                     int32_t replica, int32_t logical_device,
                                                                     const char *job, char *out_name,
                                                                     size_t size_bytes);

/**
 * Returns the replicas whose logical device `logical_device` is in the task `task`, in ascending order. These two
 * indices must not be negative.
 *
 * Shape    out_replicas: [capacity]; *out_n receives the number of replicas, which can exceed capacity.
 * Errors   INVALID_ARGUMENT  an argument is NULL (out_replicas may be NULL if capacity is 0), or there is no such
 *                            replica.
 */
DIST_API DIST_NODISCARD dist_status dist_device_assignment_lookup_replicas(
    const dist_device_assignment *assignment, int32_t task, int32_t logical_device, int32_t *out_replicas,
    size_t capacity, size_t *out_n);

/** The division of a tensor among the logical devices of a replica. */
typedef struct dist_partition {
  uint32_t struct_size;
  dist_partition_kind kind; /* 0 = DIST_PARTITION_SPLIT */
  const int64_t *shape;     /* [ndim]: shape of the tensor; -1 = size not known */
  size_t ndim;
  const int64_t *dimensions; /* SPLIT: [num_dimensions]: number of parts of each dimension */
  size_t num_dimensions;
  int32_t num_logical_devices; /* number of logical devices of a replica */
  int32_t logical_device;      /* ASSIGN: the device that has the tensor */
  int32_t uneven;              /* SPLIT: 1 = sizes that are not divisible are split as evenly as possible */
  int32_t spmd;                /* 1 = one program runs on all logical devices; ASSIGN is then rejected */
} dist_partition;
#define DIST_PARTITION_INIT \
  { sizeof(dist_partition), DIST_PARTITION_SPLIT, 0, 0, 0, 0, 0, 0, 0, 0 }

/** Initializes a dist_partition to its defaults, like dist_strategy_options_init(). */
DIST_API void dist_partition_init(dist_partition *partition, uint32_t struct_size_bytes);

/**
 * Checks whether a tensor can be partitioned in this way. The checks are TensorFlow's, in the same order.
 *
 *     SPLIT    num_dimensions equals ndim and is not 0; each known size is divisible by the number of parts of its
 *              dimension (unless uneven); the product of the parts is num_logical_devices
 *     ASSIGN   spmd is 0; 0 <= logical_device < num_logical_devices
 *
 * Errors   INVALID_ARGUMENT  one of these conditions is not met; partition is NULL, its kind is unknown, it has more
 *                            than DIST_MAX_NDIM dimensions, a size is below -1, the number of elements exceeds 64 bits,
 *                            or num_logical_devices is below 1.
 */
DIST_API DIST_NODISCARD dist_status dist_partition_check(const dist_partition *partition);

/**
 * Computes the part of the tensor that a logical device has: size[i] elements starting at begin[i] in dimension i.
 *
 * With SPLIT, the part is the tile with index out_tile; from one device to the next, the index of the last dimension
 * varies fastest. Part k of a dimension of size n, divided into p parts, has n / p elements, and one more if k < n % p.
 * The parts are in order, without gaps; some are empty if n < p. With ASSIGN, the device has the whole tensor or
 * nothing; with REPLICATE, the whole tensor.
 *
 * Shape    out_tile, out_begin, out_size: [ndim]. out_tile and out_elements (the number of elements of the shard) may
 *          be NULL. Results that depend on an unknown size are -1.
 * Errors   INVALID_ARGUMENT  as for dist_partition_check(); a required argument is NULL (out_begin and out_size may be
 *                            NULL if ndim is 0); or there is no such device.
 */
DIST_API DIST_NODISCARD dist_status dist_partition_shard(const dist_partition *partition,
                                                         int32_t logical_device, int64_t *out_tile,
                                                         int64_t *out_begin, int64_t *out_size,
                                                         int64_t *out_elements);

#ifdef __cplusplus
}
#endif
#endif /* DIST_TOPOLOGY_H */
